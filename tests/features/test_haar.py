"""`HaarFeatures` as a transformer: what it takes, what it makes of it, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpuboost.features import HaarFeatures
from tests.features.images import GREY, by_brute_force, pixels

IMAGES = pixels(GREY, 9, np.uint8).reshape(9, 5, 6)


def haar(*arguments: Any, **parameters: Any) -> HaarFeatures:
    return HaarFeatures(*arguments, **{"device": "numpy", "random_state": 0, **parameters})


@parametrize_with_checks([HaarFeatures("line", 20, device="cpu")])
def test_it_is_a_transformer_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_values_are_those_of_the_drawn_rectangles() -> None:
    fitted = haar((5, 6), 40).fit(IMAGES)
    values = fitted.transform(IMAGES)
    assert fitted.image_shape_ == (5, 6, 1)
    assert values.shape == (9, 40)
    assert values.dtype == np.int32
    for image, row in zip(IMAGES[:, :, :, None], values, strict=True):
        assert row.tolist() == [by_brute_force(image, one) for one in fitted.rectangles_.tolist()]


def test_colours_are_channels() -> None:
    images = np.random.default_rng(1).integers(0, 256, (4, 3, 4, 3)).astype(np.uint8)
    fitted = haar(n_features=10**6).fit(images)
    values = fitted.transform(images)
    assert set(fitted.rectangles_[:, 1].tolist()) == {0, 1, 2}
    for image, row in zip(images, values, strict=True):
        assert row.tolist() == [by_brute_force(image, one) for one in fitted.rectangles_.tolist()]
    np.testing.assert_array_equal(fitted.transform(images.reshape(4, 36)), values)
    grey = haar(n_features=10**6).fit(images[..., 1]).transform(images[..., 1])
    np.testing.assert_array_equal(values[:, fitted.rectangles_[:, 1] == 1], grey)


@pytest.mark.parametrize(
    "X",
    [
        IMAGES.reshape(9, 30),
        IMAGES[..., None],
        IMAGES.tolist(),
        IMAGES.astype(np.int64),
        IMAGES.astype(">u2"),
        np.asfortranarray(IMAGES),
        IMAGES / 255,  # rounded to the bytes that they came from
        (IMAGES / 255).astype(np.float32),
        pd.DataFrame(IMAGES.reshape(9, 30), columns=[f"p{i}" for i in range(30)]),
    ],
    ids=["flat", "one channel", "lists", "int64", "big endian", "Fortran", "float64", "float32", "frame"],
)
def test_images_come_in_many_forms(X: Any) -> None:
    expected = haar((5, 6), 40).fit(IMAGES).transform(IMAGES)
    np.testing.assert_array_equal(haar((5, 6), 40).fit(X).transform(X), expected)


def test_booleans_are_0_and_1() -> None:
    bits = IMAGES > 100
    np.testing.assert_array_equal(haar().fit_transform(bits), haar().fit_transform(bits.astype(np.uint8)))


def test_floats_are_multiplied_and_rounded_to_even() -> None:
    X = np.array([[0.5, 0.0], [1.5, 0.0], [2.5, 0.0], [-0.5, 0.0], [0.74, 0.25]])
    line = HaarFeatures("line", scale=1.0, device="numpy").fit(X)  # one feature: left minus right
    assert line.transform(X).tolist() == [[0], [2], [2], [0], [1]]
    assert HaarFeatures("line", scale=100.0, device="numpy").fit(X).transform(X).tolist() == [[50], [150], [250], [-50], [49]]


def test_integers_are_not_scaled() -> None:
    X = np.array([[7, 3]])
    assert haar("line", scale=100.0).fit(X).transform(X).tolist() == [[4]]


def test_the_dtype_of_an_image_changes_nothing() -> None:
    images = IMAGES.reshape(9, 30)
    of_integers, of_floats = (haar((5, 6), 40).fit(X) for X in (images, images / 1.0))
    assert (of_integers.scale_, of_floats.scale_) == (1.0, 255.0)
    for fitted in (of_integers, of_floats):
        for dtype in (np.int16, np.float32, np.float64, object):
            np.testing.assert_array_equal(fitted.transform(images.astype(dtype)), fitted.transform(images))
    np.testing.assert_array_equal(of_floats.transform(images), 255 * of_integers.transform(images))
    even = 2 * ((images.astype(int) + 1) // 2)
    np.testing.assert_array_equal(of_integers.transform(images + 0.5), of_integers.transform(even))


def test_a_line_of_pixels() -> None:
    X = np.array([[1, 5, 2]])
    fitted = haar("line").fit(X)
    assert fitted.get_feature_names_out().tolist() == [
        "two_across_y0_x0_h1_w2",
        "two_across_y0_x1_h1_w2",
        "three_across_y0_x0_h1_w3",
    ]
    assert fitted.transform(X).tolist() == [[-4, 3, 7]]


def test_the_pool_is_that_of_the_seed() -> None:
    X, names = IMAGES, []
    for random_state in (3, 3, np.random.default_rng(5), np.random.default_rng(5), np.random.RandomState(1), None, None):
        names.append(HaarFeatures(n_features=30, random_state=random_state).fit(X).get_feature_names_out().tolist())
    assert names[0] == names[1]
    assert names[2] == names[3]
    assert names[5] != names[6]
    assert len({tuple(one) for one in names}) == 5
    assert all(len(set(one)) == 30 for one in names)


def test_fitting_looks_at_nothing_but_the_shape() -> None:
    one, other = (haar(n_features=30).fit(X) for X in (IMAGES, 255 - IMAGES[:2]))
    np.testing.assert_array_equal(one.rectangles_, other.rectangles_)


def test_clones_copies_and_frames() -> None:
    fitted = haar((5, 6), 12).fit(IMAGES)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(IMAGES), fitted.transform(IMAGES))
    np.testing.assert_array_equal(clone(fitted).fit(IMAGES).rectangles_, fitted.rectangles_)
    with pytest.raises(NotFittedError):
        clone(fitted).transform(IMAGES)
    frame = clone(fitted).set_output(transform="pandas").fit_transform(IMAGES.reshape(9, 30))
    assert frame.columns.tolist() == fitted.get_feature_names_out().tolist()
    np.testing.assert_array_equal(frame.to_numpy(), fitted.transform(IMAGES))


def test_some_of_the_features() -> None:
    fitted = haar((5, 6), 12).fit(IMAGES)
    some = fitted.select(np.array([7, 2]))
    np.testing.assert_array_equal(some.transform(IMAGES), fitted.transform(IMAGES)[:, [7, 2]])
    assert some.get_feature_names_out().tolist() == fitted.get_feature_names_out()[[7, 2]].tolist()
    assert fitted.transform(IMAGES).shape == (9, 12)


def test_the_largest_pixels_are_exact_and_larger_ones_are_refused() -> None:
    largest = (2**31 - 1) * 3 // (4 * 30)
    image = np.full((1, 5, 6), -largest)
    image[:, :, 2:4] = largest  # the middle of three: the largest value that there is
    fitted = haar(n_features=10**6).fit(image)
    values = fitted.transform(image)[0].tolist()
    assert values == [by_brute_force(image[0, :, :, None], one) for one in fitted.rectangles_.tolist()]
    assert max(values) == 2 * 10 * largest + 20 * largest > 2**31 - 60
    with pytest.raises(ValueError, match=f"must be from -{largest} to {largest}, got {largest + 1}; divide"):
        fitted.transform(image + np.eye(5, 6, 2, dtype=np.int64))
    np.testing.assert_array_equal(fitted.transform(image.astype(np.float64))[0], values)
    with pytest.raises(ValueError, match=r"multiplied by scale=255, must be from .* or lower scale"):
        fitted.fit(image.astype(np.float64))


REFUSED = [
    ({"image_shape": (5,)}, IMAGES, ValueError, r"image_shape must be \(height, width\).*got \(5,\)"),
    ({"image_shape": 28}, IMAGES, TypeError, "image_shape must be .*got 28"),
    ({"image_shape": "square"}, IMAGES, TypeError, "image_shape must be .*got 'square'"),
    ({"image_shape": (5, 0)}, IMAGES, ValueError, "an entry of image_shape must be an integer of at least 1, got 0"),
    ({"image_shape": (5.0, 6)}, IMAGES, TypeError, "an entry of image_shape must be an integer"),
    ({}, IMAGES.reshape(9, 30), ValueError, "image_shape must say what the 30 columns of X are"),
    ({"image_shape": (6, 6)}, IMAGES.reshape(9, 30), ValueError, r"X must have images of 6 x 6.*got shape \(9, 30\)"),
    (
        {"image_shape": (6, 5)},
        IMAGES,
        ValueError,
        r"images of 6 x 5, as 30 columns or .*\(n_images, 6, 5\), got shape \(9, 5, 6\)",
    ),
    ({"image_shape": (5, 2, 3)}, IMAGES, ValueError, r"images of 5 x 2 with 3 channels.*\(n_images, 5, 2, 3\)"),
    ({"image_shape": "line"}, IMAGES, ValueError, 'image_shape="line" needs images of one line'),
    ({"n_features": 0}, IMAGES, ValueError, "n_features must be an integer of at least 1, got 0"),
    ({"n_features": 2.5}, IMAGES, TypeError, "n_features must be an integer"),
    ({"scale": 0}, IMAGES, ValueError, "scale must be a number above 0, got 0"),
    ({"scale": "1"}, IMAGES, ValueError, "scale must be a number above 0, got '1'"),
    ({"scale": True}, IMAGES, ValueError, "scale must be a number above 0, got True"),
    ({"n_jobs": "all"}, IMAGES, TypeError, "n_jobs must be an integer"),
    ({"image_shape": {5, 6}}, IMAGES, TypeError, "image_shape must be .*got {5, 6}"),
    ({"lazy": 1}, IMAGES, TypeError, "lazy must be True or False, got 1"),
    ({"random_state": -1}, IMAGES, ValueError, "random_state must be an integer of at least 0, got -1"),
    ({}, IMAGES[:, :1, :1], ValueError, r"images of 1 x 1 \(n_features=1\) are too small"),
    ({}, IMAGES[:0], ValueError, "0 sample"),
    ({}, IMAGES[:, :0], ValueError, "0 feature"),
    ({}, np.where(IMAGES > 9, IMAGES, np.nan), ValueError, "NaN"),
    ({}, np.where(IMAGES > 9, IMAGES, np.inf), ValueError, "infinity"),
    ({}, np.ma.masked_greater(IMAGES, 200), ValueError, "X must have no missing pixels, but some are masked"),
    ({}, IMAGES * 1j, ValueError, "Complex data not supported"),
    ({}, IMAGES[0, 0], ValueError, "Expected 2D array, got 1D array"),
    ({}, IMAGES[None, None], ValueError, "Found array with dim 5|Expected 2D array|dim 5"),
]


@pytest.mark.parametrize(("parameters", "X", "error", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_used_is_refused_and_an_earlier_fit_stays(
    parameters: dict[str, Any], X: Any, error: type[Exception], message: str
) -> None:
    fitted = haar().fit(IMAGES)
    before = dict(vars(fitted))
    fitted.set_params(**parameters)
    with pytest.raises(error, match=message):
        fitted.fit(X)
    after = dict(vars(fitted))
    assert {name: after[name] for name in after.keys() - parameters.keys()} == {
        name: before[name] for name in before.keys() - parameters.keys()
    }


def test_other_images_than_those_of_the_fit_are_refused() -> None:
    fitted = haar().fit(IMAGES)
    for X in (IMAGES[:, :4], IMAGES.transpose(0, 2, 1)):
        with pytest.raises(ValueError, match=r"X must have images of 5 x 6|is expecting 30 features"):
            fitted.transform(X)
