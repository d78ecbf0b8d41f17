"""MART, LogitBoost and ABC-Boost: test errors beside the published ones, and time beside other libraries.

    python benchmarks/bench_abc.py [poker] [order] [speed] [mnist10k] [covertype] [--data-dir DIR] [--out benchmarks/results]

poker      25,010 hands, 500 rounds: test errors beside those of Li's C++ implementation, and of runs that should be the same:
           the columns in other orders, and a rate that differs by parts in 10,000. A tie between cuts that is broken otherwise,
           or a sum that is rounded otherwise, changes all that follows, above all which class is the base class: the spread of
           these runs says how much of a difference means nothing. LightGBM, XGBoost and HistGradientBoosting beside them, with
           as many leaves, rounds and the same rate, 10 rows a leaf where there is such a parameter, and else their defaults, or
           another weight of their L2 penalty.
order      three fresh draws of `make_poker_hands`: ABC-MART beside MART, with the same spread.
speed      time of a round on the poker hands, one thread, beside LightGBM, XGBoost and HistGradientBoosting, interleaved. What
           limits a round is the additions of its trees' histograms: rows x features x 4 channels for every level of a tree.
mnist10k   trained on MNIST's 10,000 test images, tested on its 60,000 training images (tables 2 and 3 of Li, Fast ABC-Boost).
covertype  the paper's split in two halves: ABC-MART with gaps 1, 20 and 100, and MART.

All with 20 leaves, learning rate 0.1 and at least 10 rows a leaf. ``DIR`` has poker25k.npz, mnist.npz and covtype.npz; without
it the hands are drawn anew and the other sets are downloaded.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _tables import markdown

import gpuboost
from gpuboost.datasets import Dataset, fetch_covtype, fetch_mnist, make_poker_hands, read_dataset

METHODS: dict[str, dict[str, Any]] = {
    "mart": {"loss": "mart", "base_class": None},
    "logitboost": {"loss": "logit", "base_class": None},
    "abc-mart": {"loss": "mart"},
    "abc-logitboost": {"loss": "logit"},
    "abc-mart, gap 21": {"loss": "mart", "gap": 21},
    "abc-logitboost, gap 21": {"loss": "logit", "gap": 21},
}
CPP = {
    "mart": 25.0,
    "logitboost": 26.5,
    "abc-mart": 14.1,
    "abc-logitboost": 17.0,
    "abc-mart, gap 21": 13.2,
    "abc-logitboost, gap 21": 16.1,
}
"""Test errors of the C++ implementation on the same hands in %; its ``-gap 20`` searches in every 21st round."""
PAPER_MNIST10K = {"mart": 2815, "abc-mart": 2440, "logitboost": 2381, "abc-logitboost": 2102}

Arrays = tuple[Any, Any, Any, Any]


def fit(X: Any, y: Any, rounds: int, n_jobs: int, **params: Any) -> gpuboost.ABCBoostClassifier:
    model = gpuboost.ABCBoostClassifier(n_estimators=rounds, device="cpu", n_jobs=n_jobs, **params)
    return model.fit(X, y)


def errors_of_twins(name: str, sets: Arrays, options: argparse.Namespace) -> list[float]:
    """Return the test errors in % of ``options.twins`` runs that differ in nothing that matters; the first has the rate 0.1."""
    X, y, X_test, y_test = sets
    found = []
    for i in range(options.twins):
        columns = np.random.default_rng(i).permutation(X.shape[1]) if i else np.arange(X.shape[1])
        rate = 0.1 * (1 + 1e-4 * i)
        model = fit(X[:, columns], y, options.rounds or 500, options.n_jobs, learning_rate=rate, **METHODS[name])
        found.append(error(model, X_test[:, columns], y_test))
        print(f"{name}: {found[-1]:.2f}", flush=True)
    return found


def spread(errors: list[float]) -> str:
    return f"{np.mean(errors):.2f} ± {np.std(errors, ddof=len(errors) > 1):.2f}"


def error(model: Any, X: Any, y: Any) -> float:
    return 100 * float(np.mean(model.predict(X) != y))


def poker_arrays(data_dir: Path | None) -> Arrays:
    if data_dir is not None and (data_dir / "poker25k.npz").exists():
        found: Dataset = read_dataset(data_dir / "poker25k.npz")
        return found.X_train, found.y_train, found.X_test, found.y_test
    X, y = make_poker_hands(125_010, 0)
    return X[:25_010], y[:25_010], X[25_010:], y[25_010:]


def poker(options: argparse.Namespace) -> dict[str, Any]:
    X, y, X_test, y_test = sets = poker_arrays(options.data_dir)
    errors = {name: errors_of_twins(name, sets, options) for name in METHODS}
    rows = [[name, f"{CPP[name]:.1f}", f"{found[0]:.2f}", spread(found)] for name, found in errors.items()]
    others = {}
    for l2 in (0, 1, 10, 100):
        for name, run in rivals(np.asarray(X, np.float64), y, options.rounds or 500, l2).items():
            found = np.asarray(run().predict(np.asarray(X_test, np.float64)))
            wrong = (np.unique(y)[found] if name == "xgboost" else found) != y_test
            own = f"{name}, L2 {l2}" if l2 else name
            others[own] = 100 * float(np.mean(wrong))
            rows.append([own, "", f"{others[own]:.2f}", ""])
    print(markdown(["method", "C++", "this run", f"mean of {options.twins} such runs"], rows), flush=True)
    return {"errors": errors, "cpp": CPP, "others": others}


def order(options: argparse.Namespace) -> dict[str, Any]:
    draws = []
    for seed in (1, 2, 3):
        X, y = make_poker_hands(75_010, seed)
        sets = X[:25_010], y[:25_010], X[25_010:], y[25_010:]
        own = {name: errors_of_twins(name, sets, options) for name in ("mart", "abc-mart", "abc-mart, gap 21")}
        draws.append(own)
        print(f"draw {seed}: " + ", ".join(f"{name} {spread(errors)}" for name, errors in own.items()), flush=True)
    return {"draws": draws}


def rivals(X: Any, y: Any, rounds: int, l2: float = 0.0) -> dict[str, Callable[[], Any]]:
    """Return fits of the other libraries, with 20 leaves and one thread; XGBoost's own ``l2`` is 1 where it is 0 here."""
    found: dict[str, Callable[[], Any]] = {}
    try:
        import lightgbm

        found["lightgbm"] = lambda: lightgbm.LGBMClassifier(
            n_estimators=rounds, num_leaves=20, min_child_samples=10, reg_lambda=l2, n_jobs=1, verbose=-1
        ).fit(X, y)
    except ImportError:
        pass
    try:
        import xgboost

        classes = np.unique(y, return_inverse=True)[1]
        found["xgboost"] = lambda: xgboost.XGBClassifier(
            n_estimators=rounds,
            max_leaves=20,
            max_depth=0,
            grow_policy="lossguide",
            tree_method="hist",
            learning_rate=0.1,
            reg_lambda=l2 or 1,
            n_jobs=1,
        ).fit(X, classes)
    except ImportError:
        pass
    from sklearn.ensemble import HistGradientBoostingClassifier

    found["histgradientboosting"] = lambda: HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=20, min_samples_leaf=10, l2_regularization=l2, early_stopping=False
    ).fit(X, y)
    return found


