"""`gpuboost.dask.fit` on workers that are threads of this process: where rows may come from, and that none is lost or moved.

The workers train by a stand-in, see `tests.dask.stand_in`.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from distributed import Client
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gpuboost
from gpuboost.dask import DaskClassifier, fit, predict, predict_proba
from gpuboost.dask.driver import Options, train_on_workers
from gpuboost.dask.fitting import Data
from gpuboost.dask.partitions import joined
from gpuboost.persistence.model_file import to_bytes
from tests.dask import stand_in
from tests.dask.clusters import addresses, cluster, is_at_rest, wait_until

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "c": RNG.integers(0, 9, N) / 2})
LABEL = np.where(FRAME["a"] > 0, "up", "down")
WEIGHT = RNG.integers(1, 4, N).astype(float)
ALL = FRAME.assign(label=LABEL, w=WEIGHT)
X = FRAME.to_numpy()
SMALL = {"n_estimators": 3, "random_state": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster(3, processes=False) as three:
        yield three
        wait_until(lambda: is_at_rest(three))


@pytest.fixture(autouse=True)
def train_by_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.dask.fitting.fit_worker", stand_in.train)


def alone(X: Any, y: Any, weight: Any = None, eval_set: Any = None, **parameters: Any) -> bytes:
    """The model file of one process."""
    model = gpuboost.fit(X, y, sample_weight=weight, eval_set=eval_set, device="numpy", **SMALL, **parameters)
    return bytes(to_bytes(model))


def cut(whole: Any, *lengths: int) -> list[Any]:
    """Delayed partitions of an array or a frame."""
    ends = np.cumsum([0, *lengths, N - sum(lengths)]).tolist()
    return [dask.delayed(whole[low:high]) for low, high in itertools.pairwise(ends)]


def test_arrays(client: Client) -> None:
    array = da.from_array(X, chunks=(17, 2))  # its columns are in two chunks
    model = fit(client, array, da.from_array(LABEL, 17), da.from_array(WEIGHT, 17), **SMALL)
    assert bytes(to_bytes(model)) == alone(X, LABEL, WEIGHT)
    assert set(model.workers_) <= set(addresses(client))
    assert model.predict(X[:5]).tolist() == LABEL[:5].tolist()


def test_frames_whose_labels_and_weights_are_columns(client: Client) -> None:
    frame = dd.from_pandas(ALL, npartitions=4, sort=False)
    expected = alone(FRAME, ALL["label"], WEIGHT)
    assert bytes(to_bytes(fit(client, frame, "label", "w", **SMALL))) == expected
    features = frame[["a", "b", "c"]]
    assert bytes(to_bytes(fit(client, features, frame["label"], frame["w"], **SMALL))) == expected


def test_evaluation_sets(client: Client) -> None:
    array, label, weight = (da.from_array(one, chunks=20) for one in (X, LABEL, WEIGHT))
    few = (da.from_array(X[:7], chunks=3), da.from_array(LABEL[:7], chunks=3))
    model = fit(client, array, label, eval_set=[few, (array, label, weight)], early_stopping=True, **SMALL)
    assert bytes(to_bytes(model)) == alone(X, LABEL, None, [(X[:7], LABEL[:7]), (X, LABEL, WEIGHT)], early_stopping=True)


def test_delayed_partitions_and_futures_some_of_them_empty(client: Client) -> None:
    expected = alone(X, LABEL, WEIGHT)
    lengths = (0, 7, 0, 40)
    as_delayed = fit(client, cut(X, *lengths), cut(LABEL, *lengths), cut(WEIGHT, *lengths), **SMALL)
    assert bytes(to_bytes(as_delayed)) == expected
    as_futures = client.scatter([X[:30], X[30:]])
    assert bytes(to_bytes(fit(client, as_futures, cut(LABEL, 30), cut(WEIGHT, 30), **SMALL))) == expected
    twice = fit(client, 2 * as_futures, 2 * cut(LABEL, 30), **SMALL)
    assert bytes(to_bytes(twice)) == alone(np.tile(X, (2, 1)), np.tile(LABEL, 2))


def test_labels_in_other_partitions_are_realigned(client: Client) -> None:
    array = da.from_array(X, chunks=(17, 3))
    model = fit(client, array, da.from_array(LABEL, 7), cut(WEIGHT, 5, 50, 5), **SMALL)
    assert bytes(to_bytes(model)) == alone(X, LABEL, WEIGHT)


def test_no_missing_value_is_lost_when_partitions_are_realigned() -> None:
    masked = np.ma.masked_equal([1, 2, 3, 4], 3)
    assert joined([masked[:2], masked[2:]], [(1, 2), (0, 2)]).tolist() == [2, None, 4]
    series = pd.Series([1, None, 3], dtype="Int64")
    assert joined([series, series], [(1, 3), (0, 1)]).isna().tolist() == [True, False, False]


def test_rows_and_workers_may_be_divided_in_any_way(client: Client) -> None:
    expected = alone(X, LABEL)
    placed = [client.scatter(X[i : i + 10], workers=[addresses(client)[i % 3]]) for i in range(0, N, 10)]
    label = cut(LABEL, 10, 10, 10, 10, 10)
    assert bytes(to_bytes(fit(client, placed, label, **SMALL))) == expected
    all_on_one = client.scatter([X[:1], X[1:]], workers=[addresses(client)[1]])
    model = fit(client, all_on_one, cut(LABEL, 1), **SMALL)
    assert bytes(to_bytes(model)) == expected
    assert model.workers_ == [addresses(client)[1]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of Parquet in several row groups, one of which has an index of pandas and another no rows."""
    path = tmp_path_factory.mktemp("rows")
    for i, (low, high) in enumerate([(0, 25), (25, 25), (25, N)]):
        part = ALL[low:high] if i else ALL[low:high].set_index(np.arange(100, 125))
        part.to_parquet(path / f"{i}.parquet", row_group_size=10, index=i == 0)
    return path


