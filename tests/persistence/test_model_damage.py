"""Model files that are damaged, or made to do damage: one clear error each, and nothing is run."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import gpuboost
from gpuboost import ModelFormatError
from gpuboost.persistence import model_file
from gpuboost.persistence import safetensors as safetensors_module
from gpuboost.persistence.safetensors import CHECKSUM, NO_CHECKSUM
from tests.models import KINDS, X, fit

FILES = [
    bytes(model_file.to_bytes(fit(kind, device="numpy")))
    for kind in ("abc-boost", "adaboost-mh", "rebel, costs", "localized-similarities")
]
FILE = FILES[0]


def load(data: bytes, folder: Path) -> Any:
    (folder / "model").write_bytes(data)
    return gpuboost.load(folder / "model", device="cpu", n_jobs=1)


def refused(data: bytes, folder: Path, match: str | None = None) -> None:
    with pytest.raises(ModelFormatError, match=match) as caught:
        load(data, folder)
    assert type(caught.value) is ModelFormatError
    assert repr(str(folder / "model")) in str(caught.value)
    assert caught.value.__cause__ is None


def sealed(data: bytes) -> bytes:
    """The data with a checksum that is right."""
    file = bytearray(data)
    file[CHECKSUM] = NO_CHECKSUM
    file[CHECKSUM] = hashlib.sha256(file).hexdigest().encode()
    return bytes(file)


def parts(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The content, the entries of the arrays, and their bytes."""
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    return json.loads(header.pop("__metadata__")["gpuboost"]), header, data[8 + n :]


def joined(content: str, entries: str, data: bytes) -> bytes:
    """A file of a JSON text and the text of the entries of the arrays."""
    header = ('{"__metadata__":{"gpuboost":' + json.dumps(content) + "}" + entries + "}").encode()
    header += b" " * (-len(header) % 8)
    return sealed(len(header).to_bytes(8, "little") + header + data)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def forged(change: Callable[[dict[str, Any], dict[str, Any]], object], file: bytes = FILE) -> bytes:
    """A file with other content or arrays, and with a checksum that is right."""
    content, entries, data = parts(file)
    arrays = {
        name: np.frombuffer(data[slice(*e["data_offsets"])], safetensors_module.DTYPES[e["dtype"]]).reshape(e["shape"]).copy()
        for name, e in entries.items()
    }
    change(content, arrays)
    del content["sha256"], content["format"]
    return bytes(safetensors_module.pack(content, arrays))


def test_the_forger_can_forge(tmp_path: Path) -> None:
    assert forged(lambda content, arrays: None) == FILE
    content, entries, data = parts(FILE)
    assert joined(compact(content), "," + compact(entries)[1:-1], data) == FILE


def mutations(data: bytes, n: int, rng: np.random.Generator) -> list[bytes]:
    """Damaged copies: bits flipped, cut short, bytes put in, taken out, overwritten or exchanged."""
    found = []
    header = 8 + int.from_bytes(data[:8], "little")
    for i in range(n):
        file = bytearray(data)
        at = int(rng.integers(len(file) if i % 3 else header))
        width = int(rng.integers(1, 40))
        match i % 6:
            case 0 | 1:
                file[at] ^= 1 << int(rng.integers(8))
            case 2:
                del file[at:]
            case 3:
                file[at:at] = rng.bytes(width)
            case 4:
                del file[at : at + width]
            case _:
                file[at : at + width] = rng.bytes(len(file[at : at + width]))
        if file != data:
            found.append(bytes(file))
    return found


