// The binary logarithm, for losses and entropies: the same bits as on the host.

#pragma once

#include "sizes.cuh"

// gpuboost.exactmath.minus_log2 of a normal number in (0, 1], operation by operation.
static __device__ __forceinline__ double minus_log2(double x, const double* coefficients)
{
    const u64 bits = (u64)__double_as_longlong(x);
    double m = __longlong_as_double((i64)((bits & 0x000fffffffffffffull) | 0x3fe0000000000000ull));  // in [1/2, 1)
    int e = (int)(bits >> 52) - 1022;
    if (m < 0x1.6a09e667f3bcdp-1) {
        m = 2.0 * m;
        e -= 1;
    }
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double series = coefficients[0];
    for (int i = 1; i < N_COEFFICIENTS; ++i) series = series * z + coefficients[i];
    return -(double)e - s * series;
}
