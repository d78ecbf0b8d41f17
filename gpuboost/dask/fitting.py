"""`gpuboost.dask.fit`: from collections on a cluster to a model in this process."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from distributed import Client

from gpuboost.by_name import new_estimator
from gpuboost.dask.checkpoints import Resumption
from gpuboost.dask.cluster import check_client, give_up, silences, silent_restarted, wait_for
from gpuboost.dask.driver import Block, Options, train_on_workers
from gpuboost.dask.parquet import are_files, row_groups
from gpuboost.dask.partitions import Partition, compare_shapes, partitions_of
from gpuboost.dask.placement import by_holders, holders_of, in_stretches
from gpuboost.dask.worker import Work
from gpuboost.errors import WorkerLostError
from gpuboost.estimators.parameters import TrainingParameters
from gpuboost.estimators.parts import fit_worker
from gpuboost.estimators.predictor import take_over
from gpuboost.inputs.parameters import check_choice, check_integer, evaluation_tuples
from gpuboost.messages import warn
from gpuboost.persistence.checkpoint import Checkpoint
from gpuboost.persistence.model_file import load


def fit(
    client: Client,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    eval_set: Any = None,
    *,
    algorithm: str = "adaboost-mh",
    estimator: Any = None,
    device: str | int = "auto",
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    links: str = "auto",
    ports: tuple[int, int] | None = None,
    lost_after: float = 30,
    start_within: float = 60,
    retry: int = 0,
    **parameters: Any,
) -> Any:
    """Train a classifier on the workers of a Dask cluster, each on the rows that it holds.

    The model has the bytes of one that is trained on all rows in one process, in the order of the partitions, however they lie
    on however many workers.

    Parameters
    ----------
    client : distributed.Client
        Not an asynchronous one.
    X : dask array, dask frame, list of delayed partitions or futures, or Parquet files
        Numbers. An array is divided by rows; partitions stay on the workers that hold them, or compute them. Files are a path,
        a folder, a list of them, or a dataset of pyarrow, which the workers must see; each reads some of their row groups.
    y : the same, or the name of a column
        Labels; of files the name of their column. Partitions of other lengths than those of X are realigned.
    sample_weight : as y, optional
    eval_set : tuple or list of tuples, optional
        ``(X, y)`` or ``(X, y, sample_weight)``, each as above.
    algorithm : str, default "adaboost-mh"
        One of ``gpuboost.ALGORITHMS``.
    estimator : BoostingClassifier, optional
        In place of the algorithm and its parameters. It stays as it is; with ``warm_start=True`` its model is continued.
    device : str or int, default "auto"
        Where the workers train, see `gpuboost.fit`. ``n_jobs`` are the threads that Dask has given to the worker.
    checkpoint : gpuboost.Checkpoint or path, optional
        Where the worker with the first rows writes the model so far; a storage that all workers see, if it is to be resumed.
    links : {"auto", "sockets", "dask"}, default "auto"
        How the workers are linked: by TCP sockets of their own, which are fast and not encrypted, or by Dask's connections.
        "auto" takes the former where all workers reach each other and Dask does not encrypt either.
    ports : tuple of int, optional
        The first and last port that sockets may listen on; by default the system chooses.
    lost_after : float, default 30
        Seconds after which a worker is lost that the scheduler does not hear of; its nanny starts it anew, as Dask lets it do
        after minutes. One that dies is lost at once. One that is lost before the training is a warning: others compute what it
        held.
    start_within : float, default 60
        Seconds in which all workers must begin. The training holds a thread of each to its end.
    retry : int, default 0
        How often to try again on the workers that are left when one is lost: from the last checkpoint, if there is one.
    **parameters
        Parameters of the estimator, for instance ``n_estimators=500``.

    Returns
    -------
    BoostingClassifier
        A fitted estimator in this process, with the attribute ``workers_``: the addresses of the workers by the order of their
        first rows. It has no ``device_``, and no "seconds" in ``history_``.

    Raises
    ------
    ValueError, TypeError
        If a parameter or the data are not usable. Lengths and columns of all partitions are compared before the training.
    WorkerLostError
        If a worker is lost and there is no try left. An error of a worker's own is raised as it is.
    TimeoutError
        If some workers do not begin in time.
    """
    model = _estimator(estimator, algorithm, device, parameters)
    keeper = Checkpoint(checkpoint) if isinstance(checkpoint, (str, os.PathLike)) else checkpoint
    if keeper is not None and not isinstance(keeper, Checkpoint):
        raise TypeError(f"checkpoint must be a gpuboost.Checkpoint or a path, got a {type(keeper).__name__}")
    options = _options(client, links, ports, lost_after, start_within)
    sets = [(X, y, sample_weight), *evaluation_tuples(eval_set)]
    with silent_restarted(client, lost_after):
        data = Data(client, sets, options)
    return fit_with_retries(data, model, options, check_integer("retry", retry, 0), keeper, fit_worker)


def fit_with_retries(
    data: Data, estimator: Any, options: Options, retry: int, checkpoint: Checkpoint | None, work: Work
) -> Any:
    """Train, and train again when a worker is lost; return the fitted estimator."""
    client, lost_after = data.client, options.lost_after
    with silent_restarted(client, lost_after):
        resumption = Resumption(client, checkpoint)
    so_far = resumption.with_callback(estimator)
    for n_left in range(retry, -1, -1):
        with silent_restarted(client, lost_after):
            shares = data.shares()
        try:
            content = train_on_workers(client, shares, so_far, options, work)
        except WorkerLostError as error:
            give_up(client, list(shares)[error.worker], lost_after, for_good=n_left > 0)
            if n_left == 0:
                raise
            warn(f"{error}; trying again on the workers that are left", RuntimeWarning)
            with silent_restarted(client, lost_after):
                so_far = resumption.resumed(estimator)
        else:
            break
    take_over(estimator, model_from(content))
    estimator.workers_ = list(shares)
    return estimator


def model_from(content: bytes) -> Any:
    """Return the classifier of a model file that is in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        with open(path, "wb") as file:
            file.write(content)
        return load(path)


