"""``gpuboost demo``."""

from __future__ import annotations

import click

from gpuboost.cli.options import device_of, device_option, jobs_option
from gpuboost.cli.program import Command


@click.command(cls=Command)
@click.option("--rounds", type=click.IntRange(min=1), default=500, show_default=True, help="Boosting rounds on each data set.")
@device_option
@jobs_option
def demo(rounds: int, device: str, jobs: int | None) -> None:
    """Train on handwritten digits and on poker hands, and compare two backends bit for bit."""
    from gpuboost.demo import run
    from gpuboost.devices import open_backend

    chosen = device_of(device)
    open_backend(chosen, jobs).close()  # before anything takes time
    run(rounds=rounds, device=chosen, n_jobs=jobs)
