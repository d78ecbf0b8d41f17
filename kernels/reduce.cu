// Sums and maxima over rows.
//
// maximum       the largest entry of a state. grid (any), block 256.
// channel_sums  sums[c] += frequency_weight[i] * rint(state[i][c] * 2**s), where s is first_shift(*maximum), or `shift` if maximum is null: the
//               sum from which the shift rule is worked out. grid (any), block up to 256.
// leaf_sums    sums[g][k] and sum_abs[g][k] += the sums of quantised and |quantised| over the rows of leaf g. A block sums a tile of leaves and
//               classes in shared memory. grid (any, tiles of classes, tiles of leaves), block up to 256, dynamic shared memory
//               8 * leaves_per_tile * classes_per_tile bytes.
// leaf_sums_wide  the same where sums of a block may pass 2**30, in twice the shared memory.
// row_weights      sum_abs[i] = the sum of |quantised| over the classes of row i from first_class on. grid (any), block 256.
// errors        *wrong += the weight of wrong predictions. `lanes`, a power of two up to 32, threads share a row.
//               grid (any), block 256.
// confusion     counts[label][predicted] += the weight of the rows. A block adds up in shared memory if `in_shared`, which then has
//               8 * n_classes**2 bytes. Threads as in errors. grid (any), block 256.
//
// state    float64 [n_rows][n_classes], not negative    frequency_weight   int32 [n_rows]    sums  int64 [n_classes], added to
// maximum, largest  the bits of a float64; largest is raised, from 0
// quantised        int32 [n_rows][n_channels]; a channel beyond the classes is left out
// leaf_index    int32 [n_rows], 0 .. n_leaves - 1             sums, sum_abs   int64 [n_leaves][n_classes], added to; in row_weights [n_rows]
// scores   float64 [n_rows][n_classes]                   units    int64 [n_rows]
// labels   int32 [n_rows]: a row is wrong if the first of its largest scores is not at its label; null if signs are given
// signs    int8 [n_rows][n_classes]: every class counts whose sign is not the score's, and a score of 0 predicts -1
// counts   int64 [n_classes][n_classes], by the label and the first of the largest scores, added to
//
// Exactness: sums of integers. A float64 times a power of two is exact (or too small to round to anything but 0), so there is one
// rounding, half to even. In leaf_sums the shift rule keeps all partial sums of a channel below 2**30, so a block adds in int32;
// in leaf_sums_wide in 64 bits.
// Limit, MNIST (60000 x 10) at 3.35 TB/s: maximum, errors and confusion read 4.8 MB, channel_sums 5 MB, leaf_sums 2.6 MB: 0.8 to 1.5 us.
// All of it stays in the second-level cache of 50 MB between kernels, and a launch costs more.

#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(256) maximum(const double* __restrict__ state, u64* __restrict__ largest, i64 n)
{
    double value = 0.0;
#pragma unroll 4
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x)
        value = state[i] > value ? state[i] : value;
    raise_maximum(value, largest);
}

extern "C" __global__ void __launch_bounds__(256)
channel_sums(const double* __restrict__ state, const int* __restrict__ frequency_weight, const u64* __restrict__ maximum,
             i64* __restrict__ sums, int n_rows, int n_classes, int shift)
{
    const double scale = power_of_two(maximum ? first_shift(*maximum) : shift);
    const Pairs at(n_classes);
    for (int first = 0; first < n_classes; first += at.lanes) {
        const int c = first + at.channel;
        i64 sum = 0;
        if (!at.idle() && c < n_classes) {
#pragma unroll 4
            for (i64 i = at.first_row(); i < n_rows; i += at.step())
                sum += frequency_weight[i] * __double2ll_rn(state[i * n_classes + c] * scale);
        }
        add_to_channel(at, c, sum, sums);
    }
}

template <class Sum>
static __device__ __forceinline__ void
sum_leaves(const int* __restrict__ quantised, const int* __restrict__ leaf_index, i64* __restrict__ sums, i64* __restrict__ sum_abs,
           int n_rows, int n_leaves, int n_classes, int n_channels, int leaves_per_tile, int classes_per_tile, Sum* cells)
{
    const int first_leaf = blockIdx.z * leaves_per_tile, first_class = blockIdx.y * classes_per_tile;
    const int leaves = min(leaves_per_tile, n_leaves - first_leaf), classes = min(classes_per_tile, n_classes - first_class);
    const int n_cells = leaves * classes;
    for (int e = threadIdx.x; e < 2 * n_cells; e += blockDim.x) cells[e] = 0;
    __syncthreads();

    const Pairs at(classes);
    for (int c = at.channel; c < classes && !at.idle(); c += at.lanes)
        for (i64 i = at.first_row(); i < n_rows; i += at.step()) {
            const int g = leaf_index[i] - first_leaf, value = quantised[i * n_channels + first_class + c];
            if (g < 0 || g >= leaves || value == 0) continue;
            add_to_sum(cells, n_cells, g * classes + c, value);
            add_to_sum(cells + n_cells, n_cells, g * classes + c, value < 0 ? -value : value);
        }
    __syncthreads();
    for (int e = threadIdx.x; e < n_cells; e += blockDim.x) {
        const i64 weight = sum_of(cells + n_cells, n_cells, e);
        if (weight == 0) continue;
        const i64 cell = (i64)(first_leaf + e / classes) * n_classes + first_class + e % classes;
        atomicAdd((u64*)&sums[cell], (u64)(i64)sum_of(cells, n_cells, e));
        atomicAdd((u64*)&sum_abs[cell], (u64)weight);
    }
}

