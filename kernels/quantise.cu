// From a row state to fixed point (gpuboost/fixedpoint.py), without asking the host.
//
// choose_shift  the shift rule: from the maximum and the largest channel sum; no more than most_dropped bits are dropped. grid (1),
//               block 32.
// quantise      quantised[i][k] = sign * frequency_weight * rint(state * 2**shift), the rows' counts as a last channel if there are any, and the sums of
//               quantised and |quantised|. The shift is *chosen, or `shift` if chosen is null. grid (any), block up to 256.
// flip          flipped[i][k] = quantised[i][k] * table[leaf_index[i]][k] for the classes, quantised for the counts, and its sums. grid (any), block up to 256.
//
// maximum  the bits of a float64        sums     int64 [n_classes], from channel_sums
// total_frequency  the sum of frequency_weight, at most 2**31 - 1
// chosen   int64 [2]: the shift, and the maximum's bits, so that one transfer brings the host all small results
// state    float64 [n_rows][n_classes], not negative; signs int8 [the same], -1 or +1
// frequency_weight   int32 [n_rows]               counts   int32 [n_rows], or null
// quantised, flipped  int32 [n_rows][n_channels], n_channels = n_classes, or one more with counts
// sums   int64 [n_channels]           sum_abs     int64 [n_classes]; both are added to
// leaf_index    int32 [n_rows]               table    int8 [n_leaves][n_classes], -1 or +1
//
// Exactness: state * 2**shift is exact, one rounding half to even, integers from there on. The shift rule keeps quantised within int32.
// Limit, MNIST (60000 x 10) at 3.35 TB/s: quantise 8.0 MB, 2.4 us; flip 5.0 MB, 1.5 us.

#include "rows.cuh"
#include "sizes.cuh"

extern "C" __global__ void __launch_bounds__(256)
choose_shift(const u64* __restrict__ maximum, const i64* __restrict__ sums, i64* __restrict__ chosen, int n_classes, i64 total_frequency,
             int most_dropped)
{
    i64 largest = 0;
    for (int c = threadIdx.x; c < n_classes; c += 32) largest = max(largest, sums[c]);
    for (int d = 16; d; d >>= 1) largest = max(largest, __shfl_down_sync(FULL_WARP, largest, d));
    if (threadIdx.x != 0) return;

    // The smallest drop with 2 S + R <= room * 2**drop. `need` is ceil((2 S + R) / 2**drop): it is halved where room would overflow.
    const u64 room = (u64)max(2 * ((1ll << 30) - 1) - total_frequency, 0ll);
    u64 need = 2 * (u64)largest + (u64)total_frequency;
    int drop = 0;
    for (; need > room && drop < most_dropped; ++drop) need -= need / 2;
    chosen[0] = first_shift(*maximum) - drop;
    chosen[1] = (i64)*maximum;
}

extern "C" __global__ void __launch_bounds__(256)
quantise(const double* __restrict__ state, const i8* __restrict__ signs, const int* __restrict__ frequency_weight,
         const int* __restrict__ counts, const i64* __restrict__ chosen, int* __restrict__ quantised, i64* __restrict__ sums,
         i64* __restrict__ sum_abs, const QuantiseSizes sizes)
{
    const int n_rows = sizes.n_rows, n_classes = sizes.n_classes, n_channels = sizes.n_channels;
    const double scale = power_of_two(chosen ? (int)chosen[0] : sizes.shift);
    const Pairs at(n_channels);
    for (int first = 0; first < n_channels; first += at.lanes) {
        const int c = first + at.channel;
        i64 sum = 0, weight = 0;
        if (!at.idle() && c < n_classes) {
#pragma unroll 2
            for (i64 i = at.first_row(); i < n_rows; i += at.step()) {
                const i64 cell = i * n_classes + c;
                const i64 units = frequency_weight[i] * __double2ll_rn(state[cell] * scale), value = units * signs[cell];
                quantised[i * n_channels + c] = (int)value;
                sum += value;
                weight += units;
            }
        } else if (!at.idle() && c < n_channels) {
            for (i64 i = at.first_row(); i < n_rows; i += at.step()) {
                const int count = counts[i];
                quantised[i * n_channels + c] = count;
                sum += count;
            }
        }
        add_to_channel(at, c, sum, sums);
        add_to_channel(at, c, weight, sum_abs);
    }
}

extern "C" __global__ void __launch_bounds__(256)
flip(const int* __restrict__ quantised, const int* __restrict__ leaf_index, const i8* __restrict__ table, int* __restrict__ flipped,
     i64* __restrict__ sums, int n_rows, int n_classes, int n_channels)
{
    const Pairs at(n_channels);
    for (int first = 0; first < n_channels; first += at.lanes) {
        const int c = first + at.channel;
        i64 sum = 0;
        if (!at.idle() && c < n_channels) {
#pragma unroll 4
            for (i64 i = at.first_row(); i < n_rows; i += at.step()) {
                const int sign = c < n_classes ? table[(i64)leaf_index[i] * n_classes + c] : 1;
                const int value = quantised[i * n_channels + c] * sign;
                flipped[i * n_channels + c] = value;
                sum += value;
            }
        }
        add_to_channel(at, c, sum, sums);
    }
}
