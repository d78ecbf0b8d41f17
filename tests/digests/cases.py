"""The trainings of the table of digests: every algorithm, learner, variant and option, on small sets.

The names of parameters are the public ones. Random numbers are raw integers of PCG64, which no release of NumPy changes; only
hold-out sets are drawn by `numpy.random.Generator.permutation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A training.

    Attributes
    ----------
    algorithm : str
        As `gpuboost.fit` takes it.
    data : str
        See `tests.digests.data.DATA`.
    params : dict
        Parameters of the estimator.
    rounds : int
        ``n_estimators``.
    weights : str, optional
        See `tests.digests.data.WEIGHTS`.
    n_watched : int
        Evaluation sets: the rows that are there for it, then the training rows with integer weights.
    stop_at : int, optional
        The round after which a callback asks to stop.
    first : int, optional
        Rounds of the model that is then continued with ``warm_start``.
    warns : bool
        Whether it warns that no column tells rows apart, or that a class costs nothing.
    """

    algorithm: str
    data: str
    params: dict[str, Any] = field(default_factory=dict)
    rounds: int = 8
    weights: str | None = None
    n_watched: int = 0
    stop_at: int | None = None
    first: int | None = None
    warns: bool = False


SAMPLED: dict[str, Any] = {"subsample": 0.75, "max_features": 0.5, "random_state": 5}
ALL_PARTS: dict[str, Any] = {**SAMPLED, "weight_trim": 0.875, "pruning": True}
COSTS_3 = [[0, 1, 4], [2, 0, 1], [9, 3, 0]]
COSTS_4 = [[0, 1, 2, 0.5], [1, 0, 1, 1], [0, 0, 0, 0], [3, 2.25, 1, 0]]
COSTS_5 = {
    "bread": {"eggs": 1, "ham": 2, "späm": 3, "tea": 1},
    "eggs": {"bread": 1, "ham": 1, "späm": 2.5, "tea": 1},
    "ham": {"bread": 4, "eggs": 1, "späm": 1, "tea": 1},
    "späm": {"bread": 1, "eggs": 5, "ham": 3, "tea": 1},
    "tea": {"bread": 1, "eggs": 1, "ham": 1, "späm": 8},
}
FEW = {"max_leaf_nodes": 4}
FILTER: dict[str, Any] = {"examples_per_round": 70, "random_state": 6}
NEWTON = {"max_leaf_nodes": 5, "min_samples_leaf": 4}

