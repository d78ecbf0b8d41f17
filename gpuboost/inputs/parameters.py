"""Checks and conversions of what callers pass beside the data: errors name the parameter, what was received and expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from gpuboost.peers.base import Peers, agree

MAX_LEARNING_RATE = 10**6
MAX_ROWS = 2**31 - 1
"""The largest number of rows that a parameter may ask for."""


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int if it is an integer in ``low .. high``."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        expected = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise _error(is_integer, f"{name} must be an integer {expected}, got {_shown(value)}")
    return int(value)


def check_learning_rate(value: Any, name: str = "learning_rate") -> float:
    """Return ``value`` as a float if it is a positive number that takes no step of boosting out of float64."""
    return _number(name, value, lambda x: 0 < x <= MAX_LEARNING_RATE, f"a number above 0, up to {MAX_LEARNING_RATE}")


def check_between(name: str, value: Any, high: float) -> float:
    """Return ``value`` as a float if it is a number between 0 and ``high``, both excluded."""
    return _number(name, value, lambda x: 0 < x < high, f"a number between 0 and {high:g} (both excluded)")


def check_fraction(name: str, value: Any, high: float) -> float:
    """Return ``value`` as a float if it is a number from 0 to ``high``."""
    return _number(name, value, lambda x: 0 <= x <= high, f"a number from 0 to {high:g}")


def check_share(name: str, value: Any, *, none_is_one: bool = False) -> float:
    """Return ``value`` as a float if it is a number above 0, up to 1."""
    if none_is_one and value is None:
        return 1.0
    return _number(name, value, lambda x: 0 < x <= 1, f"{'None or ' if none_is_one else ''}a number above 0, up to 1")


def check_choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Return ``value`` if it is one of the strings ``options``."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(f'"{option}"' for option in options)
        raise _error(isinstance(value, str), f"{name} must be one of {listed}, got {value!r}")
    return value


def check_class_weight(value: Any) -> None:
    """Raise a ValueError for what cannot be class weights, whatever the classes are."""
    if value is not None and not isinstance(value, dict) and not (isinstance(value, str) and value == "balanced"):
        raise ValueError(f'class_weight must be None, "balanced" or a dict of weights by label, got {value!r}')


def check_bool(name: str, value: Any) -> bool:
    """Return ``value`` as a bool if it is one."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_callables(name: str, value: Any) -> Sequence[Any]:
    """Return ``value`` if it is a list or tuple of callables; an empty one for None."""
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or not all(callable(item) for item in value):
        raise TypeError(f"{name} must be None or a list of callables, got {value!r}")
    return value


def as_float(entry: Any) -> float:
    """Return a number as a float; NaN for what is none."""
    try:
        return float(entry) if isinstance(entry, Real) else float("nan")
    except OverflowError:  # of an integer
        return float("inf")


def evaluation_tuples(eval_set: Any) -> list[tuple[Any, Any, Any]]:
    """Return the (X, y, sample_weight) triples of an ``eval_set``."""
    if eval_set is None:
        return []
    sets = []
    for one in eval_set if isinstance(eval_set, list) else [eval_set]:
        if not isinstance(one, tuple) or len(one) not in (2, 3):
            received = f"{type(one).__name__} of length {len(one)}" if hasattr(one, "__len__") else type(one).__name__
            raise ValueError(f"eval_set must be (X, y) or (X, y, sample_weight), or a list of such tuples, got a {received}")
        sets.append((one[0], one[1], one[2] if len(one) == 3 else None))
    return sets


def draw_seed(random_state: Any) -> int:
    """Return the seed of NumPy's generator that ``random_state`` stands for.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None draws a new seed, an int is the seed, a generator is asked for one.
    """
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return check_integer("random_state", random_state, 0)


def shared_seed(seed: int, peers: Peers) -> int:
    """Return the seed that the first worker has drawn."""
    shared = int(peers.gather(str(seed).encode(), "seed")[0])
    agree(peers, "seed", str(shared))
    return shared


def _number(name: str, value: Any, fits: Callable[[Any], Any], expected: str) -> float:
    """Return ``value`` as a float if it is a number that fits."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not fits(value):
        raise _error(is_number, f"{name} must be {expected}, got {_shown(value)}")
    return float(value)


def _shown(value: Any) -> str:
    """Return a value for a message. Python refuses to write very large integers."""
    too_large = isinstance(value, int) and abs(value) >= 10**100
    return f"an integer of {value.bit_length()} bits" if too_large else repr(value)


def _error(right_type: bool, message: str) -> Exception:
    return ValueError(message) if right_type else TypeError(message)
