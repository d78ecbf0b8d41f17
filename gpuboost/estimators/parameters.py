"""Checks of constructor parameters: each names the parameter, what was received and what is expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int if it is an integer in ``low .. high``."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        expected = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise _error(is_integer, f"{name} must be an integer {expected}, got {value!r}")
    return int(value)


def check_positive(name: str, value: Any, below: float = math.inf) -> float:
    """Return ``value`` as a float if it is a number between 0 and ``below``, both excluded."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < value < below:
        expected = "a positive finite number" if below == math.inf else f"a number between 0 and {below:g} (both excluded)"
        raise _error(is_number, f"{name} must be {expected}, got {value!r}")
    return float(value)


def check_fraction(name: str, value: Any, high: float) -> float:
    """Return ``value`` as a float if it is a number from 0 to ``high``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= high:
        raise _error(is_number, f"{name} must be a number from 0 to {high:g}, got {value!r}")
    return float(value)


def check_share(name: str, value: Any, *, none_is_one: bool = False) -> float:
    """Return ``value`` as a float if it is a number above 0, up to 1."""
    if none_is_one and value is None:
        return 1.0
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 1:
        expected = "None or a number above 0, up to 1" if none_is_one else "a number above 0, up to 1"
        raise _error(is_number, f"{name} must be {expected}, got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Return ``value`` if it is one of the strings ``options``."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(f'"{option}"' for option in options)
        raise _error(isinstance(value, str), f"{name} must be one of {listed}, got {value!r}")
    return value


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


def _error(right_type: bool, message: str) -> Exception:
    return ValueError(message) if right_type else TypeError(message)
