"""One model everywhere; threads, devices and the import."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import joblib
import numpy as np
import pytest

from gpuboost import DeviceUnavailableError, devices
from gpuboost.backends.cpu.threads import usable_threads
from tests.traps.problem import NOISY, SMALLEST_LEAF, VARIANTS, X, Y, digest, make, run_python

pytestmark = pytest.mark.slow

SHARE_EVERYTHING = """
import joblib, numpy as np
from gpuboost import AdaBoostMHClassifier
from gpuboost.backends.cpu.threads import Team
Team.WORTH_SHARING = 4  # the smallest loops, too
joblib.cpu_count = lambda: 4  # on the smallest machine, too
"""

FIT_NOISE = """
rng = np.random.default_rng(0)
X = rng.normal(size=(5000, 10))
y = np.digitize(X[:, 0] + rng.normal(size=5000), [-1, 0, 1])
model = AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=8, device="cpu")
print(*{model.set_params(n_jobs=n).fit(X, y).ensemble_.digest() for n in (1, 2, 3, 4, None)})
"""


def test_runs_thread_counts_and_processes_give_one_model() -> None:
    one, other = run_python(SHARE_EVERYTHING + FIT_NOISE), run_python(SHARE_EVERYTHING + FIT_NOISE)
    assert len(one.split()) == 1
    assert one == other


@pytest.mark.parametrize("params", [*VARIANTS, SMALLEST_LEAF], ids=str)
def test_backends_give_one_model_also_on_ties(params: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    ties, y = rng.integers(0, 4, (200, 8)), rng.integers(0, 3, 200)
    models = [make(6, device=device, **params).fit(ties, y) for device in ("cpu", "numpy")]
    assert digest(models[0]) == digest(models[1])
    scores = models[0].decision_function(ties)
    assert np.array_equal(scores, models[1].decision_function(ties))
    assert np.array_equal(scores, models[0].set_params(device="numpy").decision_function(ties))


def test_a_tie_between_columns_goes_to_the_first() -> None:
    order = [2, 0, 3, 1]
    twins = np.c_[X[:, 0], X]  # columns 0 and 1 are the same
    model, permuted = make().fit(twins, NOISY), make().fit(twins[:, order], NOISY)
    assert model.feature_importances_[1] == 0.0 < model.feature_importances_[0]
    assert np.array_equal(model.predict_proba(twins), permuted.predict_proba(twins[:, order]))


PRINT_THREADS = "from gpuboost.backends.cpu.threads import usable_threads as f; print(f(None), f(-1), f(64), f(1))"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux has a CPU affinity to set")
def test_threads_keep_to_the_affinity() -> None:
    cpu = min(os.sched_getaffinity(0))
    assert run_python(f"import os; os.sched_setaffinity(0, {{{cpu}}}); {PRINT_THREADS}") == "1 1 1 1"


def test_threads_keep_to_the_thread_variable() -> None:
    assert run_python(PRINT_THREADS, OMP_NUM_THREADS="1") == "1 1 1 1"


def test_threads_keep_to_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "effective_n_jobs", lambda n: 64)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 3)  # joblib reads the container's quota
    assert [usable_threads(n) for n in (None, -1, -2, 2, 8)] == [3, 3, 2, 2, 3]
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        usable_threads(0)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_threads_inside_a_parallel_call_do_not_multiply(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    n_cpus = joblib.cpu_count()
    inside = joblib.Parallel(n_jobs=n_cpus, backend=backend)(joblib.delayed(usable_threads)(-1) for _ in range(n_cpus))
    assert inside == [1] * n_cpus


FORK = """
import multiprocessing
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 5)); y = (X[:, 0] + rng.normal(size=2000) > 0).astype(int)
def fit(_): return AdaBoostMHClassifier(n_estimators=2, max_leaf_nodes=8, device="cpu").fit(X, y).ensemble_.digest()
before = fit(0)
with multiprocessing.get_context("fork").Pool(2) as pool: after = pool.map(fit, range(2))
print(after == [before] * 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_fork_after_threads_does_not_hang() -> None:
    assert run_python(SHARE_EVERYTHING + FORK) == "True"


def test_everything_works_without_a_gpu() -> None:
    code = """
import gpuboost, numpy as np
X = np.arange(20.0)[:, None]
model = gpuboost.fit(X, X[:, 0] > 9, n_estimators=3)
print(model.device_, model.score(X, X[:, 0] > 9))
"""
    assert run_python(code, CUDA_VISIBLE_DEVICES="") == "cpu 1.0"


@pytest.mark.parametrize("device", ["cuda", "cuda:1", 0, 7, np.int64(0)])
def test_a_gpu_that_was_asked_for_and_is_not_there(device: Any) -> None:
    model = make(device="cpu").fit(X, Y)
    if devices.device_problem(int(device) if isinstance(device, Integral) else 1 if device == "cuda:1" else None) is None:
        pytest.skip(f"there is such a GPU: {device!r}")
    with pytest.raises(DeviceUnavailableError, match="cuda"):
        make(device=device).fit(X, Y)
    with pytest.raises(DeviceUnavailableError, match="cuda"):
        model.set_params(device=device).predict(X)


def test_device_names() -> None:
    assert make(device="cpu").fit(X, Y).device_ == "cpu"
    assert make(device="numpy").fit(X, Y).device_ == "numpy"
    for wrong in ("gpu", "cuda:", "CPU", -1, True, None, 1.0):
        with pytest.raises(ValueError, match="device"):
            make(device=wrong).fit(X, Y)


def test_an_estimator_is_made_without_what_only_fit_needs() -> None:
    late = ["cupy", "numba", "matplotlib"]
    code = f"import sys, gpuboost; gpuboost.AdaBoostMHClassifier(); print([n for n in {late} if n in sys.modules])"
    assert run_python(code) == "[]"
