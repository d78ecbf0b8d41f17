"""What replay.py tries with a finished image: jobs as a user would run them."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import container
from container import Image, Options

SOMEBODY = "12345:0"
"""A user that the image does not know, in group 0: what OpenShift runs an image as."""

MODEL, CHECKPOINT = "model.safetensors", "model.safetensors.checkpoint"
JOB = ["fit", "train.csv", "--target=kind", "--set=n_estimators=3000", "--checkpoint=100", f"--out={MODEL}"]

COUNT = """
import gc, sys, time
import numpy as np
import gpuboost
from numba.core.dispatcher import Dispatcher
begun = time.perf_counter()
rng = np.random.default_rng(1)
algorithms, classes = (gpuboost.ALGORITHMS, (2, 4, 7, 10, 26)) if sys.argv[1] == "all" else (["adaboost-mh"], [3])
for algorithm in algorithms:
    for n_classes in classes:
        y = np.arange(300) % n_classes
        X = rng.normal(y[:, None], 1.0, (300, 7))
        gpuboost.fit(X, y, algorithm=algorithm, n_estimators=2, eval_set=(X, y), device="cpu").predict(X)
loops = [loop.stats for loop in gc.get_objects() if isinstance(loop, Dispatcher)]
print(sum(sum(s.cache_hits.values()) for s in loops), sum(sum(s.cache_misses.values()) for s in loops))
print(f"{time.perf_counter() - begun:.1f} s")
"""

CUPY = """
import os
import cupy
print("CUDA run-time", cupy.cuda.runtime.runtimeGetVersion())
try:
    cupy.RawModule(path=os.environ["GPUBOOST_FATBIN"] + "/init_roots.fatbin").get_function("init_roots")
except Exception as error:
    print(type(error).__name__, error)
