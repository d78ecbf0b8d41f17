"""The claims of section 4 of the FilterBoost paper: seen or not, by how much, and with what spread over the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from filtering.runs import CHECKPOINTS, Run

SIMILAR = 0.05
"""Figures within this share of each other are "similar"; "a bit" and "about" are within three times that."""

SET_NAMES = {
    "majority": "Majority",
    "majority500k": "Majority, 500,000 rows",
    "twonorm": "Twonorm",
    "adult": "Adult",
    "covertype2": "Covertype in two classes",
}


class Finding(NamedTuple):
    """Whether something was seen; None where the runs for it are missing."""

    seen: bool | None
    numbers: str


class Results:
    """Runs by set, learner and booster."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.groups: dict[tuple[str, str, str], list[Run]] = {}
        for run in runs:
            self.groups.setdefault((run["set"], run["learner"], run["booster"]), []).append(run)

    def of(self, name: str, learner: str, booster: str) -> list[Run]:
        return self.groups[name, learner, booster]

    def last(self, name: str, learner: str, booster: str, what: str) -> np.ndarray:
        return np.array([run["curve"][-1][what] for run in self.of(name, learner, booster)])

    def lowest(self, name: str, learner: str, booster: str, what: str) -> np.ndarray:
        return np.array([min(point[what] for point in run["curve"]) for run in self.of(name, learner, booster)])

    def ratio(self, name: str, learner: str, a: str, b: str, what: str) -> tuple[float, str]:
        """Return the mean of a as a share of that of b, and both in words."""
        first, second = self.last(name, learner, a, what), self.last(name, learner, b, what)
        text = f"{SET_NAMES[name]}, {learner}: {a} {shown(first, what)}, {b} {shown(second, what)}"
        return float(first.mean() / second.mean()), text

    def round_time(self, name: str, learner: str, booster: str, rounds: int = 100) -> np.ndarray:
        """Return the seconds of a round in the first ``rounds``."""
        return np.array([at_round(run, rounds)["seconds"] / rounds for run in self.of(name, learner, booster)])


def at_round(run: Run, rounds: int) -> Run:
    """Return the last point of the curve up to a round."""
    point: Run = [p for p in run["curve"] if p["round"] <= rounds][-1]
    return point


def shown(numbers: np.ndarray, what: str) -> str:
    scale, digits = (100, 2) if what == "error" else (1, 3)
    unit = " %" if what == "error" else ""
    spread = f" ± {scale * numbers.std(ddof=1):.{digits}f}" if len(numbers) > 1 else ""
    return f"{scale * numbers.mean():.{digits}f}{spread}{unit}"


def _all(parts: Sequence[tuple[bool, str]]) -> Finding:
    return Finding(all(seen for seen, _ in parts), "; ".join(text for _, text in parts))


def compared(what: str, learner: str, a: str, b: str, bounds: dict[str, tuple[float, float]]) -> Callable[[Results], Finding]:
    """Return a claim that a's figure is between so many and so many times b's, on each of some sets."""

    def claim(results: Results) -> Finding:
        parts = []
        for name, (low, high) in bounds.items():
            ratio, text = results.ratio(name, learner, a, b, what)
            parts.append((low <= ratio <= high, text))
        return _all(parts)

    return claim


def a_single_run(results: Results) -> Finding:
    parts = []
    for run in results.of("majority", "stumps", "FilterBoost"):
        curve, history = run["curve"], run["history"]
        half = len(history["edge"]) // 2
        early, late = np.mean(history["edge"][:half]), np.mean(history["edge"][half:])
        loose = history["bound"][-1] / curve[-1]["error"]
        falls = history["acceptance"][-1] < history["acceptance"][0]
        ok = curve[-1]["error"] < curve[0]["error"] and loose > 1.2 and late < early and run["edges_that_rise"] > 0 and falls
        parts.append((ok, f"bound / error {loose:.2f}, acceptance at the end {history['acceptance'][-1]:.3f}"))
    return _all(parts)


