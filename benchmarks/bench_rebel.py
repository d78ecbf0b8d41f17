"""REBEL: layered trees on real data, and what training with costs is worth.

    python benchmarks/bench_rebel.py [--data-dir DIR] [--parts trees,costs,surrogate] [--out benchmarks/results]

``trees``      test errors of 200 layered trees of each depth with equal costs, on the original splits of ``--sets``
``costs``      100 synthetic problems as in figure 4.5 of Appel's thesis (1000 training and 500 test points, three classes of
               overlapping clusters, random costs, 100 stumps): the test cost of REBEL trained with the costs beside that of the
               same booster trained without them, and of the two-step way (its probabilities, and the costs at prediction)
``surrogate``  how often, and at what cost, the minimiser of REBEL's loss predicts another class than the one of least
               expected cost, if the class distribution is known

``DIR/<name>.npz`` is as in bench_cpu.py; without a directory the sets are downloaded. One thread.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _tables import markdown

import gpuboost
from gpuboost import RebelClassifier, mean_cost, min_cost_labels
from gpuboost.boosters.rebel import subcosts
from gpuboost.datasets import fetch_uci, read_dataset

Row = dict[str, Any]

LEARNERS = 200
N_PROBLEMS = 100
N_DRAWS = 20_000


def rebel(**params: Any) -> RebelClassifier:
    return RebelClassifier(device="cpu", n_jobs=1, **params)


# ---- layered trees -----------------------------------------------------------------------------------------------------------


def layered_trees(sets: list[str], data_dir: Path | None) -> list[Row]:
    """Fit trees of each depth; the constant classifier is a round of its own."""
    rebel(n_estimators=3).fit(np.arange(9.0)[:, None], np.arange(9) % 3)  # compile
    rows = []
    for name in sets:
        data = fetch_uci(name) if data_dir is None else read_dataset(data_dir / f"{name}.npz")
        for depth in (1, 2, 3, 4):
            begun = time.perf_counter()
            model = rebel(max_depth=depth, n_estimators=1 + LEARNERS).fit(data.X_train, data.y_train)
            seconds = time.perf_counter() - begun
            errors = [float(np.mean(p != data.y_test)) for p in model.staged_predict(data.X_test)]
            losses = [1.0, *model.history_["train_loss"]]
            rows.append(
                {
                    "data": name,
                    "depth": depth,
                    "test_error": errors[-1],
                    "lowest": min(errors),
                    "train_error": model.history_["train_error"][-1],
                    "loss": losses[-1],
                    "rises": sum(after > before for before, after in itertools.pairwise(losses)),
                    "seconds": seconds,
                }
            )
    return rows


def tree_table(rows: list[Row]) -> str:
    return markdown(
        ["data", "depth", "test error, %", "lowest on the way, %", "training error, %", "loss", "rises of the loss", "fit, s"],
        [
            [
                r["data"],
                str(r["depth"]),
                *(f"{100 * r[key]:.2f}" for key in ("test_error", "lowest", "train_error")),
                f"{r['loss']:.3g}",
                str(r["rises"]),
                f"{r['seconds']:.1f}",
            ]
            for r in rows
        ],
    )


# ---- costs -------------------------------------------------------------------------------------------------------------------


def mixture(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw 1500 points of the plane, their classes, and costs such that a random guess costs 1 on average."""
    rng = np.random.default_rng(seed)
    class_of = np.repeat(np.arange(3), rng.integers(2, 5, 3))  # two to four clusters for each class
    centres, spread = rng.normal(size=(len(class_of), 2)), rng.uniform(0.3, 0.8, len(class_of))
    cluster = rng.integers(0, len(class_of), 1500)
    X = centres[cluster] + spread[cluster, None] * rng.normal(size=(1500, 2))
    y = class_of[cluster]
    costs = abs(rng.normal(size=(3, 3))) * (1 - np.eye(3))
    guess = (np.bincount(y, minlength=3) / len(y) @ costs).mean()
    return X, y, costs / guess


def one_against_rest(scores: np.ndarray, sharpness: float = 2.0) -> np.ndarray:
    p = 1 / (1 + np.exp(-sharpness * scores))
    return p / p.sum(axis=1, keepdims=True)


