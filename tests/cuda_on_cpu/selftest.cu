// What the emulator offers, in kernels so small that test_emulator.py can say by hand what they give, and what it must find.

typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;
#define FULL_WARP 0xffffffffu

// ---- values -----------------------------------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(64) coordinates(int* out)
{
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int* mine = out + 10 * (block * blockDim.x + threadIdx.x);
    mine[0] = threadIdx.x, mine[1] = threadIdx.y, mine[2] = blockIdx.x, mine[3] = blockIdx.y, mine[4] = blockIdx.z;
    mine[5] = blockDim.x, mine[6] = blockDim.y * blockDim.z, mine[7] = gridDim.x, mine[8] = gridDim.y, mine[9] = gridDim.z;
}

extern "C" __global__ void arguments(int* out, signed char a, unsigned char b, short c, unsigned short d, int e, u32 f, i64 g, u64 h,
                                     float i, double j, const int* none)
{
    out[0] = a, out[1] = b, out[2] = c, out[3] = d, out[4] = e, out[5] = (int)(f >> 1), out[6] = (int)(g >> 32), out[7] = (int)(h >> 33);
    out[8] = (int)(i * 4), out[9] = (int)(j * 8), out[10] = none == nullptr;
}

extern "C" __global__ void __launch_bounds__(32, 2) vectors(float* floats, int* sizes)
{
    const float2 two = ((const float2*)floats)[1];
    const float4 four = make_float4(two.y, two.x, 0.5f, floats[0]);
    ((float4*)floats)[1] = four;
    sizes[0] = sizeof(char4), sizes[1] = sizeof(uchar3), sizes[2] = sizeof(short2), sizes[3] = sizeof(uint4), sizes[4] = sizeof(longlong2);
    sizes[5] = alignof(float4), sizes[6] = alignof(double2), sizes[7] = alignof(int3), sizes[8] = alignof(uint2), sizes[9] = alignof(double4);
    sizes[10] = make_uint3(1, 2, 3).z + make_longlong2(4, 5).y;
}

extern "C" __global__ void __launch_bounds__(64) shuffles(int* out, double* numbers)
{
    const int t = threadIdx.x, lane = t & 31;
    int* mine = out + 6 * t;
    mine[0] = __shfl_sync(FULL_WARP, t, 5);
    mine[1] = __shfl_sync(FULL_WARP, t, lane + 1, 8);
    mine[2] = __shfl_up_sync(FULL_WARP, t, 3);
    mine[3] = __shfl_down_sync(FULL_WARP, t, 4, 8);
    mine[4] = __shfl_xor_sync(FULL_WARP, t, 1);
    mine[5] = __shfl_xor_sync(FULL_WARP, t, 8, 8);
    numbers[t] = __shfl_down_sync(FULL_WARP, 0.5 + t, 16);
}

extern "C" __global__ void __launch_bounds__(64) votes(u32* out)
{
    const int t = threadIdx.x, lane = t & 31;
    u32* mine = out + 6 * t;
    mine[0] = __ballot_sync(FULL_WARP, lane % 3 == 0);
    mine[1] = __any_sync(FULL_WARP, t == 40);
    mine[2] = __all_sync(FULL_WARP, t != 40);
    mine[3] = __match_any_sync(FULL_WARP, t & 3);
    // Two halves of a warp take part in different votes at the same time.
    if (lane < 16) mine[4] = __ballot_sync(0x0000ffffu, 1);
    else mine[4] = __ballot_sync(0xffff0000u, lane & 1);
    mine[5] = __syncthreads_count(t % 5 == 0) + 100 * __syncthreads_or(t == 63) + 1000 * __syncthreads_and(t != 63);
}