CASES: dict[str, Case] = {
    # ---- AdaBoost.MH: learners, variants, initial weights ----
    "mh tree": Case("adaboost-mh", "three"),
    "mh tree, discrete": Case("adaboost-mh", "five", {"variant": "discrete", "max_leaf_nodes": 6}, n_watched=1),
    "mh stump": Case("adaboost-mh", "three", {"learner": "stump"}, rounds=12),
    "mh stump, discrete": Case("adaboost-mh", "five", {"learner": "stump", "variant": "discrete"}, rounds=12),
    "mh product": Case("adaboost-mh", "five", {"learner": "product"}, rounds=4),
    "mh product, discrete": Case("adaboost-mh", "three", {"learner": "product", "variant": "discrete"}, rounds=5),
    "mh product of one": Case("adaboost-mh", "four, missing", {"learner": "product", "n_factors": 1}, rounds=5),
    "mh product of five": Case("adaboost-mh", "ties", {"learner": "product", "n_factors": 5}, rounds=3),
    "mh uniform": Case("adaboost-mh", "three", {"initial_weights": "uniform", **FEW}),
    "mh uniform, discrete": Case("adaboost-mh", "nine", {"initial_weights": "uniform", "variant": "discrete", **FEW}),
    "mh learning rate": Case("adaboost-mh", "five", {"learning_rate": 0.3, "max_leaf_nodes": 7}, n_watched=2),
    "mh large learning rate": Case("adaboost-mh", "three", {"learning_rate": 1000, **FEW}, rounds=4),
    "mh thirty leaves": Case("adaboost-mh", "long", {"max_leaf_nodes": 30}, rounds=4),
    "mh leaves by classes": Case("adaboost-mh", "nine", rounds=4),
    # ---- AdaBoost.MH: classes ----
    "mh two classes": Case("adaboost-mh", "two"),
    "mh two classes, discrete stump": Case("adaboost-mh", "two", {"learner": "stump", "variant": "discrete"}),
    "mh eight classes": Case("adaboost-mh", "eight", {"max_leaf_nodes": 6}),
    "mh seventeen classes": Case("adaboost-mh", "seventeen", {"max_leaf_nodes": 6}, rounds=5),
    "mh thirty-three classes": Case("adaboost-mh", "thirty-three", {"max_leaf_nodes": 6}, rounds=4),
    "mh product, seventeen classes": Case("adaboost-mh", "seventeen", {"learner": "product", "n_factors": 2}, rounds=3),
    "mh multi-label": Case("adaboost-mh", "multi-label", FEW, n_watched=1),
    "mh multi-label, discrete product": Case(
        "adaboost-mh", "multi-label", {"learner": "product", "variant": "discrete", "n_factors": 2}, rounds=4, weights="integer"
    ),
    "mh multi-label, sampled": Case("adaboost-mh", "multi-label", {**ALL_PARTS, **FEW}, weights="real"),
    # ---- AdaBoost.MH: columns ----
    "mh missing": Case("adaboost-mh", "four, missing", {"max_leaf_nodes": 6}, n_watched=1),
    "mh infinities": Case("adaboost-mh", "infinities", FEW),
    "mh constants": Case("adaboost-mh", "constants", FEW),
    "mh ties": Case("adaboost-mh", "ties", {"max_leaf_nodes": 6}),
    "mh edges of zero": Case("adaboost-mh", "halves", FEW, rounds=4),
    "mh edges of zero, product": Case("adaboost-mh", "halves", {"learner": "product", "variant": "discrete"}, rounds=4),
    "mh equal columns": Case("adaboost-mh", "equal columns", FEW),
    "mh wide": Case("adaboost-mh", "wide", FEW, rounds=5),
    "mh one feature": Case("adaboost-mh", "one feature", {"max_leaf_nodes": 5}),
    "mh two bins": Case("adaboost-mh", "five", {"max_bins": 2, "max_leaf_nodes": 6}),
    "mh sixteen bins": Case("adaboost-mh", "fine", {"max_bins": 16, **FEW}),
    "mh 255 bins": Case("adaboost-mh", "fine", FEW, rounds=5),
    "mh separable": Case("adaboost-mh", "separable", FEW),
    "mh float32": Case("adaboost-mh", "float32", FEW, rounds=5),
    "mh data frame": Case("adaboost-mh", "data frame", {"learner": "stump", **SAMPLED}, n_watched=1),
    "mh int8": Case("adaboost-mh", "int8", FEW, rounds=5),
    # ---- AdaBoost.MH: calibration ----
    "mh calibrated": Case("adaboost-mh", "three", {"calibration": "holdout", "random_state": 5, **FEW}, weights="real"),
    "mh calibrated, folds": Case("adaboost-mh", "multi-label", {"calibration": "cv", "random_state": 5, **FEW}, rounds=4),
    # ---- AdaBoost.MH: weights ----
    "mh integer weights": Case("adaboost-mh", "three", FEW, weights="integer"),
    "mh real weights": Case("adaboost-mh", "five", {"max_leaf_nodes": 6, "max_bins": 16}, weights="real", n_watched=2),
    "mh zero weights": Case("adaboost-mh", "three", {"variant": "discrete", **FEW}, weights="zero"),
    "mh weights far apart": Case("adaboost-mh", "four, missing", FEW, weights="far apart"),
    "mh class weights": Case("adaboost-mh", "three", {"class_weight": {0: 2.5, 2: 0.125}, **FEW}, weights="integer"),
    "mh class of no weight": Case("adaboost-mh", "five", {"class_weight": {1: 0}, **FEW}),
    "mh balanced": Case("adaboost-mh", "rare", {"class_weight": "balanced", **FEW}, weights="real", n_watched=1),
    "mh least leaf": Case("adaboost-mh", "five", {"min_weight_fraction_leaf": 0.125, "max_leaf_nodes": 6}, weights="integer"),
    "mh least leaf, product": Case(
        "adaboost-mh", "three", {"min_weight_fraction_leaf": 0.2, "learner": "product"}, rounds=4, weights="real"
    ),
    "mh half of the weight": Case("adaboost-mh", "two", {"min_weight_fraction_leaf": 0.5, "learner": "stump"}, rounds=4),
    # ---- AdaBoost.MH: parts of the data, pruning ----
    "mh trimmed": Case("adaboost-mh", "five", {"weight_trim": 0.75, "max_leaf_nodes": 6}),
    "mh rows": Case("adaboost-mh", "three", {"subsample": 0.5, "random_state": 3, **FEW}),
    "mh features": Case("adaboost-mh", "wide", {"max_features": 0.25, "random_state": 4, **FEW}),
    "mh pruned": Case("adaboost-mh", "wide", {"pruning": True, "max_leaf_nodes": 6}),
    "mh pruned, seventeen classes": Case("adaboost-mh", "seventeen", {"pruning": True, **FEW}, rounds=6),
    "mh pruned product": Case("adaboost-mh", "four, missing", {"pruning": True, "learner": "product"}, rounds=4),
    "mh all parts": Case("adaboost-mh", "four, missing", {**ALL_PARTS, "max_leaf_nodes": 6}, weights="integer"),
    "mh all parts, product": Case("adaboost-mh", "five", {**ALL_PARTS, "learner": "product", "n_factors": 2}, rounds=4),
    "mh all parts, least leaf": Case(
        "adaboost-mh", "three", {**ALL_PARTS, "min_weight_fraction_leaf": 0.1, **FEW}, weights="real"
    ),
    # ---- SAMME and SAMME.R ----
    "samme": Case("samme", "three", {"max_leaf_nodes": 5}, n_watched=1),
    "samme two classes": Case("samme", "two", FEW),
    "samme seventeen classes": Case("samme", "seventeen", {"max_leaf_nodes": 10}, rounds=4),
    "samme, weights, rate": Case(
        "samme", "four, missing", {"learning_rate": 0.5, "class_weight": {2: 3}}, rounds=4, weights="real"
    ),
    "samme edges of zero": Case("samme", "halves", FEW, rounds=4),
    "samme separable": Case("samme", "separable", FEW),
    "samme pruned": Case("samme", "wide", {"pruning": True, **FEW}, rounds=5),
    "samme.r": Case("samme", "three", {"variant": "real", "max_leaf_nodes": 5}, n_watched=1),
    "samme.r nine classes": Case("samme", "nine", {"variant": "real", "learning_rate": 0.25}, rounds=3, weights="integer"),
    "samme.r least leaf": Case(
        "samme", "rare", {"variant": "real", "min_weight_fraction_leaf": 0.1, "class_weight": "balanced"}
    ),
    "samme.r all parts": Case("samme", "four, missing", {"variant": "real", **ALL_PARTS, **FEW}, weights="zero"),
    # ---- GAMBLE ----
    "gamble": Case("gamble", "three", {"max_leaf_nodes": 5}, n_watched=1),
    "gamble two classes": Case("gamble", "two", FEW),
    "gamble paper's rate": Case("gamble", "five", {"learning_rate": 1, "max_leaf_nodes": 6}, weights="integer"),
    "gamble small rate": Case("gamble", "nine", {"learning_rate": 0.0625, "max_leaf_nodes": 8}, rounds=4),
    "gamble line search": Case("gamble", "five", {"learning_rate": "line-search", "max_leaf_nodes": 6}, n_watched=1),
    "gamble line search, nine classes": Case("gamble", "nine", {"learning_rate": "line-search"}, rounds=4, weights="real"),
    "gamble thirty-three classes": Case("gamble", "thirty-three", {"max_leaf_nodes": 8}, rounds=4),
    "gamble missing, least leaf": Case("gamble", "four, missing", {"min_weight_fraction_leaf": 0.1}, weights="far apart"),
    "gamble pruned": Case("gamble", "ties", {"pruning": True, "max_leaf_nodes": 6}),
    "gamble all parts": Case("gamble", "texts", {**ALL_PARTS, "learning_rate": "line-search", "max_leaf_nodes": 6}),
    # ---- REBEL ----
    "rebel": Case("rebel", "three", n_watched=1),
    "rebel stump": Case("rebel", "five", {"max_depth": 1}, rounds=12, weights="integer"),
    "rebel four layers": Case("rebel", "long", {"max_depth": 4, "learning_rate": 0.5}, rounds=4),
    "rebel two classes": Case("rebel", "two", weights="real"),
    "rebel seventeen classes": Case("rebel", "seventeen", {"max_depth": 3}, rounds=5),
    "rebel costs": Case("rebel", "three", {"cost_matrix": COSTS_3}, n_watched=2),
    "rebel costs, texts": Case("rebel", "texts", {"cost_matrix": COSTS_5, "max_depth": 3, "class_weight": {"tea": 2}}),
    "rebel class of no cost": Case(
        "rebel", "four, missing", {"cost_matrix": COSTS_4, "max_depth": 3}, weights="real", warns=True
    ),
    "rebel costs, least leaf": Case(
        "rebel", "ties", {"cost_matrix": COSTS_4, "min_weight_fraction_leaf": 0.1}, weights="integer", warns=True
    ),
    "rebel edges of zero": Case("rebel", "halves", {"max_depth": 3}, rounds=4),
    "rebel pruned": Case("rebel", "wide", {"pruning": True, "max_depth": 3}, rounds=5),
    "rebel all parts": Case("rebel", "three", {"cost_matrix": COSTS_3, "max_depth": 3, **ALL_PARTS}, weights="zero"),
    # ---- localized similarities ----
    "similarities": Case("localized-similarities", "three", {"random_state": 1}, n_watched=1),
    "similarities, best anchor": Case(
        "localized-similarities", "five", {"anchor": "best", "balls": False, "max_candidates": 6}, weights="integer"
    ),
    "similarities, missing": Case(
        "localized-similarities", "four, missing", {"scaling": "common", "max_bins": 64, "random_state": 2}, weights="real"
    ),
    "similarities, costs": Case("localized-similarities", "texts", {"cost_matrix": COSTS_5, "random_state": 3}, rounds=12),
    "similarities, two classes": Case("localized-similarities", "two", {"random_state": 4}, weights="zero"),
    "similarities, seventeen classes": Case("localized-similarities", "seventeen", {"random_state": 5}, rounds=6),
    # ---- MART, LogitBoost, ABC-Boost ----
    "mart": Case("mart", "three", NEWTON, rounds=5, n_watched=1),
    "mart default leaves": Case("mart", "three", rounds=2),
    "mart two classes": Case("mart", "two", NEWTON, rounds=5),
    "mart nine classes, weights": Case("mart", "nine", NEWTON, rounds=3, weights="integer"),
    "mart all parts": Case("mart", "five", {**NEWTON, **SAMPLED, "weight_trim": 0.875}, rounds=4, weights="real"),
    "logitboost": Case("logitboost", "three", NEWTON, rounds=5, n_watched=1),
    "logitboost two classes": Case("logitboost", "two", NEWTON, rounds=5),
    "logitboost missing, weights": Case("logitboost", "four, missing", NEWTON, rounds=4, weights="real"),
    "logitboost seventeen classes": Case("logitboost", "seventeen", {**NEWTON, "learning_rate": 1}, rounds=3),
    "logitboost trimmed": Case("logitboost", "five", {**NEWTON, "weight_trim": 0.75, "class_weight": "balanced"}, rounds=4),
    "logitboost large leaves": Case("logitboost", "ties", {"min_samples_leaf": 40, "max_bins": 2}, rounds=4),
    "abc-mart": Case("abc-boost", "three", {"loss": "mart", **NEWTON}, rounds=4, n_watched=1),
    "abc-mart, gap": Case("abc-boost", "five", {"loss": "mart", "gap": 3, **NEWTON}, rounds=5, weights="integer"),
    "abc-mart, candidates": Case("abc-boost", "nine", {"loss": "mart", "n_candidates": 2, **NEWTON}, rounds=3),
    "abc-logit": Case("abc-boost", "three", NEWTON, rounds=4, n_watched=1),
    "abc-logit, two classes": Case("abc-boost", "two", NEWTON, rounds=4),
    "abc-logit, gap, candidates": Case("abc-boost", "five", {"gap": 2, "n_candidates": 3, **NEWTON}, rounds=5, weights="real"),
    "abc-logit, base class": Case("abc-boost", "texts", {"base_class": "ham", "learning_rate": 0.5, **NEWTON}, rounds=4),
    "abc-logit, no base class": Case("abc-boost", "three", {"base_class": None, **NEWTON}, rounds=4),
    "abc-logit, all parts": Case("abc-boost", "four, missing", {**NEWTON, **SAMPLED, "weight_trim": 0.875}, rounds=4),
    # ---- comparison boosters ----
    "mh single-label": Case("adaboost-mh", "five", {"learner": "single-label", "variant": "discrete", "max_leaf_nodes": 12}),
    "one-vs-all": Case("one-vs-all", "three", FEW, rounds=4, n_watched=1),
    "one-vs-all real, all parts": Case(
        "one-vs-all", "four, missing", {**ALL_PARTS, **FEW, "variant": "real"}, rounds=4, weights="real"
    ),
    "m1": Case("adaboost-m1", "three", {"max_leaf_nodes": 8}, n_watched=1),
    "m1 texts, all parts": Case("adaboost-m1", "texts", {**ALL_PARTS, "max_leaf_nodes": 12}, rounds=4, weights="integer"),
    "mr": Case("adaboost-mr", "three", FEW, n_watched=1),
    "mr two classes": Case("adaboost-mr", "two", FEW, weights="real"),
    "mr real, seventeen classes": Case("adaboost-mr", "seventeen", {"variant": "real", "max_leaf_nodes": 6}, rounds=5),
    "mr product": Case("adaboost-mr", "five", {"learner": "product", "n_factors": 2}, rounds=4, weights="integer"),
    "mm": Case("adaboost-mr", "five", {"learner": "single-label", "max_leaf_nodes": 8}, n_watched=1),
    "mm missing, all parts": Case(
        "adaboost-mr", "four, missing", {**ALL_PARTS, "learner": "single-label", "max_leaf_nodes": 6}, weights="real"
    ),
    "ecc": Case("adaboost-ecc", "five", {**FEW, "random_state": 3}, n_watched=1),
    "ecc leaf, all parts": Case("adaboost-ecc", "texts", {**ALL_PARTS, **FEW, "variant": "leaf"}, weights="zero"),
    "oc given colours": Case(
        "adaboost-ecc", "three", {**FEW, "variant": "oc", "colourings": [[-1, 1, 1], [1, -1, 1], [1, 1, -1]]}, weights="integer"
    ),
    "aoso": Case("aoso-logitboost", "five", NEWTON, n_watched=1),
    "aoso seventeen classes, weights": Case(
        "aoso-logitboost", "seventeen", {**NEWTON, "learning_rate": 1, "class_weight": "balanced"}, rounds=5, weights="real"
    ),
    "aoso, all parts": Case(
        "aoso-logitboost", "four, missing", {**NEWTON, **SAMPLED, "weight_trim": 0.875}, rounds=5, weights="integer"
    ),
    # ---- FilterBoost ----
    "filter": Case("filterboost", "three", {**FILTER, **FEW}, n_watched=1),
    "filter stumps": Case(
        "filterboost",
        "two",
        {**FILTER, "max_leaf_nodes": 2, "leaf_values": "vote", "schedule": "constant", "estimation_examples": 90},
    ),
    "filter nine classes": Case("filterboost", "nine", {**FILTER, "learning_rate": 1, "max_leaf_nodes": 6}, rounds=5),
    "filter colours": Case("filterboost", "five", {**FILTER, **FEW, "multiclass": "oc", "leaf_values": "vote"}, n_watched=1),
    "filter given colours": Case(
        "filterboost",
        "three",
        {**FILTER, **FEW, "multiclass": "oc", "colourings": [[-1, 1, 1], [1, -1, 1], [1, 1, -1]]},
        weights="real",
    ),
    "filter paper's leaves": Case("filterboost", "texts", {**FILTER, **FEW, "leaf_values": "paper"}, weights="integer"),
    "filter fresh leaves, MadaBoost": Case(
        "filterboost", "four, missing", {**FILTER, **FEW, "leaf_values": "fresh", "weighting": "madaboost"}, weights="zero"
    ),
    "filter weighted": Case("filterboost", "five", {**FILTER, **FEW, "draw": "weight"}, weights="far apart"),
    "filter all": Case("filterboost", "three", {**FEW, "draw": "all", "leaf_values": "vote", "random_state": 1}),
    "filter resampled": Case(
        "filterboost", "five", {**FILTER, **FEW, "draw": "resample", "weighting": "exponential", "leaf_values": "vote"}
    ),
    "filter for theory": Case(
        "filterboost",
        "two",
        {**FILTER, **FEW, "leaf_values": "vote", "edge_estimate": "egbstop", "tau": 0.5, "delta": 0.5, "target_error": 0.5},
        rounds=4,
    ),
    "filter, NAS": Case(
        "filterboost", "two", {**FILTER, **FEW, "leaf_values": "vote", "edge_estimate": "nas", "tau": 0.5}, rounds=3
    ),
    "filter, few rows": Case(
        "filterboost",
        "long",
        {**FILTER, **FEW, "recycle": False, "max_examples": 380, "n_bin_rows": 90, "kept_bytes": 0, "examples_per_round": 20},
    ),
    # ---- the end of a training ----
    "smoothed": Case(
        "adaboost-mh", "texts, missing", {"learner": "stump", "early_stopping": "smoothed"}, rounds=60, n_watched=1
    ),
    "smoothed, no change": Case(
        "gamble", "two", {"early_stopping": True, "n_iter_no_change": 2, "max_leaf_nodes": 2}, rounds=70, n_watched=1
    ),
    "patience": Case(
        "samme", "five", {"early_stopping": "patience", "n_iter_no_change": 4, "learning_rate": 0.5}, rounds=9, n_watched=1
    ),
    "patience, costs": Case(
        "rebel",
        "texts",
        {"cost_matrix": COSTS_5, "early_stopping": "patience", "n_iter_no_change": 3},
        rounds=30,
        n_watched=1,
    ),
    "hold-out": Case("logitboost", "five", {**NEWTON, "early_stopping": True, "random_state": 7}, rounds=4),
    "hold-out, patience": Case(
        "adaboost-mh",
        "three",
        {"early_stopping": "patience", "n_iter_no_change": 3, "validation_fraction": 0.25, "random_state": 2, **FEW},
        rounds=20,
        weights="integer",
    ),
    "hold-out, multi-label": Case(
        "adaboost-mh", "multi-label", {"early_stopping": "patience", "random_state": 1, **FEW}, rounds=6
    ),
    "callback": Case("adaboost-mh", "three", FEW, rounds=12, stop_at=5),
    "callback, abc": Case("abc-boost", "three", NEWTON, rounds=12, stop_at=2, n_watched=1),
    "nothing left to learn": Case("adaboost-mh", "separable", {"variant": "discrete", "max_leaf_nodes": 20}),
    # ---- continued trainings: the same as the long ones of the names before the plus ----
    "mh tree, discrete + continued": Case(
        "adaboost-mh", "five", {"variant": "discrete", "max_leaf_nodes": 6}, n_watched=1, first=3
    ),
    "mh all parts + continued": Case(
        "adaboost-mh", "four, missing", {**ALL_PARTS, "max_leaf_nodes": 6}, weights="integer", first=5
    ),
    "samme.r + continued": Case("samme", "three", {"variant": "real", "max_leaf_nodes": 5}, n_watched=1, first=4),
    "gamble line search + continued": Case(
        "gamble", "five", {"learning_rate": "line-search", "max_leaf_nodes": 6}, n_watched=1, first=5
    ),
    "rebel costs + continued": Case("rebel", "three", {"cost_matrix": COSTS_3}, n_watched=2, first=3),
    "similarities + continued": Case("localized-similarities", "three", {"random_state": 1}, n_watched=1, first=3),
    "mart all parts + continued": Case(
        "mart", "five", {**NEWTON, **SAMPLED, "weight_trim": 0.875}, rounds=4, weights="real", first=1
    ),
    "abc-mart, gap + continued": Case(
        "abc-boost", "five", {"loss": "mart", "gap": 3, **NEWTON}, rounds=5, weights="integer", first=2
    ),
    "hold-out, patience + continued": Case(
        "adaboost-mh",
        "three",
        {"early_stopping": "patience", "n_iter_no_change": 3, "validation_fraction": 0.25, "random_state": 2, **FEW},
        rounds=20,
        weights="integer",
        first=2,
    ),
    "one-vs-all + continued": Case("one-vs-all", "three", FEW, rounds=4, n_watched=1, first=2),
    "m1 + continued": Case("adaboost-m1", "three", {"max_leaf_nodes": 8}, n_watched=1, first=4),
    "mm + continued": Case("adaboost-mr", "five", {"learner": "single-label", "max_leaf_nodes": 8}, n_watched=1, first=3),
    "ecc + continued": Case("adaboost-ecc", "five", {**FEW, "random_state": 3}, n_watched=1, first=3),
    "aoso, all parts + continued": Case(
        "aoso-logitboost",
        "four, missing",
        {**NEWTON, **SAMPLED, "weight_trim": 0.875},
        rounds=5,
        weights="integer",
        first=2,
    ),
    "filter + continued": Case("filterboost", "three", {**FILTER, **FEW}, n_watched=1, first=3),
    "filter resampled + continued": Case(
        "filterboost", "five", {**FILTER, **FEW, "draw": "resample", "weighting": "exponential", "leaf_values": "vote"}, first=4
    ),
    # ---- nothing to learn from: the shares of the classes ----
    "one-vs-all prior": Case("one-vs-all", "nothing", weights="integer", warns=True),
    "mh prior": Case("adaboost-mh", "nothing", weights="integer", warns=True),
    "mh multi-label prior": Case("adaboost-mh", "nothing, multi-label", weights="real", warns=True),
    "mh one class": Case("adaboost-mh", "one class", warns=True),
    "samme prior": Case("samme", "nothing", n_watched=1, warns=True),
    "gamble prior": Case("gamble", "nothing", weights="zero", warns=True),
    "rebel prior": Case("rebel", "nothing", warns=True),
    "rebel costs, prior": Case("rebel", "nothing", {"cost_matrix": COSTS_3}, weights="real", warns=True),
    "similarities prior": Case("localized-similarities", "nothing", {"random_state": 6}, weights="integer", warns=True),
    "mart prior": Case("mart", "nothing", warns=True),
    "abc prior": Case("abc-boost", "nothing", weights="integer", warns=True),
}

CONTINUED = " + continued"
"""What follows the name of the case whose model a continued training must give."""

SAVED: dict[str, int | None] = {
    "mh all parts": 5,
    "mh data frame": 3,
    "mh stump, discrete": 6,
    "mh pruned product": 2,
    "mh multi-label, sampled": 4,
    "mh prior": 1,
    "samme pruned": 3,
    "samme.r all parts": 4,
    "gamble all parts": 4,
    "rebel": 4,
    "rebel costs, texts": 4,
    "mart all parts": 2,
    "logitboost missing, weights": 2,
    "abc-logit, base class": 2,
    "abc-mart, gap": 2,
    "patience, costs": 2,
    "hold-out, patience": 2,
    "smoothed": None,
}
"""The cases with a model file, and the round of their training in which it is saved; None: at the end."""
