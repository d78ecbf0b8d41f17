"""Checkpoints: a model file every few rounds, from which a training that was killed goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from gpuboost.inputs.parameters import check_integer
from gpuboost.messages import warn
from gpuboost.persistence.model_file import save, to_bytes
from gpuboost.progress import Progress


@dataclass(frozen=True)
class Checkpoint:
    """A callback that writes the model of the rounds so far to a file, every ``every`` rounds.

    The file is a model file like any other. It is replaced in one step, so that it is whole at every moment, also after a crash
    or kill -9. To go on from it, load it and fit it with the same data, and ``warm_start=True``: the result is that of a
    training that nobody broke off, byte for byte, with early stopping, too.

    Parameters
    ----------
    path : str or path
        The file. Its folder must be there.
    every : int, default 50
        Rounds between two checkpoints. One takes as long as ``model.save``, which grows with the model; the other rounds take
        no longer than without.
    extra : dict of str, optional
        Texts to put into the file, for instance where the data came from; `persistence.model_file.describe` reads them.

    Raises
    ------
    FileNotFoundError
        If the folder is missing.
    ValueError, TypeError
        If ``every`` is no integer of at least 1.

    Notes
    -----
    A model that cannot be saved, for instance one with labels of a type of your own, ends the training with a TypeError after
    the first round. A disk that is full or a folder that has gone does not: there is a RuntimeWarning, the training goes on,
    the last whole file stays, and the next checkpoint tries again. After the last round save the model itself: the checkpoint
    has the rounds up to the last multiple of ``every``, and no early stopping has chosen among them.

    Examples
    --------
    >>> import gpuboost
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> keep = gpuboost.Checkpoint("iris.checkpoint", every=10)
    >>> model = gpuboost.fit(X, y, n_estimators=25, callbacks=[keep])
    >>> resumed = gpuboost.load("iris.checkpoint")
    >>> resumed.n_estimators_
    20
    >>> resumed = resumed.set_params(warm_start=True, callbacks=[keep]).fit(X, y)
    >>> resumed.ensemble_.digest() == model.ensemble_.digest()
    True
    """

    path: str | os.PathLike[str]
    every: int = 50
    extra: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        check_integer("every", self.every, 1)
        folder = os.path.dirname(os.path.realpath(self.path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"the folder of the checkpoint {os.fspath(self.path)!r} is not there: {folder!r}")

    def __call__(self, progress: Progress) -> None:
        """Write the model if it is time to."""
        if progress.n_rounds % self.every:
            if progress.n_rounds == 1:
                to_bytes(progress.model(), self.extra)  # so that what cannot be saved shows at once
            return
        try:
            save(progress.model(), self.path, self.extra)
        except OSError as error:
            warn(
                f"cannot write the checkpoint of round {progress.n_rounds}: {error}; the training goes on, "
                "and what was written before stays",
                RuntimeWarning,
            )
