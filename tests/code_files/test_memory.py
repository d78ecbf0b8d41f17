"""Trainings and files that are larger than the memory that a process may have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpuboost
from gpuboost import CodeFile

N_ROWS, N_FEATURES, MAX_BINS = 40_000, 1000, 5
ROOM = 9 << 20
"""What the address space of the process may grow by, a quarter of the codes at most."""

SCRIPT = f"""
import os, resource, signal, sys
import numpy as np
import gpuboost
from gpuboost.binning import stored
from gpuboost.code_files import writer

folder, room = sys.argv[1], {ROOM}
stored.CHUNK_BYTES = writer.STEP_BYTES = 1 << 19

def fit(name, n_estimators):
    file = gpuboost.CodeFile(os.path.join(folder, name))
    return gpuboost.fit(file, device="cpu", n_jobs=1, n_estimators=n_estimators, max_bins={MAX_BINS}, max_leaf_nodes=4)

def rows(size):
    rng = np.random.default_rng(1)
    for i in range(size):
        yield rng.integers(0, 9, (20, {N_FEATURES}), np.uint8), rng.integers(0, 2, 20)

def write(name, size):
    return gpuboost.CodeFile.write(rows(size), os.path.join(folder, name), max_bins={MAX_BINS}, n_jobs=1, memory_mb=4)

write("small", 2)
fit("small", 2)  # imports and compiles what the rest needs

with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
try:
    np.fromfile(os.path.join(folder, "large"), np.uint8)
    print("the limit does not bind")
except MemoryError:
    pass
print(fit("large", 3).ensemble_.digest())
print(fit("large", 9).n_estimators_)
print(write("large too", 400).n_rows)

def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

stop = writer.to_blocks
calls = []
writer.to_blocks = lambda codes, width: killed() if len(calls) == 3 else calls.append(codes) or stop(codes, width)
write("never", 400)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits and sizes of Linux")
def test_trains_and_writes_in_a_quarter_of_the_codes_and_leaves_nothing_when_killed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (N_ROWS, N_FEATURES), np.uint8)
    y = (X[:, 0] > 4) ^ (X[:, 1] > 6) ^ (rng.random(N_ROWS) < 0.1)
    file = CodeFile.write((X, y), tmp_path / "large", max_bins=MAX_BINS)
    assert file.matrix().shape[0] * file.matrix().shape[2] * N_ROWS >= 4 * ROOM
    whole = gpuboost.fit(X, y, device="cpu", n_estimators=3, max_bins=MAX_BINS, max_leaf_nodes=4)
    no_holes = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}  # an array is a mapping of its own
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | no_holes)
    assert ended.stdout.split() == [whole.ensemble_.digest(), "9", "8000"], ended.stderr
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert sorted(os.listdir(tmp_path)) == ["large", "large too", "small"]


# ---- a limit that is a quarter of the codes ----------------------------------------------------------------------------------

SPARSE = """
import os, resource, sys
sys.modules["pandas"] = sys.modules["pyarrow"] = None  # which scikit-learn loads if they are there
import numpy as np
import gpuboost

N_FEATURES, BLOCK_ROWS, ROOM = 2000, 2000, 200 << 20  # for 1.3 million rows, which take about 125 bytes each
parameters = dict(device="cpu", n_jobs=1, n_estimators=3, max_leaf_nodes=4, max_bins=9)

def rows(n_blocks):
    for block in range(n_blocks):
        rng = np.random.default_rng(block)
        X = np.zeros((BLOCK_ROWS, N_FEATURES), np.uint8)
        X[np.arange(BLOCK_ROWS)[:, None], rng.integers(0, N_FEATURES, (BLOCK_ROWS, 30))] = rng.integers(1, 9, (BLOCK_ROWS, 30))
        X[:, :3] = rng.integers(0, 9, (BLOCK_ROWS, 3))
        yield X, (X[:, 0].astype(int) * X[:, 1] + X[:, 2] + rng.integers(0, 9, BLOCK_ROWS)) // 9 % 3

def write(name, n_blocks):
    return gpuboost.CodeFile.write(rows(n_blocks), os.path.join(sys.argv[1], name), n_jobs=1, max_bins=9, memory_mb=96)
"""

LIMITED = f"""{SPARSE}
gpuboost.fit(write("small", 2), **parameters)  # imports and compiles what the rest needs
with open("/proc/self/statm") as file:
    limit = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") + ROOM
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
n_blocks = -(-4 * limit // (N_FEATURES * BLOCK_ROWS))
file = write("large", n_blocks)
assert file.n_rows * file.n_features >= 4 * limit
print(n_blocks, gpuboost.fit(file, **parameters).ensemble_.digest())
"""

IN_MEMORY = f"""{SPARSE}
n_blocks = int(sys.argv[2])
X, y = np.empty((n_blocks * BLOCK_ROWS, N_FEATURES), np.uint8), []
for block, (own, labels) in enumerate(rows(n_blocks)):
    X[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS] = own
    y.append(labels)
print(gpuboost.fit(X, np.concatenate(y), **parameters).ensemble_.digest())
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="limits and sizes of Linux")
def test_codes_four_times_the_address_space_of_the_process(tmp_path: Path) -> None:
    """They are written and trained on below the limit. Takes 6 GB of disk, and 9 GB of memory for the rows in memory."""
    few = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}

    def words_of(script: str, *arguments: str) -> list[str]:
        command = [sys.executable, "-c", script, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | few)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.split()

    n_blocks, digest = words_of(LIMITED, str(tmp_path))
    assert words_of(IN_MEMORY, str(tmp_path), n_blocks) == [digest]
