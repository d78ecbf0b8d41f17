"""`write_whole`: a file is there whole, or as it was."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from gpuboost.persistence.atomic_write import write_whole


def test_writes_bytes_or_what_a_callable_writes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_whole(path, b"one")
    assert path.read_bytes() == b"one"
    write_whole(str(path), lambda file: file.write(b"tw") and file.write(b"o"))
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    with pytest.raises(type(error)) as caught:
        write_whole(path, fail)
    if isinstance(error, OSError):
        assert caught.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a"]


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "no" / "a"
    with pytest.raises(FileNotFoundError) as missing:
        write_whole(path, b"")
    assert missing.value.filename == str(path)
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, b"")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that bind")
def test_a_file_that_may_not_be_written_to_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"before")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")
def test_permissions_stay_and_links_are_followed(tmp_path: Path) -> None:
    path, link, new = (tmp_path / name for name in ("a", "link", "new"))
    path.write_bytes(b"before")
    path.chmod(0o640)
    link.symlink_to(path)
    write_whole(link, b"after")
    assert path.read_bytes() == b"after"
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    umask = os.umask(0o022)
    try:
        write_whole(new, b"")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o644


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_whole(path, b"through")
    reader.join()
    assert read == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)
