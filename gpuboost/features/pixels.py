"""What is taken as an image: its shape, and pixels as integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.parameters import check_integer
from gpuboost.rectangles import ImageShape, Pixels

LINE = "line"
LARGEST_SUM = 2**31 - 1


def check_image_shape(value: Any) -> Any:
    """Return ``value`` if it can be an image shape: (height, width), (height, width, n_channels), "line" or None."""
    if value is None or (isinstance(value, str) and value == LINE):
        return value
    expected = f'image_shape must be (height, width), (height, width, n_channels), "{LINE}" or None, got {value!r}'
    if isinstance(value, (str, set, frozenset, dict)) or not hasattr(value, "__len__"):
        raise TypeError(expected)
    if len(value) not in (2, 3):
        raise ValueError(expected)
    return tuple(check_integer("an entry of image_shape", entry, 1) for entry in value)


def image_shape_of(parameter: Any, shape: tuple[int, ...]) -> ImageShape:
    """Return the shape of the images in an array of the given shape.

    Raises
    ------
    ValueError
        If the array has other images than the parameter says, or is 2-D and the parameter says nothing.
    """
    of_images = shape[1:]
    if parameter is None and len(of_images) == 1:
        raise ValueError(
            f"image_shape must say what the {of_images[0]} columns of X are: pass image_shape=(height, width) or (height, "
            f'width, n_channels), "{LINE}" if a row is an image of one line, or X of shape (n_images, height, width)'
        )
    if parameter == LINE and len(of_images) == 1:
        return ImageShape(1, of_images[0], 1)
    expected = of_images if parameter is None or parameter == LINE else parameter
    found = ImageShape(*expected, *((1,) if len(expected) == 2 else ()))
    if parameter == LINE and found.height > 1:
        raise ValueError(f'image_shape="{LINE}" needs images of one line, got X of shape {shape}')
    check_images(shape, found)
    return found


def check_images(shape: tuple[int, ...], expected: ImageShape) -> None:
    """Raise a ValueError if an array of this shape does not have such images: flat, or with two or three axes each."""
    of_images = shape[1:]
    allowed = [(expected.n_pixels,), tuple(expected), *([tuple(expected[:2])] if expected.n_channels == 1 else [])]
    if of_images not in allowed:
        height, width, n_channels = expected
        wanted = f"{height} x {width}" + (f" with {n_channels} channels" if n_channels > 1 else "")
        raise ValueError(
            f"X must have images of {wanted}, as {expected.n_pixels} columns or as an array of shape "
            f"(n_images, {', '.join(map(str, allowed[-1]))}), got shape {shape}"
        )


def to_pixels(X: NDArray[Any], shape: ImageShape, scale: float) -> Pixels:
    """Return pixels as integers, shape (n_images, n_pixels): uint8 and booleans as uint8, all else as int32.

    A pixel becomes ``rint(x * scale)`` in float64, to the nearest integer, ties to even; integers with a scale of 1 are kept.

    Raises
    ------
    ValueError
        If a pixel is so large that a feature might not fit in int32: the middle of three rectangles counts twice, so all cells
        together count at most ``4 / 3 height width`` times.
    """
    if scale == 1 and (X.dtype.kind == "b" or X.dtype == np.uint8):
        return np.ascontiguousarray(X, np.uint8)
    numbers = X if scale == 1 and X.dtype.kind in "iu" else np.rint(X.astype(np.float64) * scale)
    largest = LARGEST_SUM * 3 // (4 * shape.height * shape.width)
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0, 0)
    if low < -largest or high > largest:
        value, of_scale = (low if low < -largest else high), "" if scale == 1 else f", multiplied by scale={scale:g},"
        raise ValueError(
            f"pixels of images of {shape.height} x {shape.width}{of_scale} must be from {-largest} to {largest}, got {value}; "
            "divide them first" + ("" if scale == 1 else " or lower scale")
        )
    return np.ascontiguousarray(numbers, np.int32)