def faster_on_large_sets(results: Results) -> Finding:
    a = [results.round_time(name, "stumps", "FilterBoost").mean() for name in ("majority", "majority500k")]
    b = [results.round_time(name, "stumps", "AdaBoost").mean() for name in ("majority", "majority500k")]
    text = "; ".join(
        f"{n} rows: FilterBoost {1e3 * x:.1f} ms a round, AdaBoost {1e3 * y:.1f}"
        for n, x, y in zip(("10,000", "500,000"), a, b, strict=True)
    )
    return Finding(a[0] > b[0] and a[1] < b[1] / 2, text)


def madaboost_draws_less(results: Results) -> Finding:
    parts = []
    for name in ("majority", "twonorm", "adult"):
        mada, filt = (results.last(name, "stumps", booster, "draws").mean() for booster in ("MadaBoost", "FilterBoost"))
        parts.append(
            (0.5 * filt <= mada <= filt, f"{SET_NAMES[name]}: {mada / 1e6:.2f} M draws, FilterBoost {filt / 1e6:.2f} M")
        )
    return _all(parts)


def only_filterboost_holds(results: Results) -> Finding:
    parts = []
    for name in ("adult", "majority", "twonorm"):
        rise = {}
        for booster in ("FilterBoost", "FilterBoost (C-R)", "AdaBoost-LOG", "AdaBoost-LOG (C-R)"):
            rise[booster] = float(
                np.mean(results.last(name, "trees", booster, "log_loss") / results.lowest(name, "trees", booster, "log_loss"))
            )
        others = [ratio for booster, ratio in rise.items() if booster != "FilterBoost"]
        text = ", ".join(f"{booster} {ratio:.2f}" for booster, ratio in rise.items())
        parts.append(
            (
                rise["FilterBoost"] < 1.25 and min(others) > rise["FilterBoost"],
                f"{SET_NAMES[name]}: last / lowest log loss: {text}",
            )
        )
    return _all(parts)


def approaches_regression(results: Results) -> Finding:
    loss, rmse = (results.last("majority", "stumps", "FilterBoost", what) for what in ("log_loss", "rmse"))
    seen = bool(loss.mean() < 0.4259 * 1.03 and rmse.mean() < 0.3489 * 1.03)
    return Finding(seen, f"log loss {shown(loss, 'log_loss')} (0.4259), RMSE {shown(rmse, 'rmse')} (0.3489)")


def only_batch_trees_do_well(results: Results) -> Finding:
    batch = results.last("covertype2", "trees", "AdaBoost", "error")
    parts = []
    for booster in ("FilterBoost", "AdaBoost (resamp)", "MadaBoost"):
        own = results.last("covertype2", "trees", booster, "error")
        parts.append((bool(own.mean() > batch.mean() + 0.01), f"{booster} {shown(own, 'error')}"))
    finding = _all(parts)
    return Finding(finding.seen, f"AdaBoost {shown(batch, 'error')}; {finding.numbers}")


def more_rows_are_better(results: Results) -> Finding:
    parts = []
    for booster in ("FilterBoost", "MadaBoost", "AdaBoost"):
        small, large = (results.last(name, "stumps", booster, "error") for name in ("majority", "majority500k"))
        parts.append((bool(large.mean() < small.mean()), f"{booster} {shown(small, 'error')} and {shown(large, 'error')}"))
    return _all(parts)


def trees_are_slower(results: Results) -> Finding:
    parts = []
    for booster in ("FilterBoost", "MadaBoost", "AdaBoost"):
        stumps, trees = (results.last("majority", learner, booster, "error") for learner in ("stumps", "trees"))
        parts.append(
            (bool(trees.mean() > stumps.mean()), f"{booster}: stumps {shown(stumps, 'error')}, trees {shown(trees, 'error')}")
        )
    return _all(parts)


F, CR = "FilterBoost", "FilterBoost (C-R)"
BETTER, WORSE = (0.0, 1.0), (1.0, 99.0)
ABOUT, A_BIT_WORSE = (1 - 3 * SIMILAR, 1 + 3 * SIMILAR), (1.0, 1 + 6 * SIMILAR)

