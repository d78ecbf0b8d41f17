"""`HaarFeatures`: sums over rectangles of images as columns."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gpuboost.array_types import IntArray
from gpuboost.devices import open_backend
from gpuboost.features import pool
from gpuboost.features.pixels import check_image_shape, check_images, image_shape_of, to_pixels
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.parameters import as_float, check_bool, check_integer, draw_seed
from gpuboost.rectangle_matrix import RectangleMatrix
from gpuboost.rectangles import ImageShape


class HaarFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Haar-like features of images: two, three and four rectangles at every place and scale (Viola and Jones 2004).

    A pool of them is drawn at `fit`, which looks at no pixels but for their dtype. A value is a difference of sums of
    pixels, an exact integer that is divided by nothing, and 0 on an even image. Boost them with a share of the pool a round,
    such as ``max_features=0.04``: so a round sees features that others have not seen, and nothing is encoded anew.

    Parameters
    ----------
    image_shape : tuple of int, "line" or None, default None
        ``(height, width)`` or ``(height, width, n_channels)`` of the images, whose pixels are the columns of X in C order.
        "line": an image has one line, as long as X has columns. None: X has the shape of the images.
    n_features : int, default 5000
        How many features are drawn, without repetition; all that there are, if they are no more.
    scale : float, default 255.0
        If `fit` sees floats (or objects), all pixels are multiplied by it and rounded to the nearest integer, ties to even:
        images in [0, 1] get the features of their bytes. If it sees integers or booleans, pixels are what they are, and floats
        that `transform` gets are rounded: so the dtype of an image changes nothing.
    lazy : bool, default False
        Whether `transform` returns a `gpuboost.features.ComputedMatrix`, which gpuboost's classifiers read in place of an
        array: the values, four bytes each, are then never all in memory. Their training keeps codes of one byte.
    random_state : int, Generator, RandomState or None, default None
        Seed of the pool (of NumPy's PCG64).
    device : str or int, default "auto"
        Where arrays are computed, see `gpuboost.fit`. What is lazy is computed where the classifier runs.
    n_jobs : int or None, default None
        Threads; None and -1 are all CPUs that the process may use.

    Attributes
    ----------
    image_shape_ : tuple of int
        ``(height, width, n_channels)``.
    scale_ : float
        What pixels are multiplied by: ``scale`` or 1.
    rectangles_ : ndarray of int64, shape (n_drawn, 6)
        For each feature: the kind (0 two rectangles side by side, left minus right; 1 two below each other, top minus bottom;
        2 and 3 three, twice the middle minus both sides; 4 four, one diagonal minus the other), the channel, the height of one
        rectangle, the top, the width of one, and the left.
    n_features_in_ : int
        Numbers of an image.

    See Also
    --------
    gpuboost.features.compact : Leave out the columns that a model does not use.

    References
    ----------
    P. Viola and M. Jones, "Robust real-time face detection", International Journal of Computer Vision 57, 2004. B. Kégl, "The
    return of AdaBoost.MH: multi-class Hamming trees", 2014, section 4 (on MNIST).

    Examples
    --------
    >>> import numpy as np
    >>> from gpuboost.features import HaarFeatures
    >>> images = np.array([[[9, 1], [5, 3]]], np.uint8)
    >>> haar = HaarFeatures().fit(images)
    >>> [str(name) for name in haar.get_feature_names_out()[-3:]]
    ['two_down_y0_x1_h2_w1', 'two_down_y0_x0_h2_w2', 'four_y0_x0_h2_w2']
    >>> haar.transform(images)[:, -3:]
    array([[-2,  2,  6]], dtype=int32)
    """

    def __init__(
        self,
        image_shape: Any = None,
        n_features: int = 5000,
        *,
        scale: float = 255.0,
        lazy: bool = False,
        random_state: Any = None,
        device: str | int = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.image_shape = image_shape
        self.n_features = n_features
        self.scale = scale
        self.lazy = lazy
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the features.

        Parameters
        ----------
        X : array-like, shape (n_images, n_pixels), (n_images, height, width) or (n_images, height, width, n_channels)
            Pixels of any real dtype, without missing values.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or X is not usable, or images are too small for any feature.
        """
        parameter, n_features = check_image_shape(self.image_shape), check_integer("n_features", self.n_features, 1)
        self._check_parameters()
        fitted = copy.copy(self)  # a fit that fails changes nothing
        pixels, shape_of_array = fitted._pixels(X, reset=True)
        shape = image_shape_of(parameter, shape_of_array)
        chosen = pool.draw(shape, n_features, draw_seed(self.random_state))
        if len(chosen) == 0:
            raise ValueError(
                f"images of {shape.height} x {shape.width} (n_features={shape.n_pixels}) are too small for a feature: "
                "it needs at least two pixels"
            )
        scale = 1.0 if pixels.dtype.kind in "biu" else float(self.scale)
        to_pixels(pixels, shape, scale)
        self.__dict__.update(fitted.__dict__, image_shape_=tuple(shape), scale_=scale, rectangles_=chosen)
        return self

    def transform(self, X: Any) -> Any:
        """Compute the features.

        Parameters
        ----------
        X : array-like, shape (n_images, n_pixels), (n_images, height, width) or (n_images, height, width, n_channels)
            Images of the shape of those of `fit`.

        Returns
        -------
        ndarray of int32, shape (n_images, n_drawn), or ComputedMatrix
            In column-major order.

        Raises
        ------
        ValueError, TypeError
            If X does not have such images, or pixels are so large that a feature might not fit in int32.
        """
        check_is_fitted(self)
        check_bool("lazy", self.lazy)
        shape = ImageShape(*self.image_shape_)
        numbers, shape_of_array = self._pixels(X, reset=False)
        check_images(shape_of_array, shape)
        pixels = to_pixels(numbers, shape, self.scale_)
        matrix = RectangleMatrix(pixels, np.arange(len(pixels)), pool.corners(shape, self.rectangles_))
        if self.lazy:
            return matrix
        with open_backend(self.device, self.n_jobs) as backend:
            return np.asarray(matrix.on(backend))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return names that say what the features are: kind, top left corner and size in pixels.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str objects, shape (n_drawn,)
        """
        check_is_fitted(self)
        return np.array(pool.names(self.rectangles_, ImageShape(*self.image_shape_)), dtype=object)

    def select(self, columns: IntArray) -> HaarFeatures:
        """Return a fitted copy with some of the features, in the given order.

        Parameters
        ----------
        columns : ndarray of int, shape (n,)
            Which columns of `transform`.
        """
        check_is_fitted(self)
        selected = copy.copy(self)
        selected.rectangles_ = self.rectangles_[columns]
        return selected

    # ---- checks ------------------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_bool("lazy", self.lazy)
        if self.n_jobs is not None:
            check_integer("n_jobs", self.n_jobs, -(2**31))
        if isinstance(self.scale, bool) or not 0 < as_float(self.scale) < float("inf"):
            raise ValueError(f"scale must be a number above 0, got {self.scale!r}")

    def _pixels(self, X: Any, *, reset: bool) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return X as checked numbers, shape (n_images, n_pixels), and the shape that it has."""
        X = to_host(X)
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            raise ValueError("X must have no missing pixels, but some are masked; fill them first, X.filled(0)")
        shape = tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)
        if len(shape) in (3, 4):
            X = np.reshape(X, (shape[0], math.prod(shape[1:])))
        pixels: NDArray[Any] = validate_data(self, X, reset=reset, dtype="numeric")
        return pixels, shape

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags
