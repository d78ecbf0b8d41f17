"""Draw the pictures of the README from real trainings: scikit-learn's digits, poker hands, and spirals.

    python benchmarks/make_pictures.py OUT

writes OUT/learning-curves.svg, tree.svg, base-classes.svg, decision-map.png and training-points.png, in a few minutes. The same
versions of gpuboost and matplotlib give the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import gpuboost
from gpuboost.datasets import POKER_HANDS, make_poker_hands


def digits() -> tuple[pd.DataFrame, Any, pd.DataFrame, Any]:
    """Return the even rows to train on and the odd ones to test, with the pixels named by row and column."""
    X, y = load_digits(return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"pixel {row},{column}" for row in range(8) for column in range(8)])
    return frame[::2], y[::2], frame[1::2], y[1::2]


def learning_curves(device: str) -> Any:
    """LogitBoost on digits of which every fifth label is drawn at random: the smoothed validation error chooses the rounds."""
    X, y, X_test, y_test = digits()
    rng = np.random.default_rng(0)
    noisy = [np.where(rng.random(len(labels)) < 0.2, rng.integers(0, 10, len(labels)), labels) for labels in (y, y_test)]
    options = {"algorithm": "logitboost", "n_estimators": 200, "early_stopping": True}
    return gpuboost.fit(X, noisy[0], eval_set=(X_test, noisy[1]), device=device, **options).plot.learning_curves()


def tree(device: str) -> Any:
    """A tree of AdaBoost.MH on digits: it votes on all ten classes at once."""
    X, y, _, _ = digits()
    return gpuboost.fit(X, y, n_estimators=10, max_leaf_nodes=12, device=device).plot.tree(0)


def base_classes(device: str) -> Any:
    """ABC-MART on 10,000 poker hands: the class whose score follows from the others, looked for in every round."""
    X, y = make_poker_hands(10_000, random_state=0)
    model = gpuboost.fit(X, np.array(POKER_HANDS)[y], algorithm="abc-boost", loss="mart", n_estimators=100, device=device)
    return model.plot.base_classes()


def decision_map(device: str) -> Any:
    """LogitBoost on two principal components of digits."""
    X, y, X_test, y_test = digits()
    components = PCA(2, svd_solver="full").fit(X)
    names = ["first principal component", "second principal component"]
    train, test = (pd.DataFrame(components.transform(rows), columns=names) for rows in (X, X_test))
    model = gpuboost.fit(train, y, algorithm="logitboost", n_estimators=60, max_leaf_nodes=6, device=device)
    return model.plot.decision_map(test, y_test)


def training_points(device: str) -> Any:
    """Localized similarities on two spirals, and the training points that they compare rows with."""
    rng = np.random.default_rng(0)
    y = np.arange(334) % 2
    angle = 3 * np.pi * np.sqrt(rng.random(334)) + np.pi / 2
    along = angle[:, None] * np.stack([np.cos(angle + np.pi * y), np.sin(angle + np.pi * y)], axis=1)
    X = pd.DataFrame(along + 0.5 * rng.normal(size=along.shape), columns=["x", "y"])
    options = {"algorithm": "localized-similarities", "scaling": "common", "n_estimators": 60, "random_state": 0}
    return gpuboost.fit(X, np.array(["one spiral", "the other"])[y], device=device, **options).plot.decision_map(
        X, np.array(["one spiral", "the other"])[y]
    )


PICTURES = {
    "learning-curves.svg": learning_curves,
    "tree.svg": tree,
    "base-classes.svg": base_classes,
    "decision-map.png": decision_map,
    "training-points.png": training_points,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", choices=list(PICTURES), help="draw this one alone")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "gpuboost"
    for name in [options.only] if options.only else list(PICTURES):
        drawn = PICTURES[name](options.device)
        figure = drawn if hasattr(drawn, "savefig") else drawn.get_figure()
        path = options.out / name
        figure.savefig(path, dpi=90, metadata={"Date": None} if path.suffix == ".svg" else None)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
