"""The step conformance: the backends' test suite on the card, tests of all kinds first, for as long as there is time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.gpu.step import CardLost, Skip, Step, is_lost, run

SUITE = "tests/backends/test_conformance.py"
STRIDE = 7
"""Every seventh test comes first, then every seventh of the others: neighbours are alike, so that a part is a sample of all."""


class InTime:
    """A plugin of pytest: it orders the tests, keeps account, and stops when the time is up."""

    def __init__(self, step: Step) -> None:
        self.step, self.collected = step, 0
        self.outcomes: dict[str, int] = {"passed": 0, "failed": 0, "skipped": 0}
        self.reasons: dict[str, str] = {}
        self.stopped = False
        self.lost: BaseException | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for first in range(STRIDE) for item in items[first::STRIDE]]
        self.collected = len(items)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        yield
        if self.step.left() < 0.04 * self.step.seconds:
            self.stopped, item.session.shouldstop = True, "the time is up"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
        if call.excinfo is not None and is_lost(call.excinfo.value):
            self.lost, item.session.shouldstop = call.excinfo.value, "the card is lost"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
            self.step.note("outcomes", {**self.outcomes, "collected": self.collected})
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons["skipped"] = str(report.longrepr[2])
        if report.failed:
            last = (report.longreprtext.strip().splitlines() or [""])[-1]
            self.step.problem(f"{report.nodeid.rpartition('::')[2]}: {last}")


def arguments(step: Step) -> list[str]:
    """Return what pytest is told: the card, or in a dry run some tests of the emulated device."""
    own = ["--device", "cuda"] if not step.dry_run else ["-k", "emulated-forward and (test_statistics or test_reweight)"]
    return ["-p", "no:cacheprovider", "-p", "no:randomly", "--maxfail", "5", *own, SUITE]


def main(step: Step) -> None:
    if not step.dry_run:
        os.environ["REQUIRE_GPU"] = "1"
    watcher, begun = InTime(step), time.perf_counter()
    status = pytest.main(arguments(step), plugins=[watcher])
    outcomes: dict[str, Any] = watcher.outcomes
    ran = sum(outcomes.values())
    step.note("seconds", time.perf_counter() - begun)
    not_run = watcher.collected - ran
    step.say(f"{outcomes['passed']} of {watcher.collected} tests passed, {outcomes['failed']} failed, {not_run} not run")
    if watcher.lost is not None:
        raise CardLost(str(watcher.lost))
    if ran == outcomes["skipped"] > 0:
        raise Skip(watcher.reasons.get("skipped", "all tests were skipped"))
    if not watcher.stopped and status != pytest.ExitCode.OK and not outcomes["failed"]:
        step.problem(f"pytest ended with {status!r}")


if __name__ == "__main__":
    run("conformance", main)
