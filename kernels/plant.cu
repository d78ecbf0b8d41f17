// Start of a growth: every tree of the batch becomes a root that holds all rows.
//
// plant        rows[t][i] = i; all records empty, node 0 owns [0, n_rows); nothing is popped yet.
//              grid (any, n_trees), block 256.
// root_totals  channel totals of the roots: sums of q over the rows. grid (any, n_trees), block 256.
// root_mass    mass[t][c] += the sum of |q| over the root's rows, for the criterion Rebel. grid (any, n_trees), block 256.
//
// rows       int32 [n_trees][n_rows]
// table      int64 [n_trees][max_nodes][N_COLUMNS + 2 * n_channels], see common.cuh
// current    int64 [n_trees]
// q          int32 [n_trees][n_rows][n_channels]
// mass       int64 [n_trees][n_classes]
//
// Exactness: sums of integers. Limit: q is read once, MNIST (60000 x 10) 2.4 MB = 0.7 us at 3.35 TB/s; a launch costs more.

#include "rows.cuh"

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
    const int tree = blockIdx.y;
    const Pairs at(n_channels);
    i64* totals = totals_of(record(table, tree, 0, max_nodes, n_channels));
    q += (i64)tree * n_rows * n_channels;
    for (int first = 0; first < n_channels; first += at.lanes) {
        const int c = first + at.channel;
        i64 sum = 0;
        if (c < n_channels && !at.idle())
            for (i64 i = at.first_row(); i < n_rows; i += at.step()) sum += q[i * n_channels + c];
        add_to_channel(at, c, sum, totals);
    }
}

extern "C" __global__ void __launch_bounds__(256)
root_mass(const int* __restrict__ rows, const int* __restrict__ q, const i64* __restrict__ table, i64* __restrict__ mass, int n_rows,
          int max_nodes, int n_classes, int n_channels)
{
    const int tree = blockIdx.y;
    const i64* root = record(table, tree, 0, max_nodes, n_channels);
    const i64 stop = root[STOP];
    const Pairs at(n_classes);
    rows += (i64)tree * n_rows;
    q += (i64)tree * n_rows * n_channels;
    for (int first = 0; first < n_classes; first += at.lanes) {
        const int c = first + at.channel;
        i64 sum = 0;
        if (c < n_classes && !at.idle())
            for (i64 i = root[START] + at.first_row(); i < stop; i += at.step()) {
                const int value = q[(i64)rows[i] * n_channels + c];
                sum += value < 0 ? -value : value;
            }
        add_to_channel(at, c, sum, mass + (i64)tree * n_classes);
    }
}
