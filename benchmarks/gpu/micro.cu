// What a card can do at most, and what a launch costs: for benchmarks/gpu/micro.py, not part of the library.
//
// micro_atomics  every thread adds `repeats` * UNROLLED times to shared memory; `ways` lanes of a warp meet in one bank, in different
//                words or (same_address) in one. grid (any), block up to 1024, 32 KB of static shared memory. cycles[block] is what
//                the block took, 0 where there is no clock. `value` is an argument, as adding a constant 1 is another instruction.
// micro_nothing  an empty kernel. micro_many: one with arguments of the sizes of those of `histogram`.
// micro_spin     waits for so many cycles. grid (1), block 32.
//
// cycles  int64 [gridDim.x]        sink  int32 [gridDim.x]: keeps the additions from being removed

typedef long long i64;

enum {
    UNROLLED = 8,
    ROWS = 32,
    WORDS = UNROLLED * ROWS * 32
};

static __device__ __forceinline__ i64 now()
{
#ifdef __CUDA_ARCH__
    return clock64();
#else
    return 0;
#endif
}

extern "C" __global__ void __launch_bounds__(1024)
micro_atomics(i64* __restrict__ cycles, int* __restrict__ sink, int ways, int same_address, int value, int repeats)
{
    __shared__ int cells[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) cells[i] = 0;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, bank = lane / ways, row = same_address ? 0 : lane % ways;
    int* own = cells + row * 32 + bank;
    __syncthreads();
    const i64 begun = now();
#pragma unroll 1
    for (int i = 0; i < repeats; ++i)
#pragma unroll
        for (int u = 0; u < UNROLLED; ++u) atomicAdd(own + ((u ^ warp) % UNROLLED) * ROWS * 32, value);  // warps apart
    __syncthreads();
    if (threadIdx.x == 0) {
        cycles[blockIdx.x] = now() - begun;
        sink[blockIdx.x] = *own;
    }
}

extern "C" __global__ void __launch_bounds__(1024) micro_nothing() {}

struct Sizes {
    int n[15];
};

extern "C" __global__ void __launch_bounds__(1024)
micro_many(int* a0, int* a1, int* a2, int* a3, int* a4, int* a5, int* a6, int* a7, int* a8, Sizes sizes)
{
}

extern "C" __global__ void __launch_bounds__(1024) micro_spin(i64 cycles)
{
    const i64 begun = now();
    while (now() - begun < cycles && now() != 0) {}
}
