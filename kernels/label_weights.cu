// What rows weigh for each wrong label, for boosting by filtering (Bradley 2008).
//
// weigh_labels  out[i] = the weights of the labels, 0 for the row's own, then their sum, the sum of the losses, and whether the first
//               largest score is not that of the row's class. grid (any), block 256.
//
// scores  float64 [rows][n_classes], of which n_rows from first_row on are weighed    target  int32 [n_rows]
// out     int64 [n_rows][n_classes + 3]
//
// Exactness: float64, one rounding an operation; weights in units of 2**-32, losses in units of 2**-20 bits. A thread takes a row.
// Limit, 2 classes at 3.35 TB/s: 16 bytes read and 40 written a row, 60 G rows/s; it is bound by some 200 float64 operations a label.

#include "exponential.cuh"
#include "logarithm.cuh"

extern "C" __global__ void __launch_bounds__(256)
weigh_labels(const double* __restrict__ scores, const int* __restrict__ target, i64* __restrict__ out, const LabelSizes sizes)
{
    const int n_classes = sizes.n_classes;
    const double unit = power_of_two(32), loss_unit = power_of_two(20);
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < sizes.n_rows; i += (i64)gridDim.x * blockDim.x) {
        const double* row = scores + (sizes.first_row + i) * n_classes;
        i64* weights = out + i * (n_classes + 3);
        const int y = target[i];
        const double own = row[y];
        i64 total = 0, loss = 0;
        int n_above = 0;
        for (int k = 0; k < n_classes; ++k) {
            if (k == y) {
                weights[k] = 0;
                continue;
            }
            const double margin = own - row[k];
            n_above += margin < 0.0 || (margin == 0.0 && k < y);
            const double smaller = exp_of_negative(margin < 0.0 ? margin : -margin, sizes.exp_coefficients);
            const double numerator = margin > 0.0 ? smaller : 1.0;
            const i64 logistic = __double2ll_rn(numerator / (1.0 + smaller) * unit);
            const i64 q = sizes.madaboost ? __double2ll_rn(numerator * unit) : logistic;
            const double right = unit - (double)logistic;
            loss += __double2ll_rn(minus_log2((right > 0.5 ? right : 0.5) / unit, sizes.coefficients) * loss_unit);
            weights[k] = q;
            total += q;
        }
        weights[n_classes] = total;
        weights[n_classes + 1] = loss;
        weights[n_classes + 2] = n_above > 0;
    }
}
