// Rows with class probabilities, for the boosters of the multinomial log-loss (Li 2009, 2010).
//
// largest_miss        *largest is raised to weight_scale[i] * c[i][y], the largest weighted 1 - p of a row's own class. grid (any), block 256.
// softmax_sums        sums[0][k] += frequency_weight[i] * rint(2**s * weight_scale[i] * |g[i][k]|), sums[1][k] the same of h[i][k], where s is
//                     first_shift(*largest), or `shift` if largest is null. grid (any), block up to 256.
// softmax_statistics  quantised[t][i] = g, the weight if there are weights, h, and the count, of the class or pair of classes of tree t, and the
//                     sums of quantised and |quantised|. grid (any, n_trees), block 256.
// softmax_update        p[i][class] and p[i][base class] *= their multipliers, tree after tree; then p[i] /= sum of p[i], and no less than
//                     `lowest`. grid (any), block 256.
// softmax_losses      losses[j][y] += frequency_weight[i] * rint(2**shift * weight_scale[i] * -log2(p)) for the row's own class y, with the probability
//                     after the trees of candidate j. grid (any, n_candidates), block 256, dynamic shared memory 8 * n_classes bytes.
//
// p        float64 [n_rows][n_classes]    target  int32 [n_rows]       frequency_weight, weights, counts  int32 [n_rows]
// weight_scale   float64 [n_rows]               largest the bits of a float64, raised from 0
// pairs    int32 [n_trees][2]: base class, or -1, and class
// quantised        int32 [n_trees][n_rows][3, or 4 with weights]               sums  int64 [channels of quantised, then one fewer of |quantised|], added to
// leaf_indices   int32 [n_trees][n_rows]        multipliers float64 [n_trees][n_leaves][2]: of the class, and of its base class
// trees    int32 [n_trees of the update]
// candidates  int32: j consists of the trees candidates[candidates[j] .. candidates[j + 1]), which stand behind the bounds; null: one
//             candidate without trees, and then the leaves, the pairs and the multipliers may be null, too
// losses   int64 [n_candidates][n_classes], added to
//
// c is 1 - p, or the sum of the other probabilities where p is above 1/2; g is c for the row's class and -p for others; h = p c.
//
// Exactness: float64, classes in order, one rounding an operation; then integers. A thread takes a row.
// Limit, Covertype (290,000 x 7) at 3.35 TB/s: softmax_statistics reads 16 MB for each tree, from the second-level cache, and writes
// 3.5 MB for each tree; the others read 16 MB, 5 us.

#include "logarithm.cuh"
#include "rows.cuh"
#include "sizes.cuh"

// 1 - p[k] without cancellation.
static __device__ __forceinline__ double complement(const double* p, int k, int n_classes)
{
    if (p[k] <= 0.5) return 1.0 - p[k];
    double others = 0.0;
    for (int j = 0; j < n_classes; ++j)
        if (j != k) others += p[j];
    return others;
}

extern "C" __global__ void __launch_bounds__(256)
largest_miss(const double* __restrict__ p, const int* __restrict__ target, const double* __restrict__ weight_scale,
             u64* __restrict__ largest, int n_rows, int n_classes)
{
    double value = 0.0;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        const double miss = weight_scale[i] * complement(p + i * n_classes, target[i], n_classes);
        value = miss > value ? miss : value;
    }
    raise_maximum(value, largest);
}

extern "C" __global__ void __launch_bounds__(256)
softmax_sums(const double* __restrict__ p, const int* __restrict__ target, const int* __restrict__ frequency_weight,
             const double* __restrict__ weight_scale, const u64* __restrict__ largest, i64* __restrict__ sums, int n_rows, int n_classes,
             int shift)
{
    const double scale = power_of_two(largest ? first_shift(*largest) : shift);
    const Pairs at(n_classes);
    for (int first = 0; first < n_classes; first += at.lanes) {
        const int k = first + at.channel;
        i64 gradient = 0, curvature = 0;
        if (!at.idle() && k < n_classes)
            for (i64 i = at.first_row(); i < n_rows; i += at.step()) {
                const double* own = p + i * n_classes;
                const double missing = complement(own, k, n_classes), g = k == target[i] ? missing : own[k];
                gradient += frequency_weight[i] * __double2ll_rn(weight_scale[i] * g * scale);
                curvature += frequency_weight[i] * __double2ll_rn(weight_scale[i] * (own[k] * missing) * scale);
            }
        add_to_channel(at, k, gradient, sums);
        add_to_channel(at, k, curvature, sums + n_classes);
    }
}

