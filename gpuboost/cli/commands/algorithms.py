"""``gpuboost algorithms``."""

from __future__ import annotations

import click

from gpuboost.cli.options import Printer, grid, json_option
from gpuboost.cli.program import Command
from gpuboost.registry import ALGORITHMS


@click.command(cls=Command)
@json_option
def algorithms(as_json: bool) -> None:
    """List the algorithms: their names, estimators and papers, and when to use them."""
    facts = {name: {"estimator": one.estimator, "paper": one.paper, "use": one.use} for name, one in ALGORITHMS.items()}
    rows = [[name, *fact.values()] for name, fact in facts.items()]
    Printer(as_json).result(facts, grid([["name", "estimator", "paper", "when to use it"], *rows], left=4))
