"""Run commands as a container engine does: layers by overlayfs, namespaces by unshare, and chroot. Needs root on Linux."""

from __future__ import annotations

import copy
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

ENTER = """
set -eu
mount --make-rprivate /
mount -t overlay overlay -o "$OPTIONS" "$ROOT"
mount -t proc -o nosuid,nodev,noexec proc "$ROOT/proc"
mount -t tmpfs -o nosuid,mode=755 tmpfs "$ROOT/dev"
for name in $DEVICES; do touch "$ROOT/dev/$name"; mount --bind "/dev/$name" "$ROOT/dev/$name"; done
ln -s /proc/self/fd "$ROOT/dev/fd"
mkdir -m 1777 "$ROOT/dev/shm"
mount -t tmpfs -o nosuid,nodev,size=64m tmpfs "$ROOT/dev/shm"
if [ -n "$CERTIFICATES" ]; then cp "$CERTIFICATES" "$ROOT/dev/certificates"; fi
if [ -n "$VOLUME" ]; then mount --bind "$VOLUME" "$ROOT$VOLUME_AT"; fi
if [ "$READ_ONLY" = 1 ]; then mount -o remount,ro "$ROOT"; fi
if [ "$TMPFS" = 1 ]; then mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs "$ROOT/tmp"; fi
exec chroot --userspec="$WHO" --groups= "$ROOT" /usr/bin/env --ignore-environment "$@"
"""
"""Runs as process 1 of its namespace, and becomes the command by exec: the command is process 1, as in a container."""


@dataclass
class Image:
    """A file system, as folders from the lowest layer up, and how to start.

    Attributes
    ----------
    layers : list of Path
    made_by : list of (str, Path)
        The instruction of each layer above the base.
    env : dict of str
    user, workdir, stop_signal : str
    entrypoint, cmd : list of str
    """

    layers: list[Path]
    made_by: list[tuple[str, Path]] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    workdir: str = "/"
    stop_signal: str = "SIGTERM"
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)

    def copy(self) -> Image:
        """Return an image that starts from this one."""
        return copy.deepcopy(self)


@dataclass(frozen=True)
class Options:
    """What ``docker run`` is told.

    Attributes
    ----------
    user : str or None
        "UID:GID", if not the image's.
    volume : tuple or None
        A folder of the host and where it appears.
    env : dict of str
    read_only, tmpfs, network : bool
        A file system that cannot be written; with memory at /tmp; and the host's network instead of none.
    certificates : str
        A file that appears as /dev/certificates.
    """

    user: str | None = None
    volume: tuple[Path, str] | None = None
    env: dict[str, str] = field(default_factory=dict)
    read_only: bool = False
    tmpfs: bool = False
    network: bool = False
    certificates: str = ""


@contextmanager
def started(image: Image, command: list[str], options: Options, upper: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a container, which has the changes in ``upper``, or in a folder that goes with it.

    The process is unshare's; its child is the command.
    """
    with tempfile.TemporaryDirectory(prefix="container-") as scratch:
        root, work = Path(scratch, "root"), Path(scratch, "work")
        root.mkdir()
        if upper is None:
            upper = Path(scratch, "upper")
            upper.mkdir(mode=0o755)
        else:  # overlayfs wants both in one file system
            work = upper.with_name("work")
        work.mkdir(exist_ok=True)
        lower = ":".join(str(layer) for layer in reversed(image.layers))
        volume, volume_at = options.volume or ("", "")
        environment = {
            "PATH": os.environ["PATH"],
            "OPTIONS": f"lowerdir={lower},upperdir={upper},workdir={work}",
            "ROOT": str(root),
            "DEVICES": " ".join(DEVICES),
            "CERTIFICATES": options.certificates,
            "VOLUME": str(volume),
            "VOLUME_AT": volume_at,
            "READ_ONLY": str(int(options.read_only)),
            "TMPFS": str(int(options.tmpfs)),
            "WHO": options.user or image.user,
        }
        spaces = ["--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts", *([] if options.network else ["--net"])]
        variables = [f"{name}={value}" for name, value in {**image.env, **options.env}.items()]
        inside = [f"--chdir={image.workdir}", *variables, *command]
        process = subprocess.Popen(
            ["unshare", *spaces, "bash", "-c", ENTER, "enter", *inside],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=default_signals,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def default_signals() -> None:
    """Take signals as in an engine's container, also if this was started by nohup or in the background."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run(image: Image, command: list[str], options: Options, upper: Path | None = None) -> tuple[int, str]:
    """Run a command in a container to its end; return its exit status and what it printed."""
    with started(image, command, options, upper) as process:
        output = process.communicate()[0]
        return process.returncode, output


def first_process(process: subprocess.Popen[str]) -> int:
    """Return the host's number of the container's process 1."""
    text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    return int(text.split()[0])


def compressed(folder: Path) -> int:
    """Return the bytes of a layer as a registry keeps it: a tar file through gzip."""
    command = f"tar -C {shlex.quote(str(folder))} --numeric-owner --sort=name -c . | gzip -6 | wc -c"
    return int(subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout)


def unpacked(folder: Path) -> int:
    """Return the bytes of the files of a layer."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
