// A small kernel that has all that can go wrong, to try the planting of errors: a histogram, and its largest sum.
//
// grid (any), block up to 128, dynamic shared memory 4 * n_bins bytes. Sums and ticket must be 0.
//
// codes, values  uint8 [n_rows], int32 [n_rows]
// sums           int64 [n_bins]
// best           int32 [1]: the bin with the largest sum, the lowest of equal ones

extern "C" __global__ void __launch_bounds__(128)
largest_sum(const unsigned char* codes, const int* values, long long* sums, int* best, unsigned* ticket, int n_rows, int n_bins)
{
    extern __shared__ int cells[];
    __shared__ bool last;
    for (int bin = threadIdx.x; bin < n_bins; bin += blockDim.x) cells[bin] = 0;
    __syncthreads();  // 1
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n_rows; row += gridDim.x * blockDim.x)
        atomicAdd(&cells[codes[row]], values[row]);
    __syncthreads();  // 2
    for (int bin = threadIdx.x; bin < n_bins; bin += blockDim.x)
        if (cells[bin] != 0) atomicAdd((unsigned long long*)&sums[bin], (unsigned long long)(long long)cells[bin]);
    __threadfence();
    __syncthreads();  // 3
    if (threadIdx.x == 0) last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __syncthreads();  // 4
    if (!last || threadIdx.x >= 32) return;

    int candidate = -1;
    long long largest = 0;
    for (int bin = threadIdx.x; bin < n_bins; bin += 32)
        if (candidate < 0 || sums[bin] > largest) largest = sums[bin], candidate = bin;
    for (int d = 16; d; d >>= 1) {
        const long long other_sum = __shfl_down_sync(0xffffffffu, largest, d);
        const int other = __shfl_down_sync(0xffffffffu, candidate, d);
        if (other >= 0 && (candidate < 0 || other_sum > largest || (other_sum == largest && other < candidate)))
            largest = other_sum, candidate = other;
    }
    if (threadIdx.x == 0) *best = candidate;
}
