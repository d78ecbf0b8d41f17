// Fill the skipped bin of a child's histogram, and turn its parent's histogram into its sibling's.
//
// The kernel `histogram` leaves the most frequent bin of every feature out; it is the node's total minus all other bins. With member =
// SMALLER the larger child's histogram is then the parent's minus the smaller child's, in the parent's place. Both are exact, because
// they are integers.
//
// grid (usable features of this launch, n_trees), block 256, dynamic shared memory 4 * n_channels bytes.
//
// skipped     uint8 [n_features padded]
// features    int32 [..]: the usable features, ascending; this launch does features[first_feature + blockIdx.x], if it has bins
// bins, table, current, histograms, first_bin, bins_in_tile, member: as in histogram.cu
//
// Limit: three passes over a node's histograms: MNIST (717 x 256 bins x 10 channels) 7.3 MB each, which the second-level cache holds;
// from memory 22 MB = 7 us at 3.35 TB/s.

#include "sizes.cuh"

extern "C" __global__ void __launch_bounds__(256, 1)
siblings(const u8* __restrict__ skipped, const int* __restrict__ features, const int* __restrict__ bins, const i64* __restrict__ table,
         const i64* __restrict__ current, int* __restrict__ histograms, const SiblingSizes sizes)
{
    extern __shared__ int sums[];
    const int n_trees = sizes.n_trees, max_nodes = sizes.max_nodes, n_channels = sizes.n_channels, member = sizes.member;
    const int tree = blockIdx.y, node = node_of(table, current, tree, member, max_nodes, n_channels);
    if (node < 0) return;
    const i64* r = record(table, tree, node, max_nodes, n_channels);
    const int feature = features[sizes.first_feature + blockIdx.x];
    const Bins own_bins = bins_of(bins, feature);
    if (own_bins.n == 0) return;  // not chosen
    const i64 stride = (i64)sizes.bins_in_tile * n_channels, offset = (i64)(own_bins.offset - sizes.first_bin) * n_channels;
    const i64 slot = member == LEFT_CHILD ? 0 : (member == RIGHT_CHILD ? 1 : r[SLOT]);
    int* own = histograms + (slot * n_trees + tree) * stride + offset;

    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) sums[c] = 0;
    __syncthreads();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    for (int c = lane; c < n_channels; c += 32) {
        int sum = 0;
        for (int bin = warp; bin < own_bins.n; bin += n_warps) sum += own[bin * n_channels + c];
        atomicAdd(&sums[c], sum);
    }
    __syncthreads();
    const i64* totals = totals_of(r);
    int* most_frequent = own + skipped[feature] * n_channels;
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) most_frequent[c] = (int)totals[c] - sums[c];

    if (member != SMALLER) return;
    __syncthreads();
    const int larger = node_of(table, current, tree, LARGER, max_nodes, n_channels);
    int* other = histograms + (record(table, tree, larger, max_nodes, n_channels)[SLOT] * n_trees + tree) * stride + offset;
    for (int i = threadIdx.x; i < own_bins.n * n_channels; i += blockDim.x) other[i] -= own[i];
}