extern "C" __global__ void __launch_bounds__(256)
softmax_statistics(const double* __restrict__ p, const int* __restrict__ target, const int* __restrict__ frequency_weight,
                   const double* __restrict__ weight_scale, const int* __restrict__ pairs, const int* __restrict__ weights,
                   const int* __restrict__ counts, int* __restrict__ quantised, i64* __restrict__ sums, const SoftmaxSizes sizes)
{
    const int tree = blockIdx.y, base = pairs[2 * tree], k = pairs[2 * tree + 1];
    const int n_channels = weights ? 4 : 3, at_h = n_channels - 2, at_count = n_channels - 1;
    const int n_rows = sizes.n_rows, n_classes = sizes.n_classes;
    const double gradient_scale = power_of_two(sizes.gradient_shift), curvature_scale = power_of_two(sizes.curvature_shift);
    i64* sum_abs = sums + n_channels;
    quantised += (i64)tree * n_rows * n_channels;
    i64 sum_g = 0, abs_g = 0, sum_h = 0, sum_weight = 0, sum_count = 0;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        const double *own = p + i * n_classes, f = weight_scale[i];
        const double missing = complement(own, k, n_classes);
        i64 g = __double2ll_rn(f * (k == target[i] ? missing : -own[k]) * gradient_scale);
        double h = own[k] * missing;
        if (base >= 0) {
            const double missing_base = complement(own, base, n_classes);
            g -= __double2ll_rn(f * (base == target[i] ? missing_base : -own[base]) * gradient_scale);
            h = (own[base] * missing_base + h) + 2.0 * (own[base] * own[k]);
        }
        g *= frequency_weight[i];
        const i64 curvature = frequency_weight[i] * __double2ll_rn(f * h * curvature_scale);
        int* row = quantised + i * n_channels;
        row[0] = (int)g;
        if (weights) row[1] = weights[i];
        row[at_h] = (int)curvature;
        row[at_count] = counts[i];
        sum_g += g;
        abs_g += g < 0 ? -g : g;
        sum_h += curvature;
        sum_weight += weights ? weights[i] : 0;
        sum_count += counts[i];
    }
    const Pairs all(1);
    add_to_channel(all, 0, sum_g, sums);
    add_to_channel(all, 0, abs_g, sum_abs);
    add_to_channel(all, at_h, sum_h, sums);
    add_to_channel(all, at_h, sum_h, sum_abs);
    add_to_channel(all, at_count, sum_count, sums);
    if (!weights) return;
    add_to_channel(all, 1, sum_weight, sums);
    add_to_channel(all, 1, sum_weight, sum_abs);
}

extern "C" __global__ void __launch_bounds__(256)
softmax_update(double* __restrict__ p, const int* __restrict__ leaf_indices, const int* __restrict__ pairs, const double* __restrict__ multipliers,
               const int* __restrict__ trees, int n_rows, int n_classes, int n_trees, int n_leaves, double lowest)
{
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        double* own = p + i * n_classes;
        for (int j = 0; j < n_trees; ++j) {
            const int t = trees[j], base = pairs[2 * t];
            const double* multiplier = multipliers + ((i64)t * n_leaves + leaf_indices[(i64)t * n_rows + i]) * 2;
            own[pairs[2 * t + 1]] *= multiplier[0];
            if (base >= 0) own[base] *= multiplier[1];
        }
        double total = 0.0;
        for (int k = 0; k < n_classes; ++k) total += own[k];
        for (int k = 0; k < n_classes; ++k) {
            const double share = own[k] / total;
            own[k] = share > lowest ? share : lowest;
        }
    }
}

// Four blocks a multiprocessor: left to itself the compiler aims at more and spills on some architectures.
extern "C" __global__ void __launch_bounds__(256, 4)
softmax_losses(const double* __restrict__ p, const int* __restrict__ target, const int* __restrict__ frequency_weight,
               const double* __restrict__ weight_scale, const int* __restrict__ leaf_indices, const int* __restrict__ pairs,
               const double* __restrict__ multipliers, const int* __restrict__ candidates, i64* __restrict__ losses,
               const LossSizes sizes)
{
    extern __shared__ u32 of_class[];  // see add_to_halves
    const int n_rows = sizes.n_rows, n_classes = sizes.n_classes;
    const int candidate = blockIdx.y;
    const int first = candidates ? candidates[candidate] : 0, stop = candidates ? candidates[candidate + 1] : 0;
    const double scale = power_of_two(sizes.shift), lowest = sizes.lowest;
    for (int k = threadIdx.x; k < 2 * n_classes; k += blockDim.x) of_class[k] = 0;
    __syncthreads();
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        double total = 0.0, of_target = 0.0;
        for (int k = 0; k < n_classes; ++k) {
            double own = p[i * n_classes + k];
            for (int j = first; j < stop; ++j) {
                const int t = candidates[j], is_base = pairs[2 * t] == k;
                if (is_base || pairs[2 * t + 1] == k)
                    own *= multipliers[((i64)t * sizes.n_leaves + leaf_indices[(i64)t * n_rows + i]) * 2 + is_base];
            }
            total += own;
            if (k == target[i]) of_target = own;
        }
        const double share = of_target / total;
        const double loss = weight_scale[i] * minus_log2(share > lowest ? share : lowest, sizes.coefficients);
        add_to_halves(of_class, n_classes, target[i], (u64)(frequency_weight[i] * __double2ll_rn(loss * scale)));
    }
    __syncthreads();
    for (int k = threadIdx.x; k < n_classes; k += blockDim.x) {
        const u64 loss = sum_of_halves(of_class, n_classes, k);
        if (loss) atomicAdd((u64*)&losses[(i64)candidate * n_classes + k], loss);
    }
}
