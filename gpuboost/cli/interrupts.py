"""Signals that interrupt a command, at whatever moment they come: while modules are imported, too."""

from __future__ import annotations

import signal
import sys
import threading
from _thread import interrupt_main
from typing import Any, NoReturn


class Interrupt(KeyboardInterrupt):
    """A signal has come.

    Its own type, as Python kills itself by SIGINT at its end, whatever the exit status should be, if a plain KeyboardInterrupt
    has passed through the ``exec`` of a text; what is imported does that often.
    """


def interrupt_on(*names: str) -> None:
    """Raise an `Interrupt` on signals of these names; those that are ignored, as by nohup, stay so."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in names:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _interrupt_again


def _interrupt(*_: Any) -> NoReturn:
    raise Interrupt


def _interrupt_again(unraisable: Any) -> None:
    """Interrupt once more what was in the middle of a call that swallows all exceptions, such as one of the import system."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        threading.Timer(0.01, interrupt_main).start()  # when that call has ended
    else:
        sys.__unraisablehook__(unraisable)