CLAIMS: dict[str, Callable[[Results], Finding]] = {
    "4: the error falls, 2 p_t is loose, edges fall on average but not always, p_t falls": a_single_run,
    "4.2: filters are slower a round on small sets, much faster on large ones": faster_on_large_sets,
    "4.2: MadaBoost is faster by a constant (here: draws less)": madaboost_draws_less,
    "4.3, stumps: FilterBoost's log loss is a bit better than AdaBoost's on Adult": compared(
        "log_loss", "stumps", F, "AdaBoost", {"adult": BETTER}
    ),
    "4.3, stumps: similar on Majority": compared("log_loss", "stumps", F, "AdaBoost", {"majority": ABOUT}),
    "4.3, stumps: a bit worse on Twonorm": compared("log_loss", "stumps", F, "AdaBoost", {"twonorm": A_BIT_WORSE}),
    "4.3, trees: FilterBoost's log loss is strictly better than AdaBoost-LOG's": compared(
        "log_loss", "trees", F, "AdaBoost-LOG", dict.fromkeys(("adult", "majority", "twonorm"), BETTER)
    ),
    "4.3, trees: so is C-R's than AdaBoost-LOG (C-R)'s": compared(
        "log_loss", "trees", CR, "AdaBoost-LOG (C-R)", dict.fromkeys(("adult", "majority", "twonorm"), BETTER)
    ),
    "4.3, trees: all but FilterBoost overfit": only_filterboost_holds,
    "4.3: stumps come near logistic regression on Majority": approaches_regression,
    "4.3: Covertype, stumps: the filter is competitive": compared(
        "log_loss", "stumps", F, "AdaBoost", {"covertype2": (0.0, 1.15)}
    ),
    "4.3: Covertype, trees: only batch boosters that train on all rows do well": only_batch_trees_do_well,
    "4.4: FilterBoost and MadaBoost perform similarly": compared(
        "error", "stumps", F, "MadaBoost", dict.fromkeys(("majority", "twonorm", "adult"), ABOUT)
    ),
    "4.4, stumps: C-R is better than MadaBoost on Adult and Covertype": compared(
        "error", "stumps", CR, "MadaBoost", dict.fromkeys(("adult", "covertype2"), BETTER)
    ),
    "4.4, trees: C-R is worse than FilterBoost on Twonorm and Covertype": compared(
        "error", "trees", CR, F, dict.fromkeys(("twonorm", "covertype2"), WORSE)
    ),
    "4.4, stumps: FilterBoost's error is below AdaBoost's on Adult": compared(
        "error", "stumps", F, "AdaBoost", {"adult": BETTER}
    ),
    "4.4, stumps: about the same on Majority": compared("error", "stumps", F, "AdaBoost", {"majority": ABOUT}),
    "4.4, stumps: a bit worse on Twonorm": compared("error", "stumps", F, "AdaBoost", {"twonorm": A_BIT_WORSE}),
    "4.4, stumps: all have lower errors on the large Majority": more_rows_are_better,
    "4.4, Majority: all learn more slowly with trees": trees_are_slower,
    "4.4, Covertype, stumps: FilterBoost is better than AdaBoost": compared(
        "error", "stumps", F, "AdaBoost", {"covertype2": BETTER}
    ),
    "4.4, Covertype, trees: AdaBoost is much better": compared("error", "trees", F, "AdaBoost", {"covertype2": (1.1, 99.0)}),
}


def findings(runs: Iterable[Run]) -> dict[str, Finding]:
    """Look for every claim."""
    results, found = Results(runs), {}
    for claim, look in CLAIMS.items():
        try:
            found[claim] = look(results)
        except KeyError as missing:
            found[claim] = Finding(None, f"no runs of {missing}")
    return found


def mean_curve(runs: Sequence[Run], what: str) -> list[dict[str, Any]]:
    """Return the means over the runs at the checkpoints that all have reached."""
    points = [{point["round"]: point for point in run["curve"]} for run in runs]
    common = [t for t in CHECKPOINTS if all(t in own for own in points)]
    return [
        {key: float(np.mean([own[t][key] for own in points])) for key in ("round", "draws", "seconds", what)} for t in common
    ]
