// The best splits of nodes, for the kernels of sweep.cu (histograms of int) and sweep_wide.cu (histograms of i64).

#pragma once

#include "criteria.cuh"
#include "siblings.cuh"

enum {
    N_WARPS = 8,
    NO_PLACE = 0x7fffffff
};

struct Best {
    i64 score;
    int place;  // of equals the lowest wins
};

// What a block shares.
struct Shared {
    Best of_warp[N_WARPS];
    i64 score_to_beat;
    int winner, is_last;
};

// What a feature offers: a score and a place.
struct Found {
    i64 score, place;
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

// The sum of channel `c` over the bins up to a thread's own, without the missing values; for threads with a cut. The whole warp takes part.
template <class Sum>
static __device__ __forceinline__ Sum sum_of_cut(const Sum* h, const Sum* of_warp, bool is_cut, int c, int n_channels)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, bin = threadIdx.x;
    Sum left = is_cut ? h[bin * n_channels + c] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        const Sum before = __shfl_up_sync(FULL_WARP, left, d);
        if (lane >= d) left += before;
    }
    return left + of_warp[warp * n_channels + c];
}

// The best cut of a feature with the histogram `h`, in thread 0. `of_warp`, [N_WARPS][n_channels], takes what the bins before each
// warp's add up to; `empty` has seen no class yet.
template <class Criterion, class Sum>
static __device__ __forceinline__ Best
sweep(const Sum* h, int n_bins, bool missing, const i64* totals, const SweepSizes& sizes, const Criterion& empty, Sum* of_warp, Best* bests)
{
    const int n_channels = sizes.n_channels;
    const Sum min_count = (Sum)sizes.min_count;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, bin = threadIdx.x;
    for (int c = lane; c < n_channels; c += 32) {
        Sum sum = 0;
        for (int b = max(32 * warp, 1); b < min(32 * warp + 32, n_bins); ++b) sum += h[b * n_channels + c];
        of_warp[warp * n_channels + c] = sum;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) {
        Sum before = 0;
#pragma unroll
        for (int w = 0; w < N_WARPS; ++w) {
            const Sum sum = of_warp[w * n_channels + c];
            of_warp[w * n_channels + c] = before;
            before += sum;
        }
    }
    __syncthreads();

    const bool is_cut = bin >= 1 && bin < n_bins;
    Best best = {-1, NO_PLACE};
    if (32 * warp < n_bins) {  // the whole warp or none of it
        Criterion missing_left = empty, missing_right = empty;
        if constexpr (Criterion::WEIGHS)
            for (int c = 0; c < sizes.n_classes; ++c) {
                const Sum left = sum_of_cut(h, of_warp, is_cut, c, n_channels), total = (Sum)totals[c];
                missing_left.weigh(total, left + h[MISSING_CODE * n_channels + c]);
                missing_right.weigh(total, left);
            }
        bool left_allowed = true, right_allowed = missing;
        for (int c = 0; c < n_channels; ++c) {
            const Sum left = sum_of_cut(h, of_warp, is_cut, c, n_channels);
            const Sum total = (Sum)totals[c], with_missing = left + h[MISSING_CODE * n_channels + c];
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
    return block_best(best, bests);
}

// Write the best feature of a node, or its constant classifier, into its record. `left`, [n_channels], is scratch.
template <class Sum>
static __device__ __forceinline__ void
choose_split(const int* features, const int* bins, i64* node, int tree, int member, Sum* histograms, const Found* of_features,
             i64* best_so_far, const SweepSizes& sizes, Sum* left, Shared& shared)
{
    const int n_channels = sizes.n_channels;
    const i64* totals = totals_of(node);
    if (threadIdx.x == 0) {
        i64 score = 0;
        if (sizes.first_feature == 0)
            for (int c = 0; c < sizes.n_voting; ++c) score += totals[c] < 0 ? -totals[c] : totals[c];  // Edge; 0 for others
        else
            score = *best_so_far;
        shared.score_to_beat = score;
    }
    Best best = {-1, NO_PLACE};
    for (int f = threadIdx.x; f < sizes.n_features; f += blockDim.x) best = better(best, {of_features[f].score, f});
    best = block_best(best, shared.of_warp);  // its barrier also publishes score_to_beat
    if (threadIdx.x == 0) {
        shared.winner = best.score > shared.score_to_beat ? best.place : -1;
        *best_so_far = shared.winner < 0 ? shared.score_to_beat : best.score;
    }
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) left[c] = 0;
    __syncthreads();

    const int winner = shared.winner;
    if (winner < 0) {  // the constant classifier, unless an earlier launch has found better
        if (sizes.first_feature != 0) return;
        for (int c = threadIdx.x; c < n_channels; c += blockDim.x) edges_of(node, n_channels)[c] = totals[c];
        if (threadIdx.x == 0) {
            node[FEATURE] = -1;
            node[CUT] = node[MISSING_LEFT] = 0;
            node[KEY] = shared.score_to_beat - node[BASELINE];
        }
        return;
    }
    const int feature = features[sizes.first_feature + winner], place = (int)of_features[winner].place;
    const int cut = place / 2, first = place % 2;  // the missing bin, 0, goes left or not
    const Sum* h = histogram_of(histograms, node, tree, member, bins_of(bins, feature), sizes);
    for (int i = first * n_channels + threadIdx.x; i < (cut + 1) * n_channels; i += blockDim.x)
        add_to_sum(left, n_channels, i % n_channels, h[i]);
    __syncthreads();
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x)
        edges_of(node, n_channels)[c] = totals[c] - 2 * (i64)sum_of(left, n_channels, c);
    if (threadIdx.x == 0) {
        node[FEATURE] = feature;
        node[CUT] = cut;
        node[MISSING_LEFT] = 1 - first;
        node[KEY] = *best_so_far - node[BASELINE];
    }
}

