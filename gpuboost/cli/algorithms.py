"""``gpuboost algorithms``."""

from __future__ import annotations

import click

from gpuboost.cli.options import Printer, grid, json_option
from gpuboost.cli.program import Command

GUIDE = {
    "adaboost-mh": ("Kégl 2014", "first choice: lowest error in little time, also for multi-label problems in Python"),
    "samme": ("Zhu et al. 2009", "the AdaBoost of scikit-learn, with trees of classes"),
    "gamble": ("Huang et al. 2007", "few labels (ActiveLearner in Python); trees that take quasi-Newton steps"),
    "rebel": ("Appel et al. 2016", "mistakes with different costs: --cost-matrix"),
    "mart": ("Friedman 2001", "gradient boosting, a regression tree for each class"),
    "logitboost": ("Li 2010", "as mart, cut by Newton steps"),
    "abc-boost": ("Li 2009, 2010", "lowest error where mart does well, at many times its time"),
}
"""Papers, and when to use the algorithms of `gpuboost.ALGORITHMS`."""


@click.command(cls=Command)
@json_option
def algorithms(as_json: bool) -> None:
    """List the algorithms: their names, estimators and papers, and when to use them."""
    from gpuboost import ALGORITHMS

    facts = {name: {"estimator": ALGORITHMS[name], "paper": paper, "use": use} for name, (paper, use) in GUIDE.items()}
    rows = [[name, *fact.values()] for name, fact in facts.items()]
    Printer(as_json).result(facts, grid([["name", "estimator", "paper", "when to use it"], *rows], left=4))