class Data:
    """The training set and the evaluation sets on a cluster, from which the workers get their shares.

    Parameters
    ----------
    client : distributed.Client
    sets : sequence of (X, y, weight)
        The first is the training set.
    options : Options
        ``start_within`` is the patience of `gpuboost.dask.cluster.wait_for`.
    """

    def __init__(self, client: Client, sets: Sequence[tuple[Any, Any, Any]], options: Options) -> None:
        self.client, self.patience, self.lost_after = client, options.start_within, options.lost_after
        self.parts: list[list[Any]] = []
        first = None
        for i, (X, y, weight) in enumerate(sets):
            name = f"eval_set[{i - 1}]" if i else ""
            if are_files(X):
                parts, shape = row_groups(client, X, y, weight, name)
            else:
                parts, shape = partitions_of(client, X, y, weight, name, self.patience)
            first = first or shape
            compare_shapes(first, "X", shape, f"X of {name}")
            self.parts.append(parts)

    def shares(self) -> dict[str, list[list[Block]]]:
        """Return what each worker gets of each set, by its address; workers without rows of the training set get nothing."""
        heard_of = [worker for worker, seconds in silences(self.client).items() if seconds <= self.lost_after]
        if not heard_of:
            raise RuntimeError(f"no worker of the cluster has been heard of for lost_after={self.lost_after:g} s")
        placed = [self._placed(self.parts[0], heard_of)]
        workers = list(placed[0])
        placed += [self._placed(parts, workers) for parts in self.parts[1:]]
        return {worker: [[block_of(part) for part in one.get(worker, [])] for one in placed] for worker in workers}

    def _placed(self, parts: list[Any], workers: list[str]) -> dict[str, list[Any]]:
        if not isinstance(parts[0], Partition):
            return in_stretches(parts, workers)
        futures = [future for part in parts for future in (part.X, part.y, part.weight) if future is not None]
        wait_for(self.client, futures, self.patience)  # those that went with a worker are computed anew
        return by_holders(parts, holders_of(self.client, [part.X for part in parts]), workers)


def block_of(part: Any) -> Block:
    """Return a part as a worker gets it."""
    if isinstance(part, Partition):
        return part.first_row, part.X, part.y, part.weight
    return part.first_row, part, None, None


def _estimator(estimator: Any, algorithm: str, device: str | int, parameters: dict[str, Any]) -> Any:
    """Return the estimator to train: a copy of the one given, or one of the algorithm."""
    if estimator is None:
        model = new_estimator(algorithm, device, parameters)
    elif parameters:
        raise TypeError(f"estimator has its own parameters, got {sorted(parameters)} beside it")
    elif not isinstance(estimator, TrainingParameters):
        raise TypeError(f"estimator must be one of a single boosting algorithm, got a {type(estimator).__name__}")
    else:
        model = copy.copy(estimator)
        if device != "auto":
            model.device = device
    model._check_parameters()
    return model


def _options(client: Any, links: str, ports: Any, lost_after: float, start_within: float) -> Options:
    """Check how to train on a cluster."""
    check_client(client)
    if client.asynchronous:
        raise TypeError("client must not be asynchronous: gpuboost.dask.fit waits until the model is there")
    check_choice("links", links, ("auto", "sockets", "dask"))
    if ports is not None:
        if not isinstance(ports, tuple) or len(ports) != 2:
            raise TypeError(f"ports must be None or the first and the last port, got {ports!r}")
        low = check_integer("ports[0]", ports[0], 1, 65535)
        ports = (low, check_integer("ports[1]", ports[1], low, 65535))
    for name, seconds in {"lost_after": lost_after, "start_within": start_within}.items():
        if not isinstance(seconds, (int, float)) or not seconds > 0:
            raise ValueError(f"{name} must be a number of seconds above 0, got {seconds!r}")
    if not silences(client):
        raise RuntimeError("the cluster has no workers: start some, or wait for them with client.wait_for_workers")
    return Options(links, ports, lost_after, start_within)