def speed(options: argparse.Namespace) -> dict[str, Any]:
    X, y, *_ = poker_arrays(options.data_dir)
    X, rounds = np.asarray(X, np.float64), options.rounds or 100
    fits = rivals(X, y, rounds)
    methods = {
        **{name: METHODS[name] for name in ("mart", "logitboost", "abc-mart")},
        "abc-mart, gap 20": {"loss": "mart", "gap": 20},
    }
    for name, params in methods.items():
        fits[name] = lambda params=params: fit(X, y, rounds, 1, **params)
        fit(X, y, 2, 1, **params)  # compiles
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(options.repeats):
        for name, run in fits.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    base = seconds.get("lightgbm", seconds["histgradientboosting"])
    rows = [
        [
            name,
            f"{1000 * median(found) / rounds:.1f}",
            f"{median(a / b for a, b in zip(found, base, strict=True)):.2f}",
            f"{median(a / b for a, b in zip(found, seconds['mart'], strict=True)):.2f}",
        ]
        for name, found in seconds.items()
    ]
    print(markdown(["", "ms a round", "of LightGBM's", "of mart's"], rows), flush=True)
    return {"rounds": rounds, "seconds": seconds}


def curves(name: str, sets: Arrays, methods: dict[str, dict[str, Any]], rounds: int, n_jobs: int) -> dict[str, Any]:
    """Train with the test set watched, and return the numbers of test errors along the run."""
    X, y, X_test, y_test = sets
    found = {}
    for method, params in methods.items():
        model = gpuboost.ABCBoostClassifier(n_estimators=rounds, device="cpu", n_jobs=n_jobs, **params)
        started = time.perf_counter()
        model.fit(X, y, eval_set=(X_test, y_test))
        wrong = np.rint(np.array(model.history_["valid_error"]) * len(y_test)).astype(int)
        stages = sorted({n for n in (10, 25, 50, 100, 200, 300, 500, 1000, 2000) if n <= len(wrong)} | {len(wrong)})
        found[method] = {str(n): int(wrong[n - 1]) for n in stages}
        print(f"{name}: {method}: {found[method]}  {time.perf_counter() - started:.0f} s", flush=True)
    return found


def mnist10k(options: argparse.Namespace) -> dict[str, Any]:
    data = fetch_mnist(data_dir=options.data_dir)
    sets = (data.X_test, data.y_test, data.X_train, data.y_train)
    methods = {name: METHODS[name] for name in ("mart", "logitboost")}
    methods |= {name.removesuffix(", gap 21"): METHODS[name] for name in ("abc-mart, gap 21", "abc-logitboost, gap 21")}
    found = curves("mnist10k", sets, methods, options.rounds or 200, options.n_jobs)
    return {"wrong": found, "paper": PAPER_MNIST10K, "gap": 21}


def covertype(options: argparse.Namespace) -> dict[str, Any]:
    data = fetch_covtype(data_dir=options.data_dir, split="abc")
    sets = (data.X_train, data.y_train, data.X_test, data.y_test)
    methods = {f"abc-mart, gap {gap}": {"loss": "mart", "gap": gap} for gap in (1, 20, 100)} | {"mart": METHODS["mart"]}
    return {"wrong": curves("covertype", sets, methods, options.rounds or 200, options.n_jobs), "n_test": len(sets[3])}


PARTS = {"poker": poker, "order": order, "speed": speed, "mnist10k": mnist10k, "covertype": covertype}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which of the parts; all of them if none is named")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--rounds", type=int, help="instead of each part's own number")
    parser.add_argument("--twins", type=int, default=6, help="runs of poker and order that should be the same")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    for name in options.parts or PARTS:
        result = PARTS[name](options)
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"abc-{name}-{datetime.date.today()}.json"
        path.write_text(json.dumps({"part": name, "gpuboost": gpuboost.__version__, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
