"""Compiled loops over rows of levels: distances to training points, and what is made of them.

Each works on the rows lo..hi-1. The limit of distances is the vector unit: a subtraction and a multiplication for every level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, compiled


class SimilarityArrays(NamedTuple):
    """The arrays of `gpuboost.similarities.ensemble.Similarities` that prediction needs."""

    levels: Array
    first: Array
    second: Array
    radius: Array
    coefficients: Array


@compiled
def squared_distance(levels: Array, i: Int, points: Array, j: Int) -> Int:
    total = np.int32(0)
    for f in range(levels.shape[1]):
        difference = np.int32(levels[i, f]) - np.int32(points[j, f])
        total += difference * difference
    return total


@compiled
def squared_distances(lo: int, hi: int, levels: Array, points: Array, out: Array) -> None:
    for i in range(lo, hi):
        out[i] = squared_distance(levels, i, points, 0)


@compiled
def ring_index(lo: int, hi: int, distances: Array, radii: Array, out: Array) -> None:
    """The number of radii below a distance, by a binary search."""
    for i in range(lo, hi):
        below, width = 0, len(radii)
        while width > 0:
            half = (width + 1) >> 1
            below += half * (radii[below + half - 1] < distances[i])
            width -= half
        out[i] = below


@compiled
def nearer_index(lo: int, hi: int, distances: Array, limits: Array, out: Array) -> None:
    """``limits`` has one entry for all rows, or one for each."""
    one_for_all = len(limits) == 1
    for i in range(lo, hi):
        out[i] = distances[i] <= limits[0 if one_for_all else i]


@compiled
def opposite_rows(lo: int, hi: int, distances: Array, sides: Array, side: int, rows: Array) -> Int:
    best, least = -1, np.int32(2**31 - 1)
    for i in range(lo, hi):
        is_other = (sides[i, 0] != side) & (distances[i] > 0)
        rows[i] = is_other
        if is_other and distances[i] < least:
            best, least = i, distances[i]
    return best


@compiled
def drop_similar(lo: int, hi: int, rows: Array, distances: Array, to_candidate: Array, apart: int) -> Int:
    best, least = -1, np.int32(2**31 - 1)
    for i in range(lo, hi):
        if rows[i]:
            a, b = np.int64(distances[i]), np.int64(to_candidate[i])
            fourfold = 2 * a + 2 * b - apart
            if 10 * apart * (a - b) >= 4 * apart * apart + fourfold * fourfold:
                rows[i] = 0
            elif distances[i] < least:
                best, least = i, distances[i]
    return best


@compiled
def class_products(lo: int, hi: int, quantised: Array, frequency_weight: Array, n_classes: int) -> Array:
    products = np.zeros((n_classes, n_classes), np.int64)
    for i in range(lo, hi):
        times = np.int64(frequency_weight[i])
        for k in range(n_classes):
            unit = np.int64(quantised[i, k]) // times
            for m in range(n_classes):
                products[k, m] += unit * np.int64(quantised[i, m])
    return products


@compiled
def add_similarities(lo: int, hi: int, rows: Array, similarities: SimilarityArrays, scores: Array) -> None:
    """A row's distances to all points that are used are in the nearest cache, while its rounds are added up."""
    levels, first, second, radius, coefficients = similarities
    distances = np.empty(max(len(levels), 1), np.int32)
    for i in range(lo, hi):
        for j in range(len(levels)):
            distances[j] = squared_distance(rows, i, levels, j)
        for t in range(len(first)):
            is_near = True
            if second[t] >= 0:
                is_near = distances[first[t]] <= distances[second[t]]
            elif first[t] >= 0:
                is_near = distances[first[t]] <= radius[t]
            sign = 1.0 if is_near else -1.0
            for k in range(scores.shape[1]):
                scores[i, k] += sign * coefficients[t, k]
