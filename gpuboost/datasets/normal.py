"""Normal deviates from raw bits, the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.exactmath import log


def _coefficients(*polynomials: str) -> list[list[float]]:
    return [[float(number) for number in polynomial.split()] for polynomial in polynomials]


# Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988), 477-484: numerator and denominator, highest power first.
CENTRE = _coefficients(
    "2.5090809287301226727e3 3.3430575583588128105e4 6.7265770927008700853e4 4.5921953931549871457e4 "
    "1.3731693765509461125e4 1.9715909503065514427e3 1.3314166789178437745e2 3.3871328727963666080e0",
    "5.2264952788528545610e3 2.8729085735721942674e4 3.9307895800092710610e4 2.1213794301586595867e4 "
    "5.3941960214247511077e3 6.8718700749205790830e2 4.2313330701600911252e1 1.0",
)
MIDDLE = _coefficients(
    "7.74545014278341407640e-4 2.27238449892691845833e-2 2.41780725177450611770e-1 1.27045825245236838258e0 "
    "3.64784832476320460504e0 5.76949722146069140550e0 4.63033784615654529590e0 1.42343711074968357734e0",
    "1.05075007164441684324e-9 5.47593808499534494600e-4 1.51986665636164571966e-2 1.48103976427480074590e-1 "
    "6.89767334985100004550e-1 1.67638483018380384940e0 2.05319162663775882187e0 1.0",
)
TAIL = _coefficients(
    "2.01033439929228813265e-7 2.71155556874348757815e-5 1.24266094738807843860e-3 2.65321895265761230930e-2 "
    "2.96560571828504891230e-1 1.78482653991729133580e0 5.46378491116411436990e0 6.65790464350110377720e0",
    "2.04426310338993978564e-15 1.42151175831644588870e-7 1.84631831751005468180e-5 7.86869131145613259100e-4 "
    "1.48753612908506148525e-2 1.36929880922735805310e-1 5.99832206555887937690e-1 1.0",
)


def normal_deviates(words: NDArray[np.uint64]) -> Floats:
    """Return the quantile of the standard normal distribution at (k + 1/2) / 2**52, k the high 52 bits of each word.

    Only operations that IEEE 754 defines are used, and `gpuboost.exactmath.log`. The relative error is below 1e-15 or so.
    """
    p = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # exact, as are p - 1/2 and 1 - p
    q = p - 0.5
    x = q * _ratio(CENTRE, 0.180625 - q * q)
    outer = np.flatnonzero(np.abs(q) > 0.425)
    r = np.sqrt(-log(np.minimum(p, 1.0 - p).flat[outer]))
    size = np.where(r <= 5.0, _ratio(MIDDLE, r - 1.6), _ratio(TAIL, r - 5.0))
    x.flat[outer] = np.where(q.flat[outer] < 0, -size, size)
    return x


def _ratio(polynomials: list[list[float]], r: Floats) -> Floats:
    above, below = (np.full_like(r, coefficients[0]) for coefficients in polynomials)
    for a, b in zip(polynomials[0][1:], polynomials[1][1:], strict=True):
        above *= r
        above += a
        below *= r
        below += b
    above /= below
    return above
