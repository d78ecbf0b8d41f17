"""A fit as small as can be that runs every kernel of a training and a prediction, for compute-sanitizer."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.gpu.boosting import boost, fit_bins, problem_on
from benchmarks.gpu.machine import cuda_backend, open_machine
from gpuboost.early_exit import calibrated_rule
from gpuboost.ensemble import Ensemble
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true")
    machine = open_machine(parser.parse_args().dry_run)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (700, 21)).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.digitize(np.nan_to_num(X[:, 0]) + rng.normal(0, 3, len(X)), [8, 15, 22])
    with cuda_backend(machine.open_gpu()) as backend:
        problem = problem_on(backend, fit_bins(X), X, y)
        for learner in (HammingTree(5), StumpProduct(2)):
            training = boost(problem, 2, learner)
            scores = backend.put(np.zeros(problem.signs.shape))
            ensemble = Ensemble.from_trees(training.trees, 4)
            backend.predict(ensemble, problem.data, scores, 0, len(training.trees))
            backend.predict_until(ensemble, problem.data, scores, calibrated_rule(ensemble, 1, 0.5))
            print(training.history["train_error"], float(np.abs(backend.get(scores)).max()))


if __name__ == "__main__":
    main()
