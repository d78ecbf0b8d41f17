"""Which rectangles there are, and the draw of some of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gpuboost.features import pool
from gpuboost.rectangles import ImageShape
from tests.features.images import COLOUR, GREY, LINE

CELLS = {0: (1, 2), 1: (2, 1), 2: (1, 3), 3: (3, 1), 4: (2, 2)}
"""Cells of each kind, down and across."""


def listed(shape: ImageShape) -> list[tuple[int, ...]]:
    """All features, by trying every size and place."""
    sizes, tops, lefts = range(1, shape.height + 1), range(shape.height), range(shape.width)
    widths = range(1, shape.width + 1)
    return [
        (kind, c, h, y, w, x)
        for kind, c, h, y, w, x in product(CELLS, range(shape.n_channels), sizes, tops, widths, lefts)
        if y + h * CELLS[kind][0] <= shape.height and x + w * CELLS[kind][1] <= shape.width
    ]


@pytest.mark.parametrize("shape", [GREY, COLOUR, LINE, ImageShape(1, 2, 1), ImageShape(2, 1, 1), ImageShape(3, 3, 1)])
def test_all_of_them_in_order(shape: ImageShape) -> None:
    found = pool.draw(shape, 10**6, seed=0)
    assert [tuple(one) for one in found.tolist()] == listed(shape)
    assert len(found) == sum(pool.n_of_kinds(shape))


def test_the_number_in_a_window_of_24_pixels_is_the_published_one() -> None:
    # Viola and Jones (2004) say "over 160,000"; by kinds it is 43,200 + 43,200 + 27,600 + 27,600 + 20,736.
    assert pool.n_of_kinds(ImageShape(24, 24, 1)) == [43200, 43200, 27600, 27600, 20736]


def test_a_pixel_has_none() -> None:
    assert pool.n_of_kinds(ImageShape(1, 1, 3)) == [0] * 5
    assert pool.draw(ImageShape(1, 1, 3), 5, seed=0).shape == (0, 6)


def test_a_draw_is_that_of_the_words_of_pcg64() -> None:
    shape = ImageShape(28, 28, 1)
    n = sum(pool.n_of_kinds(shape))
    words = np.random.PCG64(7).random_raw(60).tolist()
    expected = sorted({word * n // 2**64 for word in words[:50]})
    assert len(expected) == 50  # no number came twice
    found = pool.draw(shape, 50, seed=7)
    assert found.tolist() == pool.rectangles(shape, np.array(expected)).tolist()
    assert found.tolist() != pool.draw(shape, 50, seed=8).tolist()


def test_a_draw_of_nearly_all_has_no_feature_twice() -> None:
    n = sum(pool.n_of_kinds(GREY))
    found = pool.draw(GREY, n - 1, seed=3)
    assert len({tuple(one) for one in found.tolist()}) == n - 1
    assert {tuple(one) for one in found.tolist()} < set(listed(GREY))


def test_every_feature_is_as_likely_as_any_other() -> None:
    n, n_draws = sum(pool.n_of_kinds(LINE)), 600
    drawn = [tuple(one) for seed in range(n_draws) for one in pool.draw(LINE, 8, seed).tolist()]
    counts = np.array([drawn.count(one) for one in listed(LINE)])
    share = 8 / n
    assert counts.sum() == 8 * n_draws
    # five standard deviations of a count
    assert (abs(counts - n_draws * share) < 5 * np.sqrt(n_draws * share * (1 - share))).all()


def test_names_say_what_a_feature_is() -> None:
    chosen = np.array([[0, 0, 2, 1, 3, 4], [3, 0, 2, 0, 5, 1], [4, 0, 1, 2, 2, 3]])
    shape = ImageShape(9, 12, 1)
    assert pool.names(chosen, shape) == ["two_across_y1_x4_h2_w6", "three_down_y0_x1_h6_w5", "four_y2_x3_h2_w4"]
    assert pool.names(chosen[:1], ImageShape(9, 12, 3)) == ["two_across_c0_y1_x4_h2_w6"]
    names = pool.names(pool.draw(COLOUR, 10**6, 0), COLOUR)
    assert len(set(names)) == len(names)
