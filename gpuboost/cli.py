"""The command line: ``gpuboost`` and ``python -m gpuboost``."""

from __future__ import annotations

import click

from gpuboost import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpuboost")
def main() -> None:
    """Multi-class boosting: one model, bit for bit, on every backend."""


@main.command()
@click.option("--rounds", type=click.IntRange(min=1), default=500, show_default=True, help="Boosting rounds on each data set.")
@click.option("--device", default="auto", show_default=True, help="Device to train on.")
@click.option("--jobs", type=int, default=None, help="Threads; all CPUs if not given.")
def demo(rounds: int, device: str, jobs: int | None) -> None:
    """Train on handwritten digits and on poker hands, and compare two backends bit for bit."""
    from gpuboost.demo import run
    from gpuboost.devices import open_backend
    from gpuboost.errors import DeviceUnavailableError

    try:
        chosen = int(device) if device.isdecimal() else device
        open_backend(chosen, jobs).close()  # before anything takes time
        run(rounds=rounds, device=chosen, n_jobs=jobs)
    except (DeviceUnavailableError, ValueError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def doctor(as_json: bool) -> None:
    """Say what this machine has for training, CUDA above all, and what is wrong with it.

    The exit status is 0 if CUDA can be used, and 1 if not.
    """
    from gpuboost.doctor import main as examine_and_print

    raise SystemExit(examine_and_print(as_json=as_json))
