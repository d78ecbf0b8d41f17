// Finish the histograms of a feature, by one block.
//
// The kernel `histogram` leaves the most frequent bin of every feature out; it is the node's total minus all other bins. Where nodes keep
// their histograms, the larger of two siblings has its parent's, and gets it minus the smaller one's. Both are exact, because they are
// integers.

#pragma once

#include "rows.cuh"
#include "sizes.cuh"

// Where the bins of a feature lie in the histogram of a node: in its slot, or if histograms are not kept in that of the member.
template <class Sum>
static __device__ __forceinline__ Sum*
histogram_of(Sum* histograms, const i64* node, int tree, int member, Bins bins, const SweepSizes& sizes)
{
    const i64 slot = sizes.kept ? node[SLOT] : member == RIGHT_CHILD;
    const i64 first = (slot * sizes.n_trees + tree) * sizes.bins_in_tile + bins.offset - sizes.first_bin;
    return histograms + first * sizes.n_channels;
}

// `sums`, [n_channels] in shared memory, is scratch. All threads take part.
template <class Sum>
static __device__ __forceinline__ void fill_skipped_bin(Sum* own, int n_bins, int skipped, const i64* totals, int n_channels, Sum* sums)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) sums[c] = 0;
    __syncthreads();
    for (int c = lane; c < n_channels; c += 32) {
        Sum sum = 0;
#pragma unroll 4
        for (int bin = warp; bin < n_bins; bin += n_warps) sum += own[bin * n_channels + c];
        add_to_sum(sums, n_channels, c, sum);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x)
        own[skipped * n_channels + c] = (Sum)totals[c] - sum_of(sums, n_channels, c);
    __syncthreads();
}

template <class Sum>
static __device__ __forceinline__ void
finish_histograms(Sum* histograms, const i64* table, const i64* current, int tree, Bins bins, int skipped, const SweepSizes& sizes,
                  Sum* sums)
{
    const int n_channels = sizes.n_channels, max_nodes = sizes.max_nodes, first = sizes.first_member;
    const int counted = sizes.kept && first != ROOT ? SMALLER : first;
    for (int member = counted; member <= (sizes.kept || first == ROOT ? counted : RIGHT_CHILD); ++member) {
        const i64* node = record(table, tree, node_of(table, current, tree, member, max_nodes, n_channels), max_nodes, n_channels);
        fill_skipped_bin(histogram_of(histograms, node, tree, member, bins, sizes), bins.n, skipped, totals_of(node), n_channels, sums);
    }
    if (counted != SMALLER) return;
    const i64* smaller = record(table, tree, node_of(table, current, tree, SMALLER, max_nodes, n_channels), max_nodes, n_channels);
    const i64* larger = record(table, tree, node_of(table, current, tree, LARGER, max_nodes, n_channels), max_nodes, n_channels);
    const Sum* own = histogram_of(histograms, smaller, tree, SMALLER, bins, sizes);
    Sum* other = histogram_of(histograms, larger, tree, LARGER, bins, sizes);
    for (int i = threadIdx.x; i < bins.n * n_channels; i += blockDim.x) other[i] -= own[i];
    __syncthreads();
}
