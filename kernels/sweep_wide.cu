// As sweep.cu, for more rows than int32 has room for: the histograms are int64.
//
// sweep_C_wide  dynamic shared memory 8 warps * n_channels * 8 bytes
//
// Exactness: integers below 2^49 (fixedpoint.py), which float64 holds exactly, and so the sums and differences of two.
// Limit: as sweep.cu, with twice the bytes.

#include "sweep.cuh"

// Four blocks a multiprocessor, three or two: left to itself the compiler aims at more and spills on some architectures.
extern "C" __global__ void __launch_bounds__(256, 4)
sweep_edge_wide(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
                const i64* __restrict__ current, i64* histograms, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ i64 of_warp[];
    __shared__ Shared shared;
    find_splits<Edge>(features, bins, facts, table, current, histograms, found, tickets, sizes, Edge(), of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 4)
sweep_gini_wide(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
                const i64* __restrict__ current, i64* histograms, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ i64 of_warp[];
    __shared__ Shared shared;
    find_splits<Gini>(features, bins, facts, table, current, histograms, found, tickets, sizes, Gini(), of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 4)
sweep_newton_wide(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
                  const i64* __restrict__ current, i64* histograms, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ i64 of_warp[];
    __shared__ Shared shared;
    find_splits<Newton>(features, bins, facts, table, current, histograms, found, tickets, sizes, Newton(), of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 3)
sweep_rebel_wide(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
                 const i64* __restrict__ current, i64* histograms, const i64* __restrict__ sum_abs, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ i64 of_warp[];
    __shared__ Shared shared;
    const Rebel empty(sum_abs + (i64)blockIdx.y * sizes.n_classes);
    find_splits<Rebel>(features, bins, facts, table, current, histograms, found, tickets, sizes, empty, of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 2)
sweep_entropy_wide(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
                   const i64* __restrict__ current, i64* histograms, const LogarithmSeries series, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ i64 of_warp[];
    __shared__ Shared shared;
    find_splits<Entropy>(features, bins, facts, table, current, histograms, found, tickets, sizes, Entropy(series), of_warp, shared);
}