extern "C" __global__ void __launch_bounds__(64) atomics(int* i, u32* u, i64* l, u64* w, float* f, double* d, int* old)
{
    const int t = threadIdx.x;
    atomicAdd(&i[0], -t), atomicSub(&i[1], t), atomicMax(&i[2], t - 40), atomicMin(&i[3], t - 40);
    atomicAnd(&i[4], ~(1 << t % 8)), atomicOr(&i[5], 1 << t % 8), atomicXor(&i[6], t), atomicExch(&i[7], 7), atomicCAS(&i[8], 20, 21);
    atomicAdd(&i[9], 0x7fffffff);
    atomicAdd(&u[0], 3u), atomicSub(&u[1], 1u), atomicMax(&u[2], (u32)-t), atomicMin(&u[3], (u32)-t), atomicInc(&u[4], 9u), atomicDec(&u[5], 9u);
    atomicAnd(&u[6], ~(1u << t % 8)), atomicOr(&u[7], 1u << t % 8), atomicXor(&u[8], (u32)t), atomicExch(&u[9], 8u), atomicCAS(&u[10], 20u, 22u);
    atomicMax(&l[0], (i64)t - 40), atomicMin(&l[1], (i64)t - 40);
    atomicAdd(&w[0], (u64)(i64)-t), atomicMax(&w[1], (u64)t << 40), atomicMin(&w[2], (u64)t << 40), atomicExch(&w[3], 9ull);
    atomicAnd(&w[4], ~(1ull << t)), atomicOr(&w[5], 1ull << t), atomicXor(&w[6], (u64)t << 40), atomicCAS(&w[7], 20ull, 23ull);
    atomicAdd(&f[0], 0.5f), atomicExch(&f[1], 1.5f), atomicAdd(&d[0], 0.25);
    old[atomicAdd(&i[10], 1)] = 1;  // what it was: each thread gets another number
}

extern "C" __global__ void integers(int* out, u64* wide)
{
    int n = 0;
    out[n++] = __popc(0xf0f0u), out[n++] = __popcll(0xf0f000000000f0f0ull);
    out[n++] = __clz(1), out[n++] = __clz(0), out[n++] = __clz(-1), out[n++] = __clzll(1), out[n++] = __clzll(0);
    out[n++] = __ffs(8), out[n++] = __ffs(0), out[n++] = __ffsll(1ll << 40);
    out[n++] = (int)__brev(1u << 4), out[n++] = __mulhi(-3, 1 << 30), out[n++] = (int)__umulhi(0x80000000u, 6u);
    out[n++] = min(-1, 2), out[n++] = max(-1, 2), out[n++] = (int)min(-1, 2u), out[n++] = (int)max(3u, 2), out[n++] = abs(-5);
    out[n++] = (int)min(3ll, -4ll), out[n++] = (int)max(3ull, 4ull), out[n++] = (int)llabs(-6ll);
    out[n++] = (int)__byte_perm(0x03020100u, 0x07060504u, 0x4162u), out[n++] = (int)__byte_perm(0xa1b2c3d4u, 0u, 0x4442u);
    wide[0] = __umul64hi(1ull << 63, 6ull), wide[1] = (u64)__mul64hi(-(1ll << 62), 8ll);
}

extern "C" __global__ void conversions(const double* x, int* to_int, u32* to_uint, i64* to_ll, u64* to_ull, int* float_to_int, i64* float_to_ll)
{
    const int t = threadIdx.x;
    to_int[4 * t] = __double2int_rn(x[t]), to_int[4 * t + 1] = __double2int_rz(x[t]);
    to_int[4 * t + 2] = __double2int_rd(x[t]), to_int[4 * t + 3] = __double2int_ru(x[t]);
    to_uint[t] = __double2uint_rn(x[t]), to_ll[t] = __double2ll_rn(x[t]), to_ull[t] = __double2ull_rn(x[t]);
    float_to_int[t] = __float2int_rn((float)x[t]), float_to_ll[t] = __float2ll_rn((float)x[t]);
}

