"""Files that make one wait."""

from __future__ import annotations

import _thread
import io
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuboost.cli.reading.whole_files import read_file, read_to_end


def test_files_and_what_stands_in_for_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content := bytes(range(256)) * 10_000)
    assert read_file(str(tmp_path / "a")) == content
    assert read_to_end(io.BytesIO(content)) == content
    assert read_file(os.devnull) == b""


@pytest.mark.parametrize("pieces", [[], [b"a"], [b"a,b\n", b"1,2\n" * 50_000, b"end"]])
def test_a_pipe_is_read_to_its_end(pieces: list[bytes]) -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            for piece in pieces:
                pipe.write(piece)
                pipe.flush()

    writer = threading.Thread(target=write)
    with os.fdopen(reading, "rb") as file:
        writer.start()
        assert read_to_end(file) == b"".join(pieces)
    writer.join()


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Let interrupts be seen: what a shell runs in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="a read of Windows is not waited for in turns")
def test_an_interrupt_that_came_before_the_read_ends_the_wait(interrupts: None) -> None:
    """As a signal between the interpreter's last look and the read: nothing interrupts the read itself."""
    reading, writing = os.pipe()
    end = threading.Timer(20, os.close, [writing])  # for a reader that waits for ever
    end.start()
    with os.fdopen(reading, "rb") as file:
        threading.Timer(0.05, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt):
            read_to_end(file)
    end.cancel()
    os.close(writing)