def test_parquet(client: Client, folder: Path) -> None:
    expected = alone(pa.Table.from_pandas(FRAME), LABEL.astype(object), WEIGHT)
    model = fit(client, folder, "label", "w", **SMALL)
    assert bytes(to_bytes(model)) == expected
    assert len(model.workers_) == 3
    files = [str(folder / f"{i}.parquet") for i in range(3)]
    assert bytes(to_bytes(fit(client, files, "label", "w", **SMALL))) == expected
    watched = fit(client, pads.dataset(files), "label", "w", eval_set=(folder, "label", "w"), **SMALL)
    assert watched.history_["valid_error"] == watched.history_["train_error"]


def test_a_model_is_continued(client: Client) -> None:
    array, label = da.from_array(X, chunks=(20, 3)), da.from_array(LABEL, 20)
    begun = fit(client, array, label, n_estimators=1, random_state=0)
    begun.set_params(n_estimators=3, warm_start=True)
    assert bytes(to_bytes(fit(client, array, label, estimator=begun))) == alone(X, LABEL)
    assert begun.n_estimators_ == 1


@pytest.mark.parametrize("links", ["sockets", "dask"])
@pytest.mark.parametrize("n_workers", [1, 2, 5])
def test_every_call_by_either_kind_of_links(links: str, n_workers: int) -> None:
    with cluster(n_workers, processes=False) as client:
        shares = {worker: [[]] for worker in addresses(client)}
        kind = train_on_workers(client, shares, stand_in.Anything(), Options(links=links), stand_in.calls)
        assert kind == {"sockets": b"Links", "dask": b"CommLinks"}[links]
        wait_until(lambda: is_at_rest(client))