extern "C" __global__ void floats(double* out)
{
    int n = 0;
    out[n++] = rint(2.5), out[n++] = floor(-1.5), out[n++] = ceil(-1.5), out[n++] = trunc(-1.5), out[n++] = fabs(-1.5), out[n++] = sqrt(6.25);
    out[n++] = ldexp(3.0, -2), out[n++] = copysign(2.0, -0.0), out[n++] = min(1.0, 2.0), out[n++] = fmax(1.0, 2.0);
    const double tiny = __longlong_as_double(0x3ca0000000000000ll);  // 2^-53
    out[n++] = __fma_rn(1.0 + 2 * tiny, 1.0 - 2 * tiny, -1.0);       // -2^-104, which a product that is rounded first loses
    const double product = (1.0 + 2 * tiny) * (1.0 - 2 * tiny) - 1.0;
    out[n++] = product;
    out[n++] = __dadd_rn(1.0, tiny), out[n++] = __ddiv_rn(1.0, 4.0), out[n++] = __dmul_rn(1.5, 1.5), out[n++] = __dsub_rn(1.0, 0.25);
    out[n++] = __fadd_rn(1.0f, 0x1p-24f), out[n++] = __fdiv_rn(1.0f, 3.0f), out[n++] = sqrtf(2.25f), out[n++] = fmaf(2.0f, 3.0f, 1.0f);
    out[n++] = __ll2double_rn((1ll << 53) + 1), out[n++] = __int2float_rn((1 << 24) + 1), out[n++] = __hiloint2double(0x40080000, 0);
    out[n++] = __float_as_int(1.0f), out[n++] = __int_as_float(0x40000000), out[n++] = __double2hiint(1.0) + __double2loint(1.0);
    out[n++] = isnan(out[0]) + 2 * isinf(1.0 / 0.0) + 4 * isfinite(1.0f) + 8 * signbit(-0.0);
}

extern "C" __global__ void arrival_order(int* n_arrived, int* blocks, int* threads)
{
    const int place = atomicAdd(n_arrived, 1);
    blocks[place] = blockIdx.x;
    threads[place] = threadIdx.x;
}

// ---- shared and constant memory ---------------------------------------------------------------------------------------------

__constant__ int powers[4] = {1, 10, 100, 1000};

struct __align__(16) Pair {
    int first;
    double second;
};

template <class T> static __device__ T block_sum(T value)  // each T has a `partial` of its own
{
    __shared__ T partial[2];
    for (int d = 16; d; d >>= 1) value += __shfl_xor_sync(FULL_WARP, value, d);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = value;
    __syncthreads();
    const T sum = partial[0] + partial[1];
    __syncthreads();
    return sum;
}

extern "C" __global__ void __launch_bounds__(64) shared_memory(int* out)
{
    extern __shared__ __align__(16) int dynamic[];
    __shared__ int square[4][16], single, other[2];
    __shared__ Pair pairs[2];
    const int t = threadIdx.x;
    square[t / 16][t % 16] = t;
    dynamic[63 - t] = 2 * t;
    if (t == 0) single = 5, other[0] = 6, other[1] = 7, pairs[1].first = sizeof(Pair), pairs[1].second = 0.5;
    __syncthreads();
    int* mine = out + 4 * (blockIdx.x * blockDim.x + t);
    mine[0] = (&square[0][0])[63 - t];
    mine[1] = dynamic[t];
    mine[2] = single + other[0] + other[1] + pairs[1].first + (int)(2 * pairs[1].second) + powers[t % 4];
    mine[3] = block_sum<int>(t) + (int)block_sum<double>(0.5) + (int)blockIdx.x;
}

extern "C" __global__ void __launch_bounds__(64) uninitialised(int* out)
{
    __shared__ int fixed[64];
    extern __shared__ int dynamic[];
    out[2 * threadIdx.x] = fixed[threadIdx.x];
    out[2 * threadIdx.x + 1] = dynamic[threadIdx.x];
}

// ---- memory order -----------------------------------------------------------------------------------------------------------

