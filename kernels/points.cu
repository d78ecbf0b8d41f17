// Distances of rows to training points, and what is made of them (localized similarities, section 5.4 of Appel's thesis).
//
// squared_distances  distances[i] = the sum over the features of (level of row i - level of the point)**2. grid (any), block 256.
// ring_index         out[i] = how many of the ascending radii are below distances[i]. grid (any), block 256.
// nearer_index       out[i] = 1 where distances[i] <= limits[i], or <= limit if limits is null, else 0. grid (any), block 256.
// opposite_rows      rows[i] = 1 where sides[i] != side and distances[i] > 0, else 0; raises *nearest. grid (any), block 256.
// drop_similar       rows[i] = 0 where the row is similar to the candidate, see gpuboost/backends/points.py; raises *nearest by those that
//                    are left. grid (any), block 256.
// class_products     products[k][m] += quantised[i][k] / frequency_weight[i] * quantised[i][m], which divides. grid (any), block up to 256.
// add_similarities   scores[i][k] += f_t(row i) * coefficients[t][k], round after round. grid (any), block 256.
//
// levels    uint8 [n_blocks][n_rows][BLOCK_FEATURES], filled up with zeros    point  uint8 [n_blocks][BLOCK_FEATURES], too
// distances, to_candidate, limits  int32 [n_rows], below 2**29              radii  int32 [n_radii]
// sides     int8 [n_rows], -1 or +1           rows     uint8 [n_rows]
// nearest   the complement of distance * 2**32 + row, to be raised from 0: the largest is the nearest row, the lowest of equals
// points    uint8 [n_points][n_blocks][BLOCK_FEATURES]
// rounds    int32 [n_rounds][3]: the points that are compared, -1 for none, and the radius of one without a second
// coefficients  float64 [n_rounds][n_classes]  scores  float64 [n_rows][n_classes]
// quantised int32 [n_rows][n_channels]        products  int64 [n_classes][n_classes], added to
//
// Exactness: integers. A squared distance is below 2**29, so 20 times its square, the most in drop_similar, fits in 64 bits; a class's
// magnitudes add up to less than 2**30, and each is below that: so do products. Minima are the same in any order. Scores are float64,
// one rounding a round, in the order of the rounds.
// Limit: bytes. A candidate of MNIST (60000 x 784) reads 47 MB of levels, 14 us at 3.35 TB/s, in 4 instructions a level: 188 M / (132 * 128
// lanes) / 1.7 GHz = 7 us. The other kernels read 4 to 9 bytes a row: a launch. add_similarities takes two distances a round: 1000 rounds on
// 10000 rows of 784 features 63 G instructions, 2.2 ms, and 16 GB from the second-level cache.

#include "rows.cuh"

static __device__ __forceinline__ int square_of_difference(int one, int other, int shift)
{
    const int difference = (one >> shift & 255) - (other >> shift & 255);
    return difference * difference;
}

static __device__ __forceinline__ int squared_differences(int one, int other)
{
    int sum = 0;
#pragma unroll
    for (int shift = 0; shift < 32; shift += 8) sum += square_of_difference(one, other, shift);
    return sum;
}

static __device__ __forceinline__ int
squared_distance(const u8* __restrict__ levels, const u8* __restrict__ point, i64 i, int n_rows, int n_blocks)
{
    int sum = 0;
    for (int b = 0; b < n_blocks; ++b) {
        const int4 row = ((const int4*)levels)[(i64)b * n_rows + i], other = ((const int4*)point)[b];
        sum += squared_differences(row.x, other.x) + squared_differences(row.y, other.y) + squared_differences(row.z, other.z)
               + squared_differences(row.w, other.w);
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256)
squared_distances(const u8* __restrict__ levels, const u8* __restrict__ point, int* __restrict__ distances, int n_rows, int n_blocks)
{
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x)
        distances[i] = squared_distance(levels, point, i, n_rows, n_blocks);
}

