// The best splits of the nodes of a step: finish every feature's histograms, sweep them, and let the last block choose among the features.
//
// sweep_C      by criterion C (criteria.cuh) of P and L, L the sums over the bins on the left. Writes FEATURE, CUT, MISSING_LEFT, KEY and
//              the edges of the node's best feature, or of its constant classifier.
//              grid (usable features of this launch, at least 1; n_trees), block 256, dynamic shared memory 8 warps * n_channels * 4
//              bytes. A thread is a bin.
//
// The nodes are the roots, or the two children of each node that was popped last, one after another. Which block is a tree's last, a
// ticket says; the others' scores and histograms are there by then (a fence before the ticket is drawn, and one behind it).
//
// features     int32 [..]: the usable features, ascending; this launch does features[first_feature + blockIdx.x], if it has bins
// facts        uint8 [n_features padded][2]: the skipped code; whether missing values must be tried on the right, too
// bins, table, current, histograms, first_bin, bins_in_tile: as in histogram.cu
// sum_abs      int64 [n_trees][n_classes], for Rebel only, from root_totals in init_roots.cu
// series       for Entropy only
// found        int64 [..][2]: first [n_trees][2] the best scores of the launches so far, for features that come in several launches;
//              then [n_trees][2][n_features of the launch] the score, -1 if a feature has no candidate, and the place
//              2 * cut + (0 if missing values go left, else 1)
// tickets      int32 [n_trees], 0, and left so
//
// Ties: the constant classifier, then the lowest feature, the lowest cut, missing-left. That is the order of (feature, place).
// Exactness: integers below 2^30 (sweep_wide.cu has those beyond), scores of up to n_classes * 2^30 in 64 bits; of all others the bits
// of a float64, see criteria.cuh.
// n_voting     n_classes for Edge, whose constant classifier has a score; 0 for others
// Limit: instructions. Two nodes of MNIST's, 717 features of 256 bins and ten channels, are 114720 (32 bins, channel), a warp each, with
// 71 instructions in sweep_edge: 9 us at four a cycle on 132 multiprocessors of 1.7 GHz. The smaller child's histograms are read
// three times, of which twice from the nearest caches, the larger one's are read and written once and then read twice from there:
// 22.0 MB, 6.6 us at 3.35 TB/s, less from the second-level cache.

#include "sweep.cuh"

// Four blocks a multiprocessor, or three: left to itself the compiler aims at more and spills on some architectures.
extern "C" __global__ void __launch_bounds__(256, 4)
sweep_edge(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
           const i64* __restrict__ current, int* histograms, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Shared shared;
    find_splits<Edge>(features, bins, facts, table, current, histograms, found, tickets, sizes, Edge(), of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 4)
sweep_gini(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
           const i64* __restrict__ current, int* histograms, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Shared shared;
    find_splits<Gini>(features, bins, facts, table, current, histograms, found, tickets, sizes, Gini(), of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 4)
sweep_newton(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
             const i64* __restrict__ current, int* histograms, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Shared shared;
    find_splits<Newton>(features, bins, facts, table, current, histograms, found, tickets, sizes, Newton(), of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 3)
sweep_rebel(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
            const i64* __restrict__ current, int* histograms, const i64* __restrict__ sum_abs, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Shared shared;
    const Rebel empty(sum_abs + (i64)blockIdx.y * sizes.n_classes);
    find_splits<Rebel>(features, bins, facts, table, current, histograms, found, tickets, sizes, empty, of_warp, shared);
}

extern "C" __global__ void __launch_bounds__(256, 3)
sweep_entropy(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ facts, i64* table,
              const i64* __restrict__ current, int* histograms, const LogarithmSeries series, i64* found, int* tickets, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Shared shared;
    find_splits<Entropy>(features, bins, facts, table, current, histograms, found, tickets, sizes, Entropy(series), of_warp, shared);
}
