// Start of a growth: every tree of the batch becomes a root that holds all rows.
//
// plant        rows[t][i] = i; all records empty, node 0 owns [0, n_rows); nothing is popped yet.
//              grid (any, n_trees), block 256.
// root_totals  channel totals of the roots: sums of q over the rows. grid (any, n_trees), block 256, dynamic shared memory
//              8 * n_channels bytes.
//
// rows       int32 [n_trees][n_rows]
// table      int64 [n_trees][max_nodes][N_COLUMNS + 2 * n_channels], see common.cuh
// current    int64 [n_trees]
// q          int32 [n_trees][n_rows][n_channels]
//
// Exactness: sums of integers. Limit: q is read once, MNIST (60000 x 10) 2.4 MB = 0.7 us at 3.35 TB/s; a launch costs more.

#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
plant(int* __restrict__ rows, i64* __restrict__ table, i64* __restrict__ current, int n_rows, int max_nodes, int n_channels)
{
    const int tree = blockIdx.y;
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
    for (i64 i = first; i < n_rows; i += step) rows[(i64)tree * n_rows + i] = (int)i;

    const int width = N_COLUMNS + 2 * n_channels;
    for (i64 i = first; i < (i64)max_nodes * width; i += step) {
        const int node = (int)(i / width), column = (int)(i % width);
        i64 value = 0;
        if (column == FEATURE) value = -1;
        if (column == KEY) value = CLOSED;
        if (column == STOP && node == 0) value = n_rows;
        table[(i64)tree * max_nodes * width + i] = value;
    }
    if (first == 0) current[tree] = -1;
}

extern "C" __global__ void __launch_bounds__(256)
root_totals(const int* __restrict__ q, i64* __restrict__ table, int n_rows, int max_nodes, int n_channels)
{
    extern __shared__ u64 sums[];
    const int tree = blockIdx.y;
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x) sums[c] = 0;
    __syncthreads();

    // A thread keeps to one channel, so that it can add in a register. Channels beyond the block take turns.
    const int lanes = min(n_channels, (int)blockDim.x), rows_at_once = blockDim.x / lanes;
    const int row = threadIdx.x / lanes, channel = threadIdx.x % lanes;
    for (int c = channel; c < n_channels && row < rows_at_once; c += lanes) {
        i64 sum = 0;
        for (i64 i = (i64)blockIdx.x * rows_at_once + row; i < n_rows; i += (i64)gridDim.x * rows_at_once)
            sum += q[((i64)tree * n_rows + i) * n_channels + c];
        if (sum != 0) atomicAdd(&sums[c], (u64)sum);
    }
    __syncthreads();
    i64* totals = totals_of(record(table, tree, 0, max_nodes, n_channels));
    for (int c = threadIdx.x; c < n_channels; c += blockDim.x)
        if (sums[c] != 0) atomicAdd((u64*)&totals[c], sums[c]);
}
