// Start of a growth: every tree of the batch becomes a root.
//
// init_roots            rows[t][i] = started[i], or i, over the stretch of tree t; all records empty, node 0 owns the stretch; nothing is
//                  popped yet; the roots' histograms are cleared. grid (any, n_trees), block 256.
// root_totals      channel totals of the roots: sums of quantised over their rows; and, if sum_abs is not null, sum_abs[t][c] += the sum of |quantised|, for
//                  the criterion Rebel. grid (any, n_trees), block 256.
// choose_features  chosen_bins[f] = bins[f], but 0 bins of features that are not chosen: they cannot be split. grid (any), block 256.
//
// started    int32 [n_started], row numbers; null: all rows in order
// bounds     int64 [n_trees + 1]: the stretch of tree t is bounds[t] .. bounds[t + 1] - 1; null: 0 .. n_started - 1
// rows       int32 [n_trees][stride]; or one array, where the trees have stretches of it
// stride     from a tree's rows to the next tree's: n_rows; or 0, where the trees have stretches of one array
// quantised_stride   from a tree's rows of quantised to the next tree's: n_rows; or 0, where the trees have the same statistics
// table      int64 [n_trees][max_nodes][N_COLUMNS + 2 * n_channels], see common.cuh
// current    int64 [n_trees]
// histogram  int32 [n_trees][n_cells]
// quantised          int32 [n_trees, or 1 if quantised_stride is 0][n_rows][n_channels]
// sum_abs       int64 [n_trees][n_classes], or null
// bins, chosen_bins, chosen  int32 [n_features padded][2], the same, uint8 [n_features padded]
//
// Exactness: sums of integers. Limit: quantised is read once, MNIST (60000 x 10) 2.4 MB = 0.7 us at 3.35 TB/s; a launch costs more.

#include "rows.cuh"
#include "sizes.cuh"

extern "C" __global__ void __launch_bounds__(256)
init_roots(int* __restrict__ rows, i64* __restrict__ table, i64* __restrict__ current, const int* __restrict__ started,
           const i64* __restrict__ bounds, int* __restrict__ histogram, const RootSizes sizes)
{
    const int tree = blockIdx.y, stride = sizes.stride, max_nodes = sizes.max_nodes, n_channels = sizes.n_channels;
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
    const i64 start = bounds ? bounds[tree] : 0, stop = bounds ? bounds[tree + 1] : sizes.n_started;
    for (i64 i = start + first; i < stop; i += step) rows[(i64)tree * stride + i] = started ? started[i] : (int)i;

    const int width = N_COLUMNS + 2 * n_channels;
    for (i64 i = first; i < (i64)max_nodes * width; i += step) {
        const int node = (int)(i / width), column = (int)(i % width);
        i64 value = 0;
        if (column == FEATURE) value = -1;
        if (column == KEY) value = CLOSED;
        if (column == START && node == 0) value = start;
        if (column == STOP && node == 0) value = stop;
        table[(i64)tree * max_nodes * width + i] = value;
    }
    for (i64 i = first; i < sizes.n_cells; i += step) histogram[tree * sizes.n_cells + i] = 0;
    if (first == 0) current[tree] = -1;
}

extern "C" __global__ void __launch_bounds__(256)
root_totals(const int* __restrict__ rows, const int* __restrict__ quantised, i64* __restrict__ table, i64* __restrict__ sum_abs, int stride,
            int quantised_stride, int max_nodes, int n_classes, int n_channels)
{
    const int tree = blockIdx.y;
    const Pairs at(n_channels);
    i64* root = record(table, tree, 0, max_nodes, n_channels);
    const i64 start = root[START], stop = root[STOP];
    rows += (i64)tree * stride;
    quantised += (i64)tree * quantised_stride * n_channels;
    for (int first = 0; first < n_channels; first += at.lanes) {
        const int c = first + at.channel;
        i64 sum = 0, weight = 0;
        if (c < n_channels && !at.idle())
            for (i64 i = start + at.first_row(); i < stop; i += at.step()) {
                const int value = quantised[(i64)rows[i] * n_channels + c];
                sum += value;
                weight += value < 0 ? -value : value;
            }
        add_to_channel(at, c, sum, totals_of(root));
        if (sum_abs) add_to_channel(at, c, c < n_classes ? weight : 0, sum_abs + (i64)tree * n_classes);
    }
}

extern "C" __global__ void __launch_bounds__(256)
choose_features(const int* __restrict__ bins, const u8* __restrict__ chosen, int* __restrict__ chosen_bins, int n_features)
{
    for (i64 f = (i64)blockIdx.x * blockDim.x + threadIdx.x; f < n_features; f += (i64)gridDim.x * blockDim.x) {
        const Bins own = bins_of(bins, (int)f);
        chosen_bins[2 * f] = chosen[f] ? own.n : 0;
        chosen_bins[2 * f + 1] = own.offset;
    }
}
