"""Going on from a checkpoint that a worker has written."""

from __future__ import annotations

import copy
import os
from typing import Any

from gpuboost.persistence.checkpoint import Checkpoint
from gpuboost.persistence.model_file import load


class Resumption:
    """What is left of a training that has lost a worker.

    Parameters
    ----------
    client : distributed.Client
    checkpoint : Checkpoint or None
    """

    def __init__(self, client: Any, checkpoint: Checkpoint | None) -> None:
        self.client, self.checkpoint = client, checkpoint
        self._before = self._age()

    def with_callback(self, estimator: Any) -> Any:
        """Return a copy of the estimator that writes the checkpoints."""
        if self.checkpoint is None:
            return estimator
        writing = copy.copy(estimator)
        writing.callbacks = [*(estimator.callbacks or ()), self.checkpoint]
        return writing

    def resumed(self, estimator: Any) -> Any:
        """Return the estimator to go on with: from the last checkpoint, if this training has written one."""
        if self.checkpoint is None or self._age() == self._before:
            return self.with_callback(estimator)
        path = os.fspath(self.checkpoint.path)
        model = self.client.submit(load, path, pure=False).result()
        model.set_params(**(estimator.get_params(deep=False) | {"warm_start": True}))
        return self.with_callback(model)

    def _age(self) -> tuple[int, int] | None:
        """Return what changes when the file is written, as a worker sees it; None if it is not there."""
        if self.checkpoint is None:
            return None
        age: tuple[int, int] | None = self.client.submit(age_of, os.fspath(self.checkpoint.path), pure=False).result()
        return age


def age_of(path: str) -> tuple[int, int] | None:
    """Return the time of a file's last change and its size; None if there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size
