// The best cut of a node: sweep every feature's histogram, then choose among the features.
//
// sweep_C      the best cut of each feature by criterion C (criteria.cuh) of P and L, L the sums over the bins on the left.
//              grid (usable features of this launch, 1 or 2 members, n_trees), block 256, dynamic shared memory
//              8 warps * n_channels * 4 bytes. A thread is a bin.
// choose_split   the best feature of each node, or its constant classifier; writes FEATURE, CUT, MISSING_LEFT, KEY and the edges.
//              grid (1 or 2 members, n_trees), block 256, dynamic shared memory 4 * n_channels bytes.
//
// members      ROOT, or LEFT_CHILD and RIGHT_CHILD by blockIdx: member = first_member + block number
// features, bins, table, current, histograms, first_bin, bins_in_tile: as in siblings.cu
// has_missing  uint8 [n_features padded]: whether missing values must be tried on the right, too
// sum_abs         int64 [n_trees][n_classes], for Rebel only, from root_totals in init_roots.cu
// kept         whether histograms lie in their nodes' slots; otherwise in slots 0 (left child or root) and 1 (right child)
// series          for Entropy only
// scores       int64 [n_trees][2][n_features of the launch], -1 if a feature has no candidate
// places       int32 [the same]: 2 * cut + (0 if missing values go left, else 1)
// best         int64 [n_trees][2]: the best score of the launches so far, for features that come in several launches
//
// Ties: the constant classifier, then the lowest feature, the lowest cut, missing-left. That is the order of (feature, place).
// Exactness: integers, scores of up to n_classes * 2^30 in 64 bits; of all others the bits of a float64, see criteria.cuh.
// n_voting     n_classes for Edge, whose constant classifier has a score; 0 for others
// Limit: a node's histograms are read twice: MNIST 15 MB for a node, 4 us at 3.35 TB/s, less from the second-level cache; and five
// shuffles for each (32 bins, channel).

#include "criteria.cuh"
#include "sizes.cuh"

enum {
    N_WARPS = 8,
    NO_PLACE = 0x7fffffff
};

struct Best {
    i64 score;
    int place;  // of equals the lowest wins
};

static __device__ __forceinline__ Best better(Best a, Best b)
{
    return b.score > a.score || (b.score == a.score && b.place < a.place) ? b : a;
}

// The best of a block, in thread 0. All threads take part.
static __device__ __forceinline__ Best block_best(Best v, Best* of_warp)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int d = 16; d; d >>= 1) {
        const Best other = {__shfl_down_sync(FULL_WARP, v.score, d), __shfl_down_sync(FULL_WARP, v.place, d)};
        v = better(v, other);
    }
    if (lane == 0) of_warp[warp] = v;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < N_WARPS; ++w) v = better(v, of_warp[w]);
    return v;
}

static __device__ __forceinline__ const int*
histogram_of(const int* histograms, const i64* node, int tree, int member, Bins bins, const SweepSizes& sizes)
{
    const i64 slot = sizes.kept ? node[SLOT] : member == RIGHT_CHILD;
    const i64 first = (slot * sizes.n_trees + tree) * sizes.bins_in_tile + bins.offset - sizes.first_bin;
    return histograms + first * sizes.n_channels;
}

// The sum of channel `c` over the bins up to a thread's own, without the missing values; for threads with a cut. The whole warp takes part.
static __device__ __forceinline__ int sum_of_cut(const int* h, const int* of_warp, bool is_cut, int c, int n_channels)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, bin = threadIdx.x;
    int left = is_cut ? h[bin * n_channels + c] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        const int before = __shfl_up_sync(FULL_WARP, left, d);
        if (lane >= d) left += before;
    }
    for (int w = 0; w < warp; ++w) left += of_warp[w * n_channels + c];
    return left;
}

