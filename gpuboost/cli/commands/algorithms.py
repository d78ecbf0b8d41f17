"""``gpuboost algorithms``."""

from __future__ import annotations

import inspect
import re
from typing import Any

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
    "abc-boost": (
        "Li 2009, 2010",
        "lowest error where mart does well; 3 times its time with 8 classes, with gap=20 little more",
    ),
}
"""Papers, and when to use the algorithms. Of others the docstring's summary says it, see `summary`."""


@click.command(cls=Command)
@json_option
def algorithms(as_json: bool) -> None:
    """List the algorithms: their names, estimators and papers, and when to use them."""
    import gpuboost
    from gpuboost import ALGORITHMS

    facts = {}
    for name in sorted(ALGORITHMS, key=[*GUIDE, *ALGORITHMS].index):
        paper, use = GUIDE.get(name) or summary(getattr(gpuboost, ALGORITHMS[name]))
        facts[name] = {"estimator": ALGORITHMS[name], "paper": paper, "use": use}
    rows = [[name, *fact.values()] for name, fact in facts.items()]
    Printer(as_json).result(facts, grid([["name", "estimator", "paper", "when to use it"], *rows], left=4))


def summary(estimator: type[Any]) -> tuple[str, str]:
    """Return the paper and the rest of a docstring's first sentence, such as "Gentle AdaBoost.MH (Friedman et al. 2000)."."""
    text = " ".join((inspect.getdoc(estimator) or "").partition("\n\n")[0].split()).removesuffix(".")
    found = re.fullmatch(r"(.*) \(([^()]*\d{4})\)", text)
    return (found[2], found[1]) if found else ("", text)