extern "C" __global__ void __launch_bounds__(256)
ring_index(const int* __restrict__ distances, const int* __restrict__ radii, int* __restrict__ out, int n_rows, int n_radii)
{
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        int below = 0;
        for (int width = n_radii; width > 0;) {
            const int half = (width + 1) >> 1;
            if (radii[below + half - 1] < distances[i]) below += half;
            width -= half;
        }
        out[i] = below;
    }
}

extern "C" __global__ void __launch_bounds__(256)
nearer_index(const int* __restrict__ distances, const int* __restrict__ limits, int* __restrict__ out, int n_rows, int limit)
{
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x)
        out[i] = distances[i] <= (limits ? limits[i] : limit);
}

static __device__ __forceinline__ u64 nearness(int distance, i64 row) { return ~((u64)distance << 32 | (u64)row); }

// Raises *nearest to the largest of the warps' values. All threads take part.
static __device__ __forceinline__ void raise_nearest(u64 value, u64* __restrict__ nearest)
{
    for (int d = 16; d; d >>= 1) {
        const u64 other = __shfl_down_sync(FULL_WARP, value, d);
        value = other > value ? other : value;
    }
    if (threadIdx.x % 32 == 0 && value != 0) atomicMax(nearest, value);
}

extern "C" __global__ void __launch_bounds__(256)
opposite_rows(const int* __restrict__ distances, const i8* __restrict__ sides, u8* __restrict__ rows, u64* __restrict__ nearest,
              int n_rows, int side)
{
    u64 best = 0;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        const bool is_other = sides[i] != side && distances[i] > 0;
        rows[i] = is_other;
        if (is_other) best = max(best, nearness(distances[i], i));
    }
    raise_nearest(best, nearest);
}

extern "C" __global__ void __launch_bounds__(256)
drop_similar(u8* __restrict__ rows, const int* __restrict__ distances, const int* __restrict__ to_candidate,
             u64* __restrict__ nearest, i64 apart, int n_rows)
{
    u64 best = 0;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        if (rows[i] == 0) continue;
        const i64 to_anchor = distances[i], to_other = to_candidate[i], fourfold = 2 * to_anchor + 2 * to_other - apart;
        if (10 * apart * (to_anchor - to_other) >= 4 * apart * apart + fourfold * fourfold) rows[i] = 0;
        else best = max(best, nearness(distances[i], i));
    }
    raise_nearest(best, nearest);
}

extern "C" __global__ void __launch_bounds__(256)
class_products(const int* __restrict__ quantised, const int* __restrict__ frequency_weight, i64* __restrict__ products, int n_rows,
               int n_classes, int n_channels)
{
    const int n_pairs = n_classes * n_classes;
    const Pairs at(n_pairs);
    for (int first = 0; first < n_pairs; first += at.lanes) {
        const int pair = first + at.channel, k = pair / n_classes, m = pair % n_classes;
        i64 sum = 0;
        if (!at.idle() && pair < n_pairs)
            for (i64 i = at.first_row(); i < n_rows; i += at.step())
                sum += (i64)(quantised[i * n_channels + k] / frequency_weight[i]) * quantised[i * n_channels + m];
        add_to_channel(at, pair, sum, products);
    }
}

extern "C" __global__ void __launch_bounds__(256)
add_similarities(const u8* __restrict__ levels, const u8* __restrict__ points, const int* __restrict__ rounds,
                 const double* __restrict__ coefficients, double* __restrict__ scores, int n_rows, int n_blocks, int n_rounds,
                 int n_classes)
{
    const i64 point_bytes = (i64)n_blocks * BLOCK_FEATURES;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x)
        for (int t = 0; t < n_rounds; ++t) {
            const int first = rounds[3 * t], second = rounds[3 * t + 1];
            int nearest = 0, limit = 0;
            if (first >= 0) nearest = squared_distance(levels, points + first * point_bytes, i, n_rows, n_blocks);
            if (first >= 0) limit = rounds[3 * t + 2];
            if (second >= 0) limit = squared_distance(levels, points + second * point_bytes, i, n_rows, n_blocks);
            const double sign = nearest <= limit ? 1.0 : -1.0;
            for (int k = 0; k < n_classes; ++k) scores[i * n_classes + k] += sign * coefficients[(i64)t * n_classes + k];
        }
}
