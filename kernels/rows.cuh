// What the kernels over (row, channel) pairs share: which pairs a thread takes, and how a block adds up.

#pragma once

#include "common.cuh"

typedef signed char i8;

enum {
    MAX_THREADS = 256,
    MAX_WARPS = MAX_THREADS / 32
};

// A thread keeps to one channel, so that it can add in a register. Neighbours in a row are neighbours in a block, so that a warp reads
// what lies side by side. Channels beyond the block take turns: channel, channel + lanes, ...
struct Pairs {
    int lanes, rows_at_once, row, channel;

    __device__ __forceinline__ explicit Pairs(int n_channels)
        : lanes(min(n_channels, (int)blockDim.x)), rows_at_once(blockDim.x / lanes), row(threadIdx.x / lanes),
          channel(threadIdx.x % lanes)
    {
    }
    __device__ __forceinline__ bool idle() const { return row >= rows_at_once; }  // the block's rest
    __device__ __forceinline__ i64 first_row() const { return (i64)blockIdx.x * rows_at_once + row; }
    __device__ __forceinline__ i64 step() const { return (i64)gridDim.x * rows_at_once; }
};

// Adds up the threads of each channel, and adds that to total[channel]: one atomic a block and channel. All threads take part; those
// without a channel bring 0, and idle ones do not count.
__device__ __forceinline__ void add_to_channel(const Pairs& at, int channel, i64 value, i64* __restrict__ total)
{
    __shared__ i64 of_thread[MAX_THREADS];
    of_thread[threadIdx.x] = value;
    __syncthreads();
    for (int n = at.rows_at_once; n > 1;) {
        const int half = (n + 1) / 2;
        if (at.row + half < n) of_thread[threadIdx.x] += of_thread[threadIdx.x + half * at.lanes];
        __syncthreads();
        n = half;
    }
    const i64 sum = of_thread[threadIdx.x];
    if (at.row == 0 && sum != 0) atomicAdd((u64*)&total[channel], (u64)sum);
}

// 64-bit sums of a block, in shared memory as u32 [2][n]: the lower halves, then the upper ones. No card adds 64 bits there: atomicAdd
// would be a loop of seven instructions around a compare-and-swap, taken again as long as any lane of the warp loses the race for its
// sum, 32 times where all lanes have the same. Here it is ten instructions, once: two native atomics, and the carry between them.
__device__ __forceinline__ void add_to_halves(u32* halves, int n, int e, u64 value)
{
    const u32 low = (u32)value, sum = atomicAdd(&halves[e], low) + low;
    const u32 high = (u32)(value >> 32) + (sum < low);
    if (high != 0) atomicAdd(&halves[n + e], high);
}

__device__ __forceinline__ u64 sum_of_halves(const u32* halves, int n, int e) { return (u64)halves[n + e] << 32 | halves[e]; }

// The same for arrays [n] of int, by native atomics, and of i64, which hold halves until they are read here. All 0 at first.
__device__ __forceinline__ void add_to_sum(int* sums, int n, int e, int value) { atomicAdd(&sums[e], value); }
__device__ __forceinline__ void add_to_sum(i64* sums, int n, int e, i64 value)
{
    add_to_halves((u32*)sums, n, e, (u64)value);
}
__device__ __forceinline__ int sum_of(const int* sums, int n, int e) { return sums[e]; }
__device__ __forceinline__ i64 sum_of(const i64* sums, int n, int e)
{
    return (i64)sum_of_halves((const u32*)sums, n, e);
}

// Raises *maximum to the largest value of the block's threads. Values are not negative: their bits are in the order of the numbers.
__device__ __forceinline__ void raise_maximum(double value, u64* __restrict__ maximum)
{
    __shared__ double of_warp[MAX_WARPS];
    for (int d = 16; d; d >>= 1) {
        const double other = __shfl_down_sync(FULL_WARP, value, d);
        value = other > value ? other : value;
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < (int)blockDim.x / 32; ++w) value = of_warp[w] > value ? of_warp[w] : value;
    if (value > 0.0) atomicMax(maximum, (u64)__double_as_longlong(value));
}

// 2**shift. The row state's maximum is 0 or at least 2**-900 and its shifts are far inside -1022 .. 1023.
__device__ __forceinline__ double power_of_two(int shift) { return __longlong_as_double((i64)(1023 + shift) << 52); }

// gpuboost.fixedpoint.first_shift of a maximum given by its bits: s0 with 2**30 <= maximum * 2**s0 < 2**31; 31 for 0.
__device__ __forceinline__ int first_shift(u64 maximum)
{
    const int exponent = maximum == 0 ? 0 : (int)(maximum >> 52) - 1022;
    return 31 - exponent;
}