extern "C" __global__ void __launch_bounds__(256)
leaf_sums(const int* __restrict__ quantised, const int* __restrict__ leaf_index, i64* __restrict__ sums, i64* __restrict__ sum_abs,
          int n_rows, int n_leaves, int n_classes, int n_channels, int leaves_per_tile, int classes_per_tile)
{
    extern __shared__ int cells[];
    sum_leaves(quantised, leaf_index, sums, sum_abs, n_rows, n_leaves, n_classes, n_channels, leaves_per_tile, classes_per_tile, cells);
}

extern "C" __global__ void __launch_bounds__(256)
leaf_sums_wide(const int* __restrict__ quantised, const int* __restrict__ leaf_index, i64* __restrict__ sums, i64* __restrict__ sum_abs,
               int n_rows, int n_leaves, int n_classes, int n_channels, int leaves_per_tile, int classes_per_tile)
{
    extern __shared__ i64 wide_cells[];
    sum_leaves(quantised, leaf_index, sums, sum_abs, n_rows, n_leaves, n_classes, n_channels, leaves_per_tile, classes_per_tile, wide_cells);
}

extern "C" __global__ void __launch_bounds__(256)
row_weights(const int* __restrict__ quantised, i64* __restrict__ sum_abs, i64 n_rows, int first_class, int n_classes, int n_channels)
{
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        i64 sum = 0;
        for (int c = first_class; c < n_classes; ++c) {
            const int value = quantised[i * n_channels + c];
            sum += value < 0 ? -value : value;
        }
        sum_abs[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256)
errors(const double* __restrict__ scores, const int* __restrict__ labels, const i8* __restrict__ signs,
       const i64* __restrict__ units, i64* __restrict__ wrong, int n_rows, int n_classes, int lanes)
{
    const int lane = threadIdx.x % 32, rows_at_once = 32 / lanes, row_of_warp = lane / lanes;
    const u32 row_lanes = (lanes == 32 ? FULL_WARP : (1u << lanes) - 1) << row_of_warp * lanes;
    const i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    i64 sum = 0;
    for (i64 base = warp * rows_at_once; base < n_rows; base += n_warps * rows_at_once) {  // the same for the whole warp
        const i64 i = base + row_of_warp;
        const bool inside = i < n_rows;
        const int label = inside && labels ? labels[i] : 0;
        const double own = inside && labels ? scores[i * n_classes + label] : 0.0;
        int n_wrong = 0;
        for (int first = 0; first < n_classes; first += lanes) {
            const int k = first + lane % lanes;
            bool is_wrong = false;
            if (inside && k < n_classes) {
                const double score = scores[i * n_classes + k];
                if (labels) is_wrong = k < label ? score >= own : score > own;
                else is_wrong = (score > 0.0) != (signs[i * n_classes + k] > 0);
            }
            n_wrong += __popc(__ballot_sync(FULL_WARP, is_wrong) & row_lanes);
        }
        if (n_wrong && lane % lanes == 0) sum += units[i] * (labels ? 1 : n_wrong);
    }
    add_to_channel(Pairs(1), 0, sum, wrong);
}

extern "C" __global__ void __launch_bounds__(256)
confusion(const double* __restrict__ scores, const int* __restrict__ labels, const i64* __restrict__ units,
          i64* __restrict__ counts, int n_rows, int n_classes, int lanes, int in_shared)
{
    extern __shared__ u32 counts_of_block[];  // see add_to_halves
    const int n_cells = in_shared ? n_classes * n_classes : 0;
    for (int e = threadIdx.x; e < 2 * n_cells; e += blockDim.x) counts_of_block[e] = 0;
    __syncthreads();

    const int lane = threadIdx.x % 32, rows_at_once = 32 / lanes;
    const i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, n_warps = (i64)gridDim.x * blockDim.x / 32;
    for (i64 base = warp * rows_at_once; base < n_rows; base += n_warps * rows_at_once) {  // the same for the whole warp
        const i64 i = base + lane / lanes;
        const bool inside = i < n_rows;
        double best = -__longlong_as_double(0x7ff0000000000000);  // an infinity, which any class may tie with
        int predicted = n_classes;
        for (int k = lane % lanes; inside && k < n_classes; k += lanes) {
            const double score = scores[i * n_classes + k];
            if (score > best || predicted == n_classes) best = score, predicted = k;
        }
        for (int d = lanes / 2; d; d >>= 1) {
            const double other = __shfl_xor_sync(FULL_WARP, best, d);
            const int k = __shfl_xor_sync(FULL_WARP, predicted, d);
            if (other > best || (other == best && k < predicted)) best = other, predicted = k;
        }
        if (!inside || lane % lanes != 0) continue;
        const i64 cell = (i64)labels[i] * n_classes + predicted;
        if (in_shared) add_to_halves(counts_of_block, n_cells, (int)cell, (u64)units[i]);
        else atomicAdd((u64*)&counts[cell], (u64)units[i]);
    }
    if (!in_shared) return;
    __syncthreads();
    for (int e = threadIdx.x; e < n_cells; e += blockDim.x) {
        const u64 count = sum_of_halves(counts_of_block, n_cells, e);
        if (count) atomicAdd((u64*)&counts[e], count);
    }
}