template <class Criterion, class Sum>
static __device__ __forceinline__ void
find_splits(const int* features, const int* bins, const u8* facts, i64* table, const i64* current, Sum* histograms, i64* found,
            int* tickets, const SweepSizes& sizes, const Criterion& empty, Sum* of_warp, Shared& shared)
{
    const int max_nodes = sizes.max_nodes, n_channels = sizes.n_channels, n_features = sizes.n_features;
    const int tree = blockIdx.y, first = sizes.first_member, n_members = first == ROOT ? 1 : 2;
    if (node_of(table, current, tree, first, max_nodes, n_channels) < 0) return;  // so do all blocks of the tree
    Found* of_features = (Found*)found + 2 * sizes.n_trees + (i64)2 * tree * n_features;

    if ((int)blockIdx.x < n_features) {
        const int feature = features[sizes.first_feature + blockIdx.x];
        const Bins own = bins_of(bins, feature);
        if (own.n > 0) finish_histograms(histograms, table, current, tree, own, facts[2 * feature], sizes, of_warp);
        for (int m = 0; m < n_members; ++m) {
            const int node = node_of(table, current, tree, first + m, max_nodes, n_channels);
            const i64* r = record(table, tree, node, max_nodes, n_channels);
            const Sum* h = histogram_of(histograms, r, tree, first + m, own, sizes);
            const Best best = sweep(h, own.n, facts[2 * feature + 1] != 0, totals_of(r), sizes, empty, of_warp, shared.of_warp);
            if (threadIdx.x == 0) of_features[m * n_features + blockIdx.x] = {best.score, best.place};
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        shared.is_last = atomicAdd(&tickets[tree], 1) == (int)gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!shared.is_last) return;
    if (threadIdx.x == 0) tickets[tree] = 0;
    for (int m = 0; m < n_members; ++m) {
        i64* r = record(table, tree, node_of(table, current, tree, first + m, max_nodes, n_channels), max_nodes, n_channels);
        choose_split(features, bins, r, tree, first + m, histograms, of_features + m * n_features, found + 2 * (2 * tree + m), sizes,
                     of_warp, shared);  // the next one's scratch is free: its first barrier comes before it writes there
    }
}