// The block that is last to finish adds what all have written.
static __device__ __forceinline__ void add_up(int* parts, u32* ticket, int* sum, bool with_fence)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x + 1;
        if (with_fence) __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x != 0) return;
    *sum = 0;
    for (int b = 0; b < (int)gridDim.x; ++b) *sum += ((volatile int*)parts)[b];
}
extern "C" __global__ void with_fence(int* parts, u32* ticket, int* sum) { add_up(parts, ticket, sum, true); }
extern "C" __global__ void without_fence(int* parts, u32* ticket, int* sum) { add_up(parts, ticket, sum, false); }

extern "C" __global__ void __launch_bounds__(32) with_syncwarp(int* out)
{
    __shared__ int cells[32];
    cells[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = cells[31 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(32) without_syncwarp(int* out)
{
    __shared__ int cells[32];
    cells[threadIdx.x] = threadIdx.x;
    const int one = __shfl_sync(FULL_WARP, 1, 0);  // lets all lanes meet, but does not order memory
    out[threadIdx.x] = cells[31 - threadIdx.x] * one;
}

// Two halves of a warp take different numbers of steps, each in an order of its own.
extern "C" __global__ void __launch_bounds__(32) syncwarp_of_halves(int* out)
{
    __shared__ int cells[32];
    const int t = threadIdx.x, first = t & 16;
    const unsigned mask = 0xffffu << first;
    cells[t] = t;
    for (int i = 0; i < 3 + first; ++i) {
        __syncwarp(mask);
        const int next = cells[first + (t + 1) % 16];
        __syncwarp(mask);
        cells[t] = next;
    }
    __syncwarp();
    out[t] = cells[31 - t];
}

extern "C" __global__ void plain_add_in_block(int* out)
{
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    sum += 1;
    __syncthreads();
    out[threadIdx.x] = sum;
}

extern "C" __global__ void plain_add_between_blocks(int* out)
{
    if (threadIdx.x == 0) out[0] += 1;
}

// ---- faults -----------------------------------------------------------------------------------------------------------------

extern "C" __global__ void early_return(int* out)
{
    if (threadIdx.x >= 40) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void divergent_barrier(int* out)
{
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void missing_lanes(int* out)
{
    if (threadIdx.x < 20) out[threadIdx.x] = __shfl_sync(FULL_WARP, 1, 0);
}

extern "C" __global__ void divergent_warp(int* out)
{
    if (threadIdx.x & 1) out[threadIdx.x] = __ballot_sync(FULL_WARP, 1);
    else out[threadIdx.x] = __ballot_sync(FULL_WARP, 0);
}

extern "C" __global__ void lane_not_in_mask(int* out) { out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0); }

extern "C" __global__ void shuffle_from_absent_lane(int* out)
{
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, 1, 1);
}

extern "C" __global__ void failed_assertion(int* out)
{
    assert(out[0] == 0 || threadIdx.x != 3);
}

extern "C" __global__ void trap(int* out)
{
    if (out[0] != 0) __trap();
}

extern "C" __global__ void too_much_shared(int* out)
{
    __shared__ int large[8 * 1024];
    large[threadIdx.x] = 0;
    out[threadIdx.x] = large[threadIdx.x];
}

extern "C" __global__ void dynamic_shared_overrun(int* out)
{
    extern __shared__ int cells[];
    cells[threadIdx.x + 1] = 0;
    out[0] = cells[1];
}

extern "C" __global__ void static_shared_overrun(int* out)
{
    __shared__ int cells[63];
    int* first = cells;
    first[threadIdx.x] = 0;
    out[0] = cells[0];
}

extern "C" __global__ void global_overrun(int* out) { out[64 + threadIdx.x] = 0; }
extern "C" __global__ void global_underrun(int* out) { out[(int)threadIdx.x - 64] = 0; }
extern "C" __global__ void signed_overflow(int* out) { out[0] = (0x7fffffff - 62) + (int)threadIdx.x; }
extern "C" __global__ void shift_too_far(int* out) { out[0] = 1 << threadIdx.x; }
extern "C" __global__ void cast_out_of_range(int* out) { out[0] = (int)(1e8f * (float)threadIdx.x); }
