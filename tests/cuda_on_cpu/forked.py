"""Run a function many times where each run may end the process: with a report of a sanitizer, a crash or a time limit.

One process is started for each mode, and forks for each run, so that Python and NumPy are loaded once.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from tests.cuda_on_cpu import sanitized


def outcomes(mode: str, function: str, names: Sequence[str], limit: int = 240) -> dict[str, str | None]:
    """Call a function with each name in a process of its own.

    Parameters
    ----------
    mode : {"", "asan", "tsan"}
    function : str
        As "module:function".
    names : sequence of str
    limit : int
        Seconds for a call.

    Returns
    -------
    dict of str to (str or None)
        None if the call returned, else why it did not.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "outcomes.json"
        done = sanitized.run(mode, "-m", "tests.cuda_on_cpu.forked", function, str(answer), str(limit), *names)
        if done.returncode != 0:
            raise RuntimeError(f"cannot run {function} in mode {mode!r}:\n{done.stdout}")
        found: dict[str, str | None] = json.loads(answer.read_text(encoding="utf-8"))
        return found


def outcome(call: Callable[[str], None], name: str, limit: int) -> str | None:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            run_child(call, name, limit, output.fileno())
        _, status = os.waitpid(child, 0)
        if status == 0:
            return None
        output.seek(0)
        text = output.read().decode(errors="replace")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return f"no end after {limit} seconds"
    if os.WIFSIGNALED(status) and not text.strip():
        return signal.Signals(os.WTERMSIG(status)).name
    return sanitized.reason(text)


def run_child(call: Callable[[str], None], name: str, limit: int, output: int) -> NoReturn:
    """Call, and leave the process: with status 0 if the call returned."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.alarm(limit)
    try:
        call(name)
    except BaseException as error:
        line = traceback.extract_tb(error.__traceback__)[-1].line
        os.write(2, f"{type(error).__name__}: {error} [{line}]".encode())
        os._exit(1)
    os._exit(0)


def main(function: str, answer: str, limit: str, *names: str) -> None:
    module, attribute = function.split(":")
    call = getattr(importlib.import_module(module), attribute)
    found = {name: outcome(call, name, int(limit)) for name in names}
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
