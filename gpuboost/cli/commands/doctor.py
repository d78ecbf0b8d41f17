"""``gpuboost doctor``."""

from __future__ import annotations

import click

from gpuboost.cli.program import Command


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def doctor(as_json: bool) -> None:
    """Say what this machine has for training, CUDA above all, and what is wrong with it.

    The exit status is 0 if CUDA can be used, and 1 if not.
    """
    from gpuboost.doctor import main as examine_and_print

    raise SystemExit(examine_and_print(as_json=as_json))