"""


def write_table(folder: Path) -> None:
    """Write a table with labels that are words, and missing values."""
    rng = random.Random(0)
    lines = ["a,b,c,d,kind"]
    for i in range(400):
        values = [f"{rng.gauss(i % 3, 1.5):.3f}" if rng.random() > 0.05 else "" for _ in range(4)]
        lines.append(",".join([*values, ("ash", "beech", "oak")[i % 3]]))
    (folder / "train.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def equal(found: object, expected: object, output: str = "") -> None:
    """Fail unless two values are equal."""
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}\n{output[-1500:]}")


def contains(output: str, *texts: str) -> None:
    """Fail unless an output contains some texts."""
    for text in texts:
        if text not in output:
            raise AssertionError(f"{text!r} is not in the output:\n{output[-1500:]}")


class Trials:
    """An image, a folder with a table that is mounted as /data, and the model of an unbroken training."""

    def __init__(self, image: Image, folder: Path) -> None:
        self.image, self.folder = image, folder
        self.options = Options(user=SOMEBODY, volume=(folder, "/data"), read_only=True)
        self.unbroken = ""

    def run(self, *arguments: str, **options: object) -> tuple[int, str]:
        """Run the entry point with arguments, or with the image's own."""
        command = [*self.image.entrypoint, *(arguments or self.image.cmd)]
        return container.run(self.image, command, replace(self.options, **options))  # type: ignore[arg-type]

    def help(self) -> str:
        """Without arguments the image says what it can do."""
        status, output = self.run()
        equal(status, 0, output)
        contains(output, "Usage: gpuboost")
        return ""

    def doctor(self) -> str:
        """Without a card ``doctor`` says so, finds the compiled kernels, and trains on the CPU."""
        status, output = self.run("doctor")
        equal(status, 1, output)
        contains(output, "files are compiled ahead", "CPU: usable", "CUDA: not usable: no NVIDIA driver", "--gpus all")
        (line,) = [line for line in output.splitlines() if "compiled ahead" in line]
        words = line.split()
        equal(words[1], words[3], line)
        return line

    def cupy(self) -> str:
        """CuPy starts without the CUDA run-time and NVRTC of PyPI; to load a compiled kernel it lacks the driver alone."""
        status, output = container.run(self.image, ["python", "-c", CUPY], self.options)
        equal(status, 0, output)
        contains(output, "CUDA run-time 13", "cudaErrorInsufficientDriver")
        return " / ".join(output.splitlines()[-2:])

    def cuda(self) -> str:
        """A card that is asked for and missing is an error with a remedy, and no CPU training."""
        status, output = self.run(*JOB, "--device", "cuda")
        equal(status, 1, output)
        contains(output, "docker run --gpus all")
        equal((self.folder / MODEL).exists(), False)
        return ""

    def pipeline(self) -> str:
        """Fit, predict, evaluate, inspect: as an unknown user, without network, on a file system that cannot be written."""
        begun = time.perf_counter()
        status, output = self.run(*JOB)
        equal(status, 0, output)
        seconds = time.perf_counter() - begun
        for command in (
            ["predict", MODEL, "train.csv", "--out=labels.csv"],
            ["evaluate", MODEL, "train.csv"],
            ["inspect", MODEL],
        ):
            status, output = self.run(*command)
            equal(status, 0, output)
        equal({(self.folder / name).stat().st_uid for name in (MODEL, "labels.csv")}, {int(SOMEBODY.partition(":")[0])})
        self.unbroken = sha256(self.folder / MODEL)
        return f"the fit took {seconds:.1f} s from start to end"

    def other_ways(self) -> str:
        """The image's own user, and memory at /tmp: the same model."""
        for options in ({"user": None, "read_only": False}, {"tmpfs": True}):
            (self.folder / MODEL).unlink()
            status, output = self.run(*JOB, **options)
            equal(status, 0, output)
            equal(sha256(self.folder / MODEL), self.unbroken)
        return ""

    def loops(self) -> str:
        """No loop is compiled by the usual trainings."""
        command = ["python", "-c", COUNT]
        status, output = container.run(self.image, [*command, "all"], self.options)
        equal(status, 0, output)
        equal(output.split()[1], "0", output)
        _, loaded = container.run(self.image, [*command, "one"], self.options)
        _, compiled = container.run(self.image, [*command, "one"], replace(self.options, env={"NUMBA_CPU_NAME": "x86-64-v2"}))
        fast, slow = (text.split()[2] for text in (loaded, compiled))
        return f"{output.split()[0]} loops loaded; a short training takes {fast} s, and {slow} s if it compiles its loops"

    def stop(self) -> str:
        """``docker stop`` ends a training within its ten seconds, with status 130; it resumes to the same bytes."""
        with self.interrupted() as process:
            begun = time.perf_counter()
            os.kill(container.first_process(process), signal.Signals[self.image.stop_signal])
            output, _ = process.communicate(timeout=10)
            seconds = time.perf_counter() - begun
            equal(process.returncode, 130, output)
        self.resume()
        return f"{self.image.stop_signal}: ended after {seconds:.2f} s"

    def kill(self) -> str:
        """So does one that was killed, as by a pre-emption."""
        with self.interrupted() as process:
            os.kill(container.first_process(process), signal.SIGKILL)
            process.communicate(timeout=10)
        self.resume()
        return ""

    @contextmanager
    def interrupted(self) -> Iterator[subprocess.Popen[str]]:
        """Start the job anew, and wait for its first checkpoint."""
        (self.folder / MODEL).unlink(missing_ok=True)
        (self.folder / CHECKPOINT).unlink(missing_ok=True)
        with container.started(self.image, [*self.image.entrypoint, *JOB], self.options) as process:
            end = time.monotonic() + 60
            while not (self.folder / CHECKPOINT).exists() and time.monotonic() < end and process.poll() is None:
                time.sleep(0.01)
            equal(process.poll(), None)
            yield process

    def resume(self) -> None:
        """Go on from the checkpoint; nothing else may be left of what was broken off."""
        names = {path.name for path in self.folder.iterdir()}
        equal(MODEL in names, False)
        equal(CHECKPOINT in names, True)
        status, output = self.run(*JOB, "--resume")
        equal(status, 0, output)
        equal(sha256(self.folder / MODEL), self.unbroken)

    def statuses(self) -> str:
        """Exit statuses pass through."""
        equal(self.run("fit", "missing.csv", "--target", "kind", "--out", MODEL)[0], 1)
        equal(self.run("fit", "--no-such-option")[0], 2)
        return ""


def run_all(image: Image) -> int:
    """Try everything; print what came of it, and return how many trials failed."""
    failures = 0
    print("\n== trials", flush=True)
    with tempfile.TemporaryDirectory(prefix="trials-") as name:
        folder = Path(name, "data")
        folder.mkdir()
        folder.chmod(0o777)
        write_table(folder)
        trials = Trials(image, folder)
        steps: list[Callable[[], str]] = [
            trials.help,
            trials.doctor,
            trials.cupy,
            trials.cuda,
            trials.pipeline,
            trials.other_ways,
        ]
        steps += [trials.stop, trials.kill, trials.statuses, trials.loops]
        for step in steps:
            try:
                remark, verdict = step(), "passed"
            except (AssertionError, subprocess.TimeoutExpired) as error:
                remark, verdict = str(error), "FAILED"
                failures += 1
            print(f"   {verdict}: {step.__doc__}" + (f"\n      {remark.strip()}" if remark else ""), flush=True)
    print(f"{len(steps) - failures} passed, {failures} failed", flush=True)
    return failures
