"""The version, and the algorithms by the names that `gpuboost.fit` knows."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

__version__ = "0.1.0"


class Algorithm(NamedTuple):
    """An algorithm's estimator, the module that has it, the paper, and when to use it."""

    estimator: str
    module: str
    paper: str
    use: str


ALGORITHMS = {
    "adaboost-mh": Algorithm(
        "AdaBoostMHClassifier",
        "gpuboost.estimators.adaboost_mh",
        "Kégl 2014",
        "first choice: lowest error in little time, also for multi-label problems in Python",
    ),
    "samme": Algorithm(
        "SAMMEClassifier", "gpuboost.estimators.samme", "Zhu et al. 2009", "the AdaBoost of scikit-learn, with trees of classes"
    ),
    "gamble": Algorithm(
        "GambleClassifier",
        "gpuboost.estimators.gamble",
        "Huang et al. 2007",
        "few labels (ActiveLearner in Python); trees that take quasi-Newton steps",
    ),
    "rebel": Algorithm(
        "RebelClassifier", "gpuboost.estimators.rebel", "Appel et al. 2016", "mistakes with different costs: --cost-matrix"
    ),
    "localized-similarities": Algorithm(
        "LocalizedSimilaritiesClassifier",
        "gpuboost.estimators.localized_similarities",
        "Appel and Perona 2017",
        "columns whose distances mean something, such as pixels and spectra; says which training points decide",
    ),
    "mart": Algorithm(
        "MartClassifier", "gpuboost.estimators.abc_boost", "Friedman 2001", "gradient boosting: a regression tree a class"
    ),
    "logitboost": Algorithm(
        "LogitBoostClassifier", "gpuboost.estimators.abc_boost", "Li 2010", "as mart, split by Newton steps"
    ),
    "abc-boost": Algorithm(
        "ABCBoostClassifier",
        "gpuboost.estimators.abc_boost",
        "Li 2009, 2010",
        "lowest error where mart does well; 3 times its time with 8 classes, with gap=20 little more",
    ),
    "filterboost": Algorithm(
        "FilterBoostClassifier",
        "gpuboost.estimators.filterboost",
        "Bradley 2008",
        "rows that come in a stream, or are more than memory holds; says with a probability when an error is reached",
    ),
    "one-vs-all": Algorithm(
        "OneVsAllClassifier",
        "gpuboost.estimators.one_vs_all",
        "Schapire & Singer 1999",
        "for comparison: a binary AdaBoost for each class, K trees a round",
    ),
    "adaboost-m1": Algorithm(
        "AdaBoostM1Classifier",
        "gpuboost.estimators.adaboost_m1",
        "Freund & Schapire 1997",
        "for comparison: as samme, but it ends where a tree errs on half of the weight",
    ),
    "adaboost-mr": Algorithm(
        "AdaBoostMRClassifier",
        "gpuboost.estimators.adaboost_mr",
        "Schapire & Singer 1999",
        "for comparison: ranks a row's class above each other one; AdaBoost.M2, and .MM with learner=single-label",
    ),
    "adaboost-ecc": Algorithm(
        "AdaBoostECCClassifier",
        "gpuboost.estimators.adaboost_mr",
        "Guruswami & Sahai 1999",
        "for comparison: a binary tree a round for a random division of the classes; AdaBoost.OC with variant=oc",
    ),
    "aoso-logitboost": Algorithm(
        "AOSOLogitBoostClassifier",
        "gpuboost.estimators.aoso_logitboost",
        "Sun et al. 2012",
        "for comparison: as logitboost, with one tree a round, each leaf of which moves two classes of its own",
    ),
}
"""In the order in which they are recommended."""

COMPOSITES = {"OutputCodeClassifier": "gpuboost.estimators.output_code"}
"""The modules of the estimators that train others."""


def estimator_modules() -> dict[str, str]:
    """Return the modules of the estimators by the names of their classes."""
    return {algorithm.estimator: algorithm.module for algorithm in ALGORITHMS.values()}


def estimator_class(name: str) -> Any:
    """Import an estimator by the name of its class; a KeyError if there is none of that name."""
    return getattr(importlib.import_module((estimator_modules() | COMPOSITES)[name]), name)