def behind_scores(scores: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the class distributions for which the scores minimise REBEL's loss with these costs.

    There ``exp(2 H_k) = p_k c-_k / sum_y p_y c+_yk``: p is the positive eigenvector of a matrix that is not negative.
    """
    of_class = subcosts(len(costs), costs)
    own = np.diag(of_class)
    proba = []
    for ratio in np.exp(2 * scores):
        values, vectors = np.linalg.eig((ratio / own)[:, None] * (of_class - np.diag(own)).T)
        p = abs(vectors[:, values.real.argmax()].real)
        proba.append(p / p.sum())
    return np.array(proba)


WAYS = {
    "rebel": "REBEL with costs",
    "blind": "REBEL without costs",
    "two_step": "the same, and costs at prediction",
    "overconfident": "the same, with log odds four times too large",
    "read_back": "REBEL with costs, its scores read as probabilities",
}


def problem_costs(seed: int, depth: int) -> Row:
    """Return the test cost of each way on one problem, with 100 trees."""
    X, y, costs = mixture(seed)
    train, test = slice(0, 1000), slice(1000, None)
    sizes = {"max_depth": depth, "n_estimators": 101}
    aware = rebel(cost_matrix=costs, **sizes).fit(X[train], y[train])
    blind = rebel(**sizes).fit(X[train], y[train])
    scores = blind.decision_function(X[test])
    found: dict[str, Callable[[], Any]] = {
        "rebel": lambda: aware.predict(X[test]),
        "blind": lambda: blind.predict(X[test]),
        "two_step": lambda: blind.predict(X[test], cost_matrix=costs),
        "overconfident": lambda: min_cost_labels(one_against_rest(scores, 8.0), costs),
        "read_back": lambda: min_cost_labels(behind_scores(aware.decision_function(X[test]), costs), costs),
    }
    return {"problem": seed, "depth": depth, **{way: mean_cost(y[test], predict(), costs) for way, predict in found.items()}}


def cost_table(rows: list[Row]) -> str:
    def lines() -> Any:
        for depth in sorted({r["depth"] for r in rows}):
            own = {way: np.array([r[way] for r in rows if r["depth"] == depth]) for way in WAYS}
            for way, title in WAYS.items():
                ratio = own["rebel"] / own[way]
                at_most, below = (f"{100 * np.mean(share):.0f}" for share in (ratio <= 1, ratio < 1))
                shown = ["-", "-", "-"] if way == "rebel" else [at_most, below, f"{ratio.mean():.3f}"]
                yield [str(depth), title, f"{own[way].mean():.3f}", *shown]

    return markdown(
        [
            "depth",
            "way",
            "mean test cost",
            "REBEL costs at most as much, % of problems",
            "less, %",
            "mean ratio of REBEL to it",
        ],
        lines(),
    )


# ---- the surrogate -----------------------------------------------------------------------------------------------------------


def surrogate(n_classes: int) -> Row:
    """Compare decisions on random distributions (uniform on the simplex) and costs (absolute values of normal numbers)."""
    rng = np.random.default_rng(0)
    other, spent = 0, np.zeros(3)
    for _ in range(N_DRAWS):
        costs = abs(rng.normal(size=(n_classes, n_classes))) * (1 - np.eye(n_classes))
        p = rng.dirichlet(np.ones(n_classes))
        norm = np.sqrt((costs**2).sum(axis=1))  # subcosts: |c| / (2 sqrt(K - 1)) and sqrt(K - 1) / (2 |c|) c^2
        chosen = int((p * norm / (p @ (costs**2 / norm[:, None]))).argmax())
        expected = p @ costs
        other += chosen != expected.argmin()
        spent += [expected[chosen], expected.min(), expected[p.argmax()]]
    return {"classes": n_classes, "other_class": other / N_DRAWS, "cost": spent[0] / spent[1], "blind": spent[2] / spent[1]}


def surrogate_table(rows: list[Row]) -> str:
    return markdown(
        ["classes", "another class than the cheapest, %", "its cost / the least", "cost of the likeliest class / the least"],
        [[str(r["classes"]), f"{100 * r['other_class']:.1f}", f"{r['cost']:.3f}", f"{r['blind']:.3f}"] for r in rows],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", default="satimage,letter")
    parser.add_argument("--parts", default="trees,costs,surrogate")
    parser.add_argument("--problems", type=int, default=N_PROBLEMS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()

    parts: dict[str, tuple[str, Callable[[], list[Row]], Callable[[list[Row]], str]]] = {
        "trees": (
            f"{LEARNERS} layered trees, equal costs",
            lambda: layered_trees(args.sets.split(","), args.data_dir),
            tree_table,
        ),
        "costs": (
            f"{args.problems} synthetic problems with random costs, 100 trees",
            lambda: [problem_costs(seed, depth) for depth in (1, 2) for seed in range(args.problems)],
            cost_table,
        ),
        "surrogate": ("The minimiser of the loss", lambda: [surrogate(k) for k in (2, 3, 5, 10)], surrogate_table),
    }
    found, text = {}, f"# REBEL, gpuboost {gpuboost.__version__}, {datetime.date.today()}\n"
    for part in args.parts.split(","):
        title, measure, table = parts[part]
        found[part] = measure()
        section = f"\n## {title}\n\n{table(found[part])}\n"
        print(section, flush=True)
        text += section
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"rebel-{datetime.date.today()}"
    path.with_suffix(".md").write_text(text)
    path.with_suffix(".json").write_text(json.dumps({"gpuboost": gpuboost.__version__, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