// `of_warp`, int [N_WARPS][n_channels], takes what each warp's bins add up to; `empty` has seen no class yet.
template <class Criterion>
static __device__ __forceinline__ void
sweep(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ has_missing,
      const i64* __restrict__ table, const i64* __restrict__ current, const int* __restrict__ histograms,
      i64* __restrict__ scores, int* __restrict__ places, const SweepSizes& sizes,
      const Criterion& empty, int* of_warp, Best* bests)
{
    const int max_nodes = sizes.max_nodes, n_channels = sizes.n_channels, min_count = sizes.min_count;
    const int tree = blockIdx.z, member = sizes.first_member + blockIdx.y;
    const int node = node_of(table, current, tree, member, max_nodes, n_channels);
    if (node < 0) return;
    const i64* r = record(table, tree, node, max_nodes, n_channels);
    const int feature = features[sizes.first_feature + blockIdx.x];
    const Bins own = bins_of(bins, feature);
    const int* h = histogram_of(histograms, r, tree, member, own, sizes);

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, bin = threadIdx.x;
    for (int c = lane; c < n_channels; c += 32) {
        int sum = 0;
        for (int b = max(32 * warp, 1); b < min(32 * warp + 32, own.n); ++b) sum += h[b * n_channels + c];
        of_warp[warp * n_channels + c] = sum;
    }
    __syncthreads();

    const bool is_cut = bin >= 1 && bin < own.n, missing = has_missing[feature] != 0;
    Best best = {-1, NO_PLACE};
    if (32 * warp < own.n) {  // the whole warp or none of it
        Criterion missing_left = empty, missing_right = empty;
        if constexpr (Criterion::WEIGHS)
            for (int c = 0; c < sizes.n_classes; ++c) {
                const int left = sum_of_cut(h, of_warp, is_cut, c, n_channels), total = (int)totals_of(r)[c];
                missing_left.weigh(total, left + h[MISSING_CODE * n_channels + c]);
                missing_right.weigh(total, left);
            }
        bool left_allowed = true, right_allowed = missing;
        for (int c = 0; c < n_channels; ++c) {
            const int left = sum_of_cut(h, of_warp, is_cut, c, n_channels);
            const int total = (int)totals_of(r)[c], with_missing = left + h[MISSING_CODE * n_channels + c];
            if (c < sizes.n_classes) {
                missing_left.add(total, with_missing);
                if (missing) missing_right.add(total, left);
            } else {  // the rows' counts
                left_allowed = with_missing >= min_count && total - with_missing >= min_count;
                right_allowed = right_allowed && left >= min_count && total - left >= min_count;
            }
        }
        if (is_cut && left_allowed) best = {missing_left.score(), 2 * bin};
        if (is_cut && right_allowed) best = better(best, {missing_right.score(), 2 * bin + 1});
    }
    best = block_best(best, bests);
    if (threadIdx.x == 0) {
        const i64 at = ((i64)tree * 2 + blockIdx.y) * gridDim.x + blockIdx.x;
        scores[at] = best.score;
        places[at] = best.place;
    }
}

extern "C" __global__ void __launch_bounds__(256)
sweep_edge(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ has_missing,
           const i64* __restrict__ table, const i64* __restrict__ current, const int* __restrict__ histograms,
           i64* __restrict__ scores, int* __restrict__ places, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Best bests[N_WARPS];
    sweep<Edge>(features, bins, has_missing, table, current, histograms, scores, places, sizes, Edge(), of_warp, bests);
}

extern "C" __global__ void __launch_bounds__(256)
sweep_gini(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ has_missing,
           const i64* __restrict__ table, const i64* __restrict__ current, const int* __restrict__ histograms,
           i64* __restrict__ scores, int* __restrict__ places, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Best bests[N_WARPS];
    sweep<Gini>(features, bins, has_missing, table, current, histograms, scores, places, sizes, Gini(), of_warp, bests);
}

extern "C" __global__ void __launch_bounds__(256)
sweep_newton(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ has_missing,
             const i64* __restrict__ table, const i64* __restrict__ current, const int* __restrict__ histograms,
             i64* __restrict__ scores, int* __restrict__ places, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Best bests[N_WARPS];
    sweep<Newton>(features, bins, has_missing, table, current, histograms, scores, places, sizes, Newton(), of_warp, bests);
}

