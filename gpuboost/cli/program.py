"""What all commands do with errors: a message on the standard error, and an exit status; a traceback only with ``--debug``."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import json
import os
import sys
import warnings
from typing import Any

import click

from gpuboost.cli.interrupts import interrupt_on
from gpuboost.errors import DeviceUnavailableError, is_interrupt

EXPECTED = (ValueError, TypeError, OSError, MemoryError, ImportError, RuntimeError)
"""What the library raises with a message for its user."""

INTERRUPTED = 130
"""The exit status after Ctrl-C, as of a shell's command that SIGINT has ended."""


class Interrupted(Exception):
    """The user pressed Ctrl-C. The text says what is left of the work."""


class Command(click.Command):
    """A command with the option ``--debug``."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        debug: dict[str, Any] = {"is_flag": True, "expose_value": False, "help": "Show the traceback of an error."}
        self.params.append(click.Option(["--debug"], callback=remember, **debug))


def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Keep the value of ``--debug`` for `Program`."""
    context.find_root().meta["debug"] = value


class Program(click.Group):
    """The group of commands."""

    command_class = Command

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command as all that the process does."""
        atexit.register(gc.freeze)  # or Python looks through all objects before it ends, for longer than many commands take
        interrupt_on("SIGINT")
        prepare_streams()
        return super().main(*args, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read what stands before the command; ``--help`` and ``--version`` are all done here."""
        try:
            return super().make_context(*args, **extra)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            say(f"Error: {message(error)}", 1)
            raise click.exceptions.Exit(1) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and turn what it raises into a message and an exit status."""
        words = list(ctx.args)  # an error in one of them may come before --json is read
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")  # `Layout.find` has a note of it
            warnings.showwarning = show_warning  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except click.ClickException as error:
                if ctx.meta.get("json") or "--json" in words:
                    echo_json(error.format_message(), error.exit_code)
                raise
            except (click.exceptions.Exit, click.Abort):
                raise
            except (KeyboardInterrupt, Interrupted) as error:
                fail(ctx, f"Interrupted: {error}" if str(error) else "Interrupted.", INTERRUPTED)
            except Exception as error:
                if is_interrupt(error):
                    fail(ctx, "Interrupted.", INTERRUPTED)
                if ctx.meta.get("debug") or getattr(error, "errno", None) == errno.EPIPE:
                    raise  # click is silent about a reader that has gone
                fail(ctx, f"Error: {message(error)}", 1)


def prepare_streams() -> None:
    """See that no character and no closed stream keeps people from reading the rest of a message."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def fail(context: click.Context, text: str, status: int) -> None:
    """Say what is wrong and end."""
    say(text, status, as_json=bool(context.meta.get("json")))
    context.exit(status)


def say(text: str, status: int, *, as_json: bool = False) -> None:
    """Say what is wrong; if wanted as the one object on the standard output, too."""
    click.echo(text, err=True)
    try:
        if sys.stdout is not None:  # None if it is closed
            sys.stdout.flush()
    except OSError:  # the standard output is on a full disk
        drop_output()
    if as_json:
        echo_json(text.partition(": ")[2] or text, status)


def echo_json(text: str, status: int) -> None:
    """Say as an object what is wrong."""
    try:
        click.echo(json.dumps({"error": text, "exit_status": status}))
    except OSError:  # the standard error has it
        drop_output()


def drop_output() -> None:
    """Forget what could not be written to the standard output, so that the end of the process does not try it again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def message(error: Exception) -> str:
    """Return what an error says, in one line; what there is to know and to do about a device has more."""
    if isinstance(error, DeviceUnavailableError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    else:
        text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, EXPECTED):
        return text
    return f"unexpected {type(error).__name__}: {text}; please report it, with what --debug prints"


def show_warning(text: Warning | str, category: type[Warning], *_: Any) -> None:
    """Print a warning that is for users in a line; others, such as those of deprecation, are for programmers."""
    if issubclass(category, (UserWarning, RuntimeWarning)):  # the latter of a checkpoint that cannot be written
        click.echo(f"Warning: {' '.join(str(text).split())}", err=True)