def test_random_damage(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    n, rng = request.config.getoption("--mutations"), np.random.default_rng(0)
    for file in FILES:
        for damaged in mutations(file, n // len(FILES), rng):
            refused(damaged, tmp_path)


def test_random_damage_with_a_checksum_that_is_right(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Whatever loads is a model: it predicts, and saves what it was loaded from or its like."""
    n, rng, loaded = request.config.getoption("--mutations"), np.random.default_rng(1), 0
    for file in FILES:
        for damaged in mutations(file, n // len(FILES), rng):
            if damaged[: CHECKSUM.stop] != file[: CHECKSUM.stop]:
                continue
            try:
                model = load(sealed(damaged), tmp_path)
            except ModelFormatError:
                continue
            loaded += 1
            with np.errstate(all="ignore"):
                assert model.decision_function(X).shape[0] == len(X)
            model.save(tmp_path / "again")
    assert loaded > 0


def test_cut_short_anywhere(tmp_path: Path) -> None:
    for n in [*range(0, 400, 5), *range(400, len(FILE), 97), len(FILE) - 1]:
        refused(FILE[:n], tmp_path)


def set_(name: str, value: Any, at: Any = ...) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda content, arrays: arrays[name].__setitem__(at, value)


def put(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda content, arrays: content.__setitem__(name, value)


def change(name: str, by: Callable[[Any], Any]) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda content, arrays: arrays.__setitem__(name, by(arrays[name]))


HOSTILE = {
    "cycle": (set_("ensemble/left", 0, 1), "a node's child"),
    "itself": (set_("ensemble/right", 1, 1), "a node's child"),
    "child out of range": (set_("ensemble/left", 2**31 - 1, 0), "a node's child"),
    "leaf out of range": (set_("ensemble/left", -(2**31), 0), "a node's child"),
    "leaf of two nodes": (set_("ensemble/left", -1), "the child of two nodes|a node's child"),
    "feature out of range": (set_("ensemble/feature", 4, 0), "a feature that is not one of 4"),
    "negative feature": (set_("ensemble/feature", -1, 0), "a feature that is not one of 4"),
    "cut behind the bins": (set_("ensemble/cut", 255), "behind the last bin"),
    "offsets fall": (set_("ensemble/node_offset", 9, 1), "offsets of the trees|not one leaf more"),
    "offsets begin late": (set_("ensemble/round_offset", 1, 0), "offsets of the rounds"),
    "offsets are huge": (set_("ensemble/leaf_offset", 2**62, 1), "offsets of the leaves"),
    "NaN in a leaf": (set_("ensemble/values", np.nan, 0), "is not finite"),
    "infinite gain": (set_("ensemble/gain", np.inf, 0), "is not finite"),
    "NaN in a cut": (set_("bins/cut_values", np.nan, 0), "not ascending"),
    "cuts fall": (change("bins/cut_values", lambda a: a[::-1].copy()), "not ascending"),
    "too many cuts": (
        change("bins/cut_offsets", lambda a: np.array([0, a[-1], a[-1], a[-1], a[-1]])),
        "more than 254 cuts|behind",
    ),
    "another dtype": (change("ensemble/values", lambda a: a.astype(np.float32)), "not 2-dimensional of float64"),
    "another shape": (change("ensemble/values", lambda a: a.reshape(-1)), "not 2-dimensional of float64"),
    "values of other classes": (change("ensemble/values", lambda a: a[:, :2].copy()), "2 values for 3 classes"),
    "missing array": (lambda content, arrays: arrays.pop("ensemble/gain"), "is missing"),
    "unknown array": (lambda content, arrays: arrays.update(more=np.zeros(3)), "nothing is known of"),
    "short history": (change("history/train_loss", lambda a: a[:2].copy()), "its history has"),
    "sizes of lists": (set_("sizes/candidate_losses", 2**40, 0), "cannot be cut into lists"),
    "unknown estimator": (put("estimator", "os.system"), "its estimator 'os.system' is not one of"),
    "estimator of the base": (put("estimator", "BoostingClassifier"), "is not one of"),
    "no classes": (put("classes", {"dtype": "<i8", "labels": []}), "it has no classes"),
    "equal classes": (put("classes", {"dtype": "object", "labels": [1, True, 2]}), "two of its classes are the same"),
    "lists for labels": (put("classes", {"dtype": "object", "labels": [[1], [2], [3]]}), "cannot be looked up"),
    "labels of other types": (put("classes", {"dtype": "<i8", "labels": ["a", "b", "c"]}), "are not understood"),
    "labels out of range": (put("classes", {"dtype": "|i1", "labels": [1, 2, 300]}), "are not understood"),
    "objects of pickle": (put("classes", {"dtype": "O", "labels": [1, 2, 3]}), "are not understood"),
    "endless labels": (put("classes", {"dtype": "<U99999999", "labels": ["a", "b", "c"]}), "too much room"),
    "endless fraction": (put("classes", {"dtype": "object", "labels": [{"fraction": "1e999999999"}]}), "not understood"),
    "not a number of features": (put("n_features", 2**70), "out of range"),
    "other number of features": (put("n_features", 5), "it has cuts of 4 features, not of 5"),
    "column names": (put("feature_names", ["a"]), "1 column names for 4 columns"),
    "truth for a number": (put("n_features", True), "'n_features' in its header is True"),
    "unknown parameter": (lambda content, arrays: content["parameters"].update(device="cuda"), "has no parameter 'device'"),
    "a parameter by two names": (
        lambda content, arrays: content["parameters"].update(row_fraction=0.5, subsample=0.5),
        "by its present name and by an earlier one",
    ),
    "wrong parameter": (lambda content, arrays: content["parameters"].update(n_estimators=-1), "n_estimators must be"),
    "unknown value": (lambda content, arrays: content["parameters"].update(loss={"eval": "1"}), "is not understood"),
    "missing entry": (lambda content, arrays: content.pop("seed"), "its header has no 'seed'"),
    "unknown entry": (put("run", "rm"), "its header has 'run'"),
    "unknown attribute": (put("fitted", {"__class__": 1}), "has the attributes"),
    "extra": (put("extra", {"a": 1}), "no texts"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_was_made_by_hand(name: str, tmp_path: Path) -> None:
    change, match = HOSTILE[name]
    refused(forged(change), tmp_path, match)


def test_costs_of_a_file(tmp_path: Path) -> None:
    file = FILES[2]
    number = parts(file)[0]["fitted"]["cost_matrix_"]["array"]
    refused(forged(set_(number, -1.0), file), tmp_path, "cost_matrix")
    refused(forged(put("fitted", {"cost_matrix_": [[0, 1], [1, 0]]}), file), tmp_path, "cost_matrix")


def test_headers(tmp_path: Path) -> None:
    content, entries, data = parts(FILE)
    text, table = compact(content), "," + compact(entries)[1:-1]
    tracemalloc.start()
    for n in (2**63, 2**64 - 1, 10**6, 7, 0):
        refused(sealed(n.to_bytes(8, "little") + FILE[8:]), tmp_path, "damaged or cut short")
    huge = copy.deepcopy(entries)
    huge["ensemble/node_offset"]["shape"] = [2**40 + 1]
    refused(joined(text, "," + compact(huge)[1:-1], data), tmp_path, "not where it should be")
    huge["ensemble/node_offset"]["shape"] = [10**4000]
    refused(joined(text, "," + compact(huge)[1:-1], data), tmp_path, "shape or place")
    first = next(iter(entries))
    for entry in (
        {},
        [],
        {**entries[first], "dtype": "F8"},
        {**entries[first], "dtype": []},
        {**entries[first], "shape": [-1]},
    ):
        refused(joined(text, "," + compact({**entries, first: entry})[1:-1], data), tmp_path, "the array")
    refused(joined(text, table + table, data), tmp_path, "stands twice")
    refused(joined(text[:-1] + ',"seed":1}', table, data), tmp_path, "stands twice")
    refused(joined(text[:-1] + ',"seed":' + "9" * 5000 + "}", table, data), tmp_path, "limit")
    refused(joined(text[:-1] + ',"seed":NaN}', table, data), tmp_path, "NaN is no number")
    refused(joined(text[:-1] + ',"deep":' + "[" * 100_000 + "]" * 100_000 + "}", table, data), tmp_path, "nested too deeply")
    refused(joined(text[:-1] + ',"wide":[' + "[]," * 1_000_000 + "0]}", table, data), tmp_path, "too many entries")
    refused(joined(text[:-1] + ',"long":"' + "x" * (9 << 20) + '"}', table, data), tmp_path, "damaged or cut short")
    refused(joined(text[:-1], table, data), tmp_path, "was changed")
    refused(joined(text, table, data + b"more"), tmp_path, "its arrays have")
    backwards = dict(reversed(list(entries.items())))
    refused(joined(text, "," + compact(backwards)[1:-1], data), tmp_path, "not where it should be")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_nothing_true_nor_false(tmp_path: Path) -> None:
    refused(forged(change("bins/has_missing", lambda a: np.frombuffer(bytes([0, 1, 2, 0]), bool))), tmp_path, "true nor false")


def test_versions(tmp_path: Path) -> None:
    newer = FILE.replace(b'\\"format\\":1,', b'\\"format\\":2,', 1)
    for file in (newer, sealed(newer)):
        refused(file, tmp_path, "is of a newer gpuboost: its format is 2, and this version reads up to 1; update gpuboost")
    refused(sealed(FILE.replace(b'\\"format\\":1,', b'\\"format\\":0,', 1)), tmp_path, "its format is 0, which does not exist")


class Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was opened",))


def test_other_files(tmp_path: Path) -> None:
    refused(b"", tmp_path, "is empty")
    refused(pickle.dumps(Bomb()), tmp_path, "is a pickle, which may run anything and is never opened")
    refused(safetensors.numpy.save({"a": np.zeros(3)}), tmp_path, "is no model file of gpuboost")
    for foreign in (pickle.dumps(Bomb()), b"PK\3\4" + bytes(100)):
        refused(foreign, tmp_path, '"model.save" or "gpuboost fit --out" has written')
    with pytest.raises(ModelFormatError, match=r'is a folder or a device, .*"gpuboost fit --out" has written'):
        gpuboost.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        gpuboost.load(tmp_path / "missing")


def test_describe_refuses_the_same(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(forged(set_("ensemble/left", 0, 1)))
    with pytest.raises(ModelFormatError, match="a node's child"):
        model_file.describe(tmp_path / "model")


@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_counts(kind: str, tmp_path: Path) -> None:
    file = bytes(model_file.to_bytes(fit(kind, n_estimators=1)))
    rng = np.random.default_rng(5)
    for at in rng.integers(0, len(file), 25).tolist():
        refused(file[:at] + bytes([file[at] ^ 1 << int(rng.integers(8))]) + file[at + 1 :], tmp_path)


POINTS = bytes(model_file.to_bytes(fit("localized-similarities", device="numpy")))
HOSTILE_POINTS = {
    "a point that is not there": (set_("similarities/first", 99, 0), "a point that is not there"),
    "a point below": (set_("similarities/second", -2, 0), "a point that is not there"),
    "a second point alone": (set_("similarities/first", -1), "a second point, but no first|a radius is out of range|not used"),
    "a negative radius": (set_("similarities/radius", -1, 0), "a radius is out of range"),
    "an endless radius": (set_("similarities/radius", 2**40), "a radius is out of range"),
    "NaN in a vector": (set_("similarities/coefficients", np.nan, 0), "its coefficients are not finite"),
    "vectors of other classes": (change("similarities/coefficients", lambda a: a[:, :2].copy()), "not of 3 classes"),
    "a round less": (change("similarities/radius", lambda a: a[:-1].copy()), "for each round"),
    "a row less": (change("similarities/rows", lambda a: a[:-1].copy()), "one row and one class for each point"),
    "a negative row": (set_("similarities/rows", -1, 0), "row is negative"),
    "a class beyond": (set_("similarities/classes", 3, 0), "its class not one of 3"),
    "a level above the last": (set_("similarities/levels", 255, 0), "a level above the last one"),
    "a column less": (change("similarities/levels", lambda a: a[:, :-1].copy()), "a point has other features"),
    "a point that nobody uses": (
        lambda content, arrays: arrays.update(
            {
                f"similarities/{name}": np.concatenate([arrays[f"similarities/{name}"]] * 2)
                for name in ("levels", "rows", "classes")
            }
        ),
        "a point is not used",
    ),
    "no unit": (set_("scale/unit", 0.0, 0), "its unit not positive"),
    "an infinite value": (set_("scale/low", np.inf, 0), "lowest value is not finite"),
    "a missing level above": (set_("scale/missing", 255, 0), "above the last one"),
    "scales of other columns": (change("scale/low", lambda a: a[:-1].copy()), "scales of 3 features, not of 4"),
    "a unit less": (change("scale/unit", lambda a: a[:-1].copy()), "one scale for each feature"),
    "trees": (put("estimator", "RebelClassifier"), "has no parameter|unexpected keyword"),
    "no scale": (lambda content, arrays: arrays.pop("scale/low"), "is missing"),
    "no similarities": (lambda content, arrays: arrays.pop("similarities/first"), "is missing"),
}


@pytest.mark.parametrize("name", HOSTILE_POINTS)
def test_points_that_were_made_by_hand(name: str, tmp_path: Path) -> None:
    hostile, match = HOSTILE_POINTS[name]
    refused(forged(hostile, POINTS), tmp_path, match)