def test_workers_that_cannot_reach_each_other_use_the_connections_of_dask(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is at home in TEST-NET-2."""
    report = gpuboost.dask.worker.Seat.report
    monkeypatch.setattr("gpuboost.dask.worker.Seat.report", lambda seat: report(seat) | {"host": "198.51.100.1"})
    monkeypatch.setattr("gpuboost.dask.worker.REACH_SECONDS", 0.1)
    shares = {worker: [[]] for worker in addresses(client)}
    with pytest.warns(RuntimeWarning, match=r"cannot reach 198.51.100.1, port .*linked by Dask's connections"):
        kind = train_on_workers(client, shares, stand_in.Anything(), Options(), stand_in.calls)
    assert kind == b"CommLinks"


def test_other_versions_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    report = gpuboost.dask.worker.Seat.report

    def odd(seat: Any) -> dict[str, Any]:
        return report(seat) | {"versions": {"gpuboost": f"0.{seat.assignment.rank}"}}

    monkeypatch.setattr("gpuboost.dask.worker.Seat.report", odd)
    shares = {worker: [[]] for worker in addresses(client)}
    with pytest.raises(RuntimeError, match=r"the same versions, but gpuboost is 0.0 on inproc.* and 0.1 on inproc"):
        train_on_workers(client, shares, stand_in.Anything(), Options(), stand_in.calls)


# ---- what is refused before the training -------------------------------------------------------------------------------------

GOOD = da.from_array(X, chunks=(20, 3))
GOOD_LABEL = da.from_array(LABEL, 20)
REFUSED: dict[str, tuple[Callable[[Client], Any], str]] = {
    "rows": (
        lambda client: fit(client, GOOD, da.from_array(LABEL[:55], 20)),
        r"X has 60 rows and y 55: partition 2 has 20 rows in X and 15 rows in y",
    ),
    "partitions": (
        lambda client: fit(client, GOOD, GOOD_LABEL, da.from_array(WEIGHT[:40], 20)),
        r"X has 60 rows and sample_weight 40: partition 2 has 20 rows in X and none in sample_weight",
    ),
    "columns": (
        lambda client: fit(client, cut(FRAME, 30)[:1] + cut(FRAME[["b", "a", "c"]], 30)[1:], cut(LABEL, 30)),
        r"partition 0 of X and partition 1 of X have other columns: number 0 is 'a' of numbers and 'b' of numbers",
    ),
    "kinds": (
        lambda client: fit(client, cut(FRAME, 30)[:1] + cut(FRAME.assign(c="text"), 30)[1:], cut(LABEL, 30)),
        r"number 2 is 'c' of numbers and 'c' of (str|object)",
    ),
    "width": (
        lambda client: fit(client, cut(X, 30)[:1] + cut(X[:, :2], 30)[1:], cut(LABEL, 30)),
        r"partition 0 of X and partition 1 of X have other columns: 3 and 2 of them",
    ),
    "eval_set": (
        lambda client: fit(client, GOOD, GOOD_LABEL, eval_set=(GOOD[:, :2], GOOD_LABEL)),
        r"X and X of eval_set\[0\] have other columns: 3 and 2 of them",
    ),
    "eval_set's rows": (
        lambda client: fit(client, GOOD, GOOD_LABEL, eval_set=(GOOD, GOOD_LABEL[:9])),
        r"X of eval_set\[0\] has 60 rows and y of eval_set\[0\] 9: partition 0 has 20 rows .* and 9 rows",
    ),
    "text and numbers": (
        lambda client: fit(client, cut(X, 20, 20), [*cut(np.ones(40), 40)[:1], *cut(LABEL[:20])]),
        r"partition 0 of y holds numbers, but partition 1 holds text",
    ),
    "no labels": (lambda client: fit(client, GOOD, None), r"y must be labels, or the name of a column of X, got None"),
    "weights, no labels": (lambda client: fit(client, GOOD, None, da.from_array(WEIGHT, 20)), r"y must be labels.* got None"),
    "eval_set's labels": (
        lambda client: fit(client, GOOD, GOOD_LABEL, eval_set=(GOOD, None)),
        r"y of eval_set\[0\] must be labels.* got None",
    ),
    "no rows": (lambda client: fit(client, GOOD[:0], GOOD_LABEL[:0]), r"X has no rows in its 1 partitions"),
    "no matrix": (lambda client: fit(client, GOOD_LABEL, GOOD_LABEL), r"X must have rows and columns"),
    "no collection": (lambda client: fit(client, X, LABEL), r"X must be an array or a frame of Dask.* got a ndarray"),
    "no column": (
        lambda client: fit(client, dd.from_pandas(ALL, npartitions=2), "colour"),
        r"y must be a column of X, which has \['a', 'b', 'c', 'label', 'w'\], got 'colour'",
    ),
    "a column that stands twice": (
        lambda client: fit(
            client, dd.from_pandas(ALL.set_axis(["a", "b", "w", "label", "w"], axis=1), npartitions=2), "label", "w"
        ),
        r"sample_weight must be a column of X that stands there once",
    ),
    "algorithm": (lambda client: fit(client, GOOD, GOOD_LABEL, algorithm="adaboost"), r"algorithm must be one of"),
    "parameter": (lambda client: fit(client, GOOD, GOOD_LABEL, n_rounds=3), r"has no parameter 'n_rounds'"),
    "value": (lambda client: fit(client, GOOD, GOOD_LABEL, n_estimators=0), r"n_estimators must be an integer"),
    "estimator": (
        lambda client: fit(client, GOOD, GOOD_LABEL, estimator=gpuboost.OutputCodeClassifier(gpuboost.AdaBoostMHClassifier())),
        r"must be one of a single boosting algorithm, got a OutputCode",
    ),
    "links": (lambda client: fit(client, GOOD, GOOD_LABEL, links="mpi"), r"links must be one of"),
    "ports": (lambda client: fit(client, GOOD, GOOD_LABEL, ports=(9000, 80)), r"ports\[1\] must be an integer from 9000"),
    "seconds": (lambda client: fit(client, GOOD, GOOD_LABEL, lost_after=0), r"lost_after must be a number of seconds"),
    "client": (lambda client: fit("tcp://127.0.0.1:8786", GOOD, GOOD_LABEL), r"client must be a distributed.Client, got a str"),
    "checkpoint": (lambda client: fit(client, GOOD, GOOD_LABEL, checkpoint=3), r"checkpoint must be a gpuboost.Checkpoint"),
    "a partition's own error": (lambda client: fit(client, [dask.delayed(int)("x")], cut(LABEL)), r"invalid literal for int"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(client: Client, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.dask.fitting.train_on_workers", None)  # nothing is trained
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call(client)


def test_parquet_files_that_differ_are_refused(client: Client, folder: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0], "b": [1.0], "c": ["text"], "label": ["up"], "w": [1.0]}), tmp_path / "odd.parquet")
    both = [str(folder / "0.parquet"), str(tmp_path / "odd.parquet")]
    with pytest.raises(
        ValueError, match=r"0.parquet and .*odd.parquet have other columns: number 2 is 'c' of numbers and 'c' of str"
    ):
        fit(client, both, "label", "w")
    with pytest.raises(ValueError, match=r"0.parquet must have the column 'colour' once, it has"):
        fit(client, folder, "colour")
    with pytest.raises(TypeError, match=r"y must be the name of a column of the files, got a ndarray"):
        fit(client, folder, LABEL)
    with pytest.raises(FileNotFoundError):
        fit(client, tmp_path / "nothing.parquet", "label")
    ALL.to_csv(tmp_path / "rows.csv")
    with pytest.raises(ValueError, match=r"rows.csv must be a Parquet file"):
        fit(client, tmp_path / "rows.csv", "label")


def test_a_checkpoint_needs_its_folder_on_the_worker(client: Client, tmp_path: Path) -> None:
    keep = gpuboost.Checkpoint(tmp_path / "model")
    object.__setattr__(keep, "path", str(tmp_path / "other" / "model"))  # that of another machine
    with pytest.raises(FileNotFoundError, match="the folder of the checkpoint"):
        fit(client, GOOD, GOOD_LABEL, checkpoint=keep)


# ---- after the training ------------------------------------------------------------------------------------------------------


def test_predictions_come_in_the_partitions_of_the_rows(client: Client) -> None:
    model = gpuboost.fit(FRAME, LABEL, device="numpy", **SMALL)
    frame = dd.from_pandas(FRAME, npartitions=3)
    labels = predict(client, model, frame)
    assert labels.dtype == model.classes_.dtype
    assert labels.compute().tolist() == model.predict(FRAME).tolist()
    some = frame[frame["a"] > 1.5]  # some partitions have none
    np.testing.assert_array_equal(predict_proba(client, model, some).compute(), model.predict_proba(FRAME[FRAME["a"] > 1.5]))


def test_predictions_of_arrays(client: Client) -> None:
    for y in (LABEL, np.column_stack([LABEL == "up", X[:, 1] > 0])):
        model = gpuboost.fit(X, y, device="numpy", **SMALL)
        array = da.from_array(X, chunks=(25, 2))
        for lazy, eager in ((predict, model.predict(X)), (predict_proba, model.predict_proba(X))):
            predicted = lazy(client, model, array)
            assert predicted.shape == eager.shape
            assert predicted.chunks[0] == (25, 25, 10)
            np.testing.assert_array_equal(predicted.compute(), eager, strict=True)
    with pytest.raises(TypeError, match="X must be an array or a frame of Dask with rows and columns, got a ndarray"):
        predict(client, model, X)


def test_what_cannot_predict_is_refused_before_a_task_is_made(client: Client) -> None:
    array = da.from_array(X, chunks=(25, 2))
    with pytest.raises(NotFittedError):
        predict(client, gpuboost.SAMMEClassifier(), array)
    with pytest.raises(TypeError, match=r"client must be a distributed.Client, got a SAMMEClassifier"):
        predict(gpuboost.SAMMEClassifier(), client, array)
    code = gpuboost.OutputCodeClassifier(gpuboost.SAMMEClassifier(device="numpy", **SMALL)).fit(X, LABEL)
    assert predict(client, code, array).compute().tolist() == code.predict(X).tolist()
    with pytest.raises(TypeError, match="model must be a classifier of gpuboost that has predict_proba, got a OutputCode"):
        predict_proba(client, code, array)


def test_a_classifier_of_a_cluster_is_cloned_and_pickled(client: Client) -> None:
    model = DaskClassifier(gpuboost.SAMMEClassifier(**SMALL), client).fit(GOOD, GOOD_LABEL)
    other = clone(model)
    assert other.client is client
    assert other.estimator is not model.estimator
    assert not hasattr(other, "model_")
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.client is None
        assert again.predict(GOOD).compute().tolist() == model.model_.predict(X).tolist()


def test_an_estimator_in_the_manner_of_scikit_learn(client: Client) -> None:
    inner = gpuboost.SAMMEClassifier(**SMALL)
    model = DaskClassifier(inner).fit(GOOD, GOOD_LABEL, links="dask")
    assert not hasattr(inner, "n_estimators_")
    assert isinstance(model.model_, gpuboost.SAMMEClassifier)
    assert model.predict(GOOD).compute().tolist() == model.model_.predict(X).tolist()
    np.testing.assert_array_equal(model.predict_proba(GOOD).compute(), model.model_.predict_proba(X))
    assert model.get_params(deep=False) == {"estimator": inner, "client": None}


def test_the_data_are_placed_again_when_asked(client: Client) -> None:
    data = Data(client, [(GOOD, GOOD_LABEL, None)], Options())
    shares = data.shares()
    assert sorted(block[0] for share in shares.values() for block in share[0]) == [0, 20, 40]
