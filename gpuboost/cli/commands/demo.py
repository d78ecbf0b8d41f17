"""``gpuboost demo``."""

from __future__ import annotations

import click

from gpuboost.cli.options import device_option, jobs_option
from gpuboost.cli.program import Command


@click.command(cls=Command)
@click.option("--rounds", type=click.IntRange(min=1), default=500, show_default=True, help="Boosting rounds on each data set.")
@device_option
@jobs_option
def demo(rounds: int, device: str | int, jobs: int | None) -> None:
    """Train on handwritten digits and on poker hands, and compare two backends bit for bit."""
    from gpuboost.demo import run
    from gpuboost.devices import open_backend

    open_backend(device, jobs).close()  # before anything takes time
    run(rounds=rounds, device=device, n_jobs=jobs)
