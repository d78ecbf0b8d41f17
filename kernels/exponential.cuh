// The exponential of numbers that are not positive: the same bits as on the host.

#pragma once

#include "rows.cuh"
#include "sizes.cuh"

// gpuboost.exactmath.exp of x <= 0, operation by operation.
static __device__ __forceinline__ double exp_of_negative(double x, const double* coefficients)
{
    const double inside = x < -800.0 ? -800.0 : x;
    const i64 k = __double2ll_rn(inside * 0x1.71547652b82fep+0);
    const double high = inside - (double)k * 0x1.62e42fefa38p-1, low = (double)k * 0x1.ef35793c76730p-45;
    const double r = high - low, tail = (high - r) - low;
    const double rounded = 1.0 + r, error = r - (rounded - 1.0);
    double series = coefficients[0];
    for (int i = 1; i < N_EXP_COEFFICIENTS; ++i) series = series * r + coefficients[i];
    const double value = rounded + (error + (tail + r * r * series));
    const int half = (int)(k >> 1);  // two factors, as 2**k itself can underflow
    return value * power_of_two(half) * power_of_two((int)k - half);
}
