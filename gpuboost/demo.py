"""What ``python -m gpuboost demo`` shows: two trainings from start to end, and the promise checked."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gpuboost.datasets import make_poker_hands
from gpuboost.registry import estimator_class

Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def run(*, rounds: int, device: str | int, n_jobs: int | None) -> None:
    """Train on both data sets, then compare the backends.

    Parameters
    ----------
    rounds : int
        Boosting rounds on each data set.
    device, n_jobs
        As in `gpuboost.fit`.
    """
    digits, poker = load_digits(), load_poker()
    click.echo("AdaBoost.MH, the default algorithm, on two data sets (gpuboost bench compares the others on your data)\n")
    click.echo("Compiling the CPU loops (kept on disk for the next time) ...")
    begun = time.perf_counter()
    for X, y, _, _ in (digits, poker):
        classifier(n_estimators=2, device=device, n_jobs=n_jobs).fit(X, y)
    click.echo(f"  {time.perf_counter() - begun:.1f} s\n")
    train("Handwritten digits (scikit-learn's 8 x 8 pixels)", digits, rounds, device, n_jobs)
    train("Poker hands (5 cards in 10 columns, the label by the rules)", poker, rounds, device, n_jobs)
    compare(digits)


def load_digits() -> Split:
    """Return scikit-learn's digits, the even rows to train on and the odd ones to test."""
    from sklearn.datasets import load_digits as load

    X, y = load(return_X_y=True)
    return X[::2], y[::2], X[1::2], y[1::2]


def load_poker() -> Split:
    """Return 25,010 hands to train on, as in the UCI data set, and 50,000 to test."""
    X, y = make_poker_hands(75_010, random_state=0)
    return X[:25_010], y[:25_010], X[25_010:], y[25_010:]


def train(title: str, split: Split, rounds: int, device: str | int, n_jobs: int | None) -> None:
    """Train on a split, and print the test error along the way and the speed."""
    X, y, X_test, y_test = split
    known = np.isin(y_test, y)  # a hand as rare as a royal flush may be missing from the training rows
    shape = f"{len(y)} rows, {X.shape[1]} features, {len(np.unique(y))} classes"
    click.secho(f"{title}: {shape}; tested on {len(y_test)} rows", bold=True)
    begun = time.perf_counter()
    model = classifier(n_estimators=rounds, device=device, n_jobs=n_jobs, verbose=1).fit(X, y)
    seconds = time.perf_counter() - begun
    n_trees = model.n_estimators_
    for stage, prediction in enumerate(model.staged_predict(X_test), start=1):
        if stage in (10, 50, 100, 200, 500, 1000, 2000, 5000, n_trees):
            click.echo(f"  {stage:5d} rounds: test error {100 * np.mean(prediction != y_test):6.2f} %")
    click.echo(f"  {seconds:.2f} s on {model.device_}: {n_trees / seconds:.0f} rounds per second")
    if not known.all():
        click.echo(f"  ({np.count_nonzero(~known)} test rows are of a class that the training rows lack)")
    click.echo()


def compare(split: Split, n_rows: int = 300, rounds: int = 10) -> None:
    """Train the same small model on the reference backend and on the CPU backend, and compare the bytes."""
    X, y, X_test, _ = split
    click.secho(f"The same model from two backends ({n_rows} digits, {rounds} rounds):", bold=True)
    models = {device: classifier(n_estimators=rounds, device=device).fit(X[:n_rows], y[:n_rows]) for device in ("numpy", "cpu")}
    for device, model in models.items():
        click.echo(f"  {device:5s}  {model.ensemble_.digest()}")
    one, two = models.values()
    same = one.ensemble_.digest() == two.ensemble_.digest()
    same &= one.predict_proba(X_test).tobytes() == two.predict_proba(X_test).tobytes()
    if not same:
        raise click.ClickException("the backends disagree: this is a bug, please report it")
    click.echo("  identical, model and probabilities, byte for byte")


def classifier(**parameters: Any) -> Any:
    """Return the default of `gpuboost.fit` with these parameters."""
    return estimator_class("AdaBoostMHClassifier")(**parameters)