// Four blocks a multiprocessor: left to itself the compiler aims at more and spills on some architectures.
extern "C" __global__ void __launch_bounds__(256, 4)
sweep_rebel(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ has_missing,
            const i64* __restrict__ table, const i64* __restrict__ current, const int* __restrict__ histograms,
            const i64* __restrict__ sum_abs, i64* __restrict__ scores, int* __restrict__ places, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Best bests[N_WARPS];
    const Rebel empty(sum_abs + (i64)blockIdx.z * sizes.n_classes);
    sweep<Rebel>(features, bins, has_missing, table, current, histograms, scores, places, sizes, empty, of_warp, bests);
}

extern "C" __global__ void __launch_bounds__(256)
sweep_entropy(const int* __restrict__ features, const int* __restrict__ bins, const u8* __restrict__ has_missing,
              const i64* __restrict__ table, const i64* __restrict__ current, const int* __restrict__ histograms,
              const LogarithmSeries series, i64* __restrict__ scores, int* __restrict__ places, const SweepSizes sizes)
{
    extern __shared__ int of_warp[];
    __shared__ Best bests[N_WARPS];
    sweep<Entropy>(features, bins, has_missing, table, current, histograms, scores, places, sizes, Entropy(series), of_warp, bests);
}

// Four blocks a multiprocessor: left to itself the compiler aims at more and spills on some architectures.
extern "C" __global__ void __launch_bounds__(256, 4)
choose_split(const int* __restrict__ features, const int* __restrict__ bins, i64* __restrict__ table, const i64* __restrict__ current,
             const int* __restrict__ histograms, const i64* __restrict__ scores, const int* __restrict__ places,
             i64* __restrict__ best_so_far, const SweepSizes sizes)
{
    extern __shared__ int left[];
    __shared__ Best bests[N_WARPS];
    __shared__ i64 score_to_beat;
    __shared__ int winner;
    const int max_nodes = sizes.max_nodes, n_channels = sizes.n_channels, n_features = sizes.n_features;
    const int tree = blockIdx.y, member = sizes.first_member + blockIdx.x;
    const int node = node_of(table, current, tree, member, max_nodes, n_channels);
    if (node < 0) return;
    i64* r = record(table, tree, node, max_nodes, n_channels);
    const i64* totals = totals_of(r);
    const i64 at = (i64)tree * 2 + blockIdx.x;

    if (threadIdx.x == 0) {
        i64 score = 0;
        if (sizes.first_feature == 0)
            for (int c = 0; c < sizes.n_voting; ++c) score += totals[c] < 0 ? -totals[c] : totals[c];  // Edge; 0 for others
        else
            score = best_so_far[at];
        score_to_beat = score;
    }
    Best best = {-1, NO_PLACE};
    for (int f = threadIdx.x; f < n_features; f += blockDim.x) best = better(best, {scores[at * n_features + f], f});
    best = block_best(best, bests);  // its barrier also publishes score_to_beat
    if (threadIdx.x == 0) {
        winner = best.score > score_to_beat ? best.place : -1;
        best_so_far[at] = winner < 0 ? score_to_beat : best.score;
    }
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) left[c] = 0;
    __syncthreads();

    if (winner < 0) {  // the constant classifier, unless an earlier launch has found better
        if (sizes.first_feature != 0) return;
        for (int c = threadIdx.x; c < n_channels; c += blockDim.x) edges_of(r, n_channels)[c] = totals[c];
        if (threadIdx.x == 0) {
            r[FEATURE] = -1;
            r[CUT] = r[MISSING_LEFT] = 0;
            r[KEY] = score_to_beat - r[BASELINE];
        }
        return;
    }
    const int feature = features[sizes.first_feature + winner], place = places[at * n_features + winner];
    const int cut = place / 2, first = place % 2;  // the missing bin, 0, goes left or not
    const int* h = histogram_of(histograms, r, tree, member, bins_of(bins, feature), sizes);
    for (int i = first * n_channels + threadIdx.x; i < (cut + 1) * n_channels; i += blockDim.x)
        atomicAdd(&left[i % n_channels], h[i]);
    __syncthreads();
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) edges_of(r, n_channels)[c] = totals[c] - 2 * (i64)left[c];
    if (threadIdx.x == 0) {
        r[FEATURE] = feature;
        r[CUT] = cut;
        r[MISSING_LEFT] = 1 - first;
        r[KEY] = best_so_far[at] - r[BASELINE];
    }
}
