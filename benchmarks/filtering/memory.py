"""Peak memory of trainings on streams of different lengths, each in a process of its own.

``python memory.py JOB`` prints a line of JSON; JOB is a JSON object that `main` reads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from filtering.problems import ForestRows
from filtering.runs import Run, classifier, peak_bytes

MIB = 1 << 20


def peak_of(job: dict[str, Any]) -> Run:
    """Train once over the rows of a job in another process; return its peak of resident memory, and what it has drawn."""
    command = [sys.executable, __file__, json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    if done.returncode:
        raise RuntimeError(f"{job} has failed:\n{done.stderr}")
    return job | json.loads(done.stdout.splitlines()[-1])


def generated(rows: list[int], **params: Any) -> list[Run]:
    """Return the peaks for so many generated rows."""
    return [peak_of({"kind": "generated", "rows": n, **params}) for n in rows]


def mapped(allowed_bytes: int, folder: str | None = None, **params: Any) -> list[Run]:
    """Return the peaks for memory maps of a quarter of some memory, of all of it, and of 8 times as much."""
    found = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place, "X.npy")
        for times in (0.25, 1, 8):
            n = int(times * allowed_bytes) // (4 * ForestRows.n_features)
            X = np.lib.format.open_memmap(path, "w+", np.float32, (n, ForestRows.n_features))
            y = np.empty(n, np.int8)
            row = 0
            for batch in ForestRows(n).batches():
                X[row : row + len(batch.y)], y[row : row + len(batch.y)] = batch.X, batch.y
                row += len(batch.y)
            X.flush()
            np.save(path.with_name("y.npy"), y)
            del X
            job = {"kind": "mapped", "rows": n, "file_bytes": path.stat().st_size, "allowed": allowed_bytes, **params}
            found.append(peak_of(job | {"path": str(path)}) | {"path": ""})
            path.unlink()
    return found


def main(job: dict[str, Any]) -> Run:
    n_rows, options = job["rows"], {}
    source: Any = ForestRows(n_rows)
    if job["kind"] == "mapped":
        path = Path(job["path"])
        source = (np.load(path, mmap_mode="r"), np.load(path.with_name("y.npy"), mmap_mode="r"))
        options["shuffle"] = 0
    model = classifier(
        n_estimators=100_000,
        examples_per_round=job.get("examples_per_round", 10_000),
        schedule="constant",
        max_examples=job.get("draws", n_rows),
        recycle="draws" in job,
        kept_bytes=0,
        random_state=0,
    )
    begun = time.perf_counter()
    model.fit_stream(source, classes=[0, 1], **options)
    return {
        "peak_bytes": peak_bytes(),
        "seconds": time.perf_counter() - begun,
        "rounds": model.n_estimators_,
        "drawn": sum(model.history_["draws"]),
        "stop_reason": model.stop_reason_,
        "acceptance": model.history_["acceptance"][-1],
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
