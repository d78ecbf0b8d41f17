// Divide the rows of the popped nodes between their children, and say where every row has arrived.
//
// partition_rows   sends each row of the popped node to the left or right end of the same stretch of `sorted`.
//                  grid (any, n_trees), block 256. cursors must be 0.
// partition_nodes  copies the stretch back, fills in the children's records, and clears the smaller child's histogram. grid
//                  (any, n_trees), block 256. Leaves cursors at 0.
// node_of_rows     out[t][row] = the leaf that holds the row, of trees that hold all rows. grid (any, any, n_trees), block 256.
//
// codes    uint8 [n_blocks][n_rows][BLOCK_FEATURES]
// rows     int32 [n_trees][stride], see init_roots.cu; node m owns rows[t][START .. STOP)
// sorted   int32 [n_trees][stride], scratch
// cursors  int32 [n_trees][2]: rows sent left and right so far
// table    int64 [n_trees][max_nodes][N_COLUMNS + 2 * n_channels]
// histogram  int32 [n_trees][n_cells]: the slot of the smaller children; n_cells is 0 if they need none
//
// Exactness: integers. Blocks reserve their places with one atomic each, so the order of rows within a child may differ from run to
// run; nothing depends on it, as all sums over rows are sums of integers.
// Limit, all of MNIST's 60000 rows at 3.35 TB/s: partition_rows 2.4 MB, 0.7 us, a code (one 32-byte sector where rows are scattered) and
// two row numbers each; partition_nodes 7.8 MB, 2.3 us, nearly all of it zeros for the smaller child. Two launches cost more.

#include "sizes.cuh"

extern "C" __global__ void __launch_bounds__(256)
partition_rows(const u8* __restrict__ codes, const int* __restrict__ rows, int* __restrict__ sorted, const i64* __restrict__ table,
               const i64* __restrict__ current, int* __restrict__ cursors, int n_rows, int stride, int max_nodes,
               int n_channels)
{
    __shared__ int n_left, n_right, first_left, first_right;
    const int tree = blockIdx.y, popped = (int)current[tree];
    if (popped < 0) return;
    const i64* node = record(table, tree, popped, max_nodes, n_channels);
    if (node[LEFT] == 0) return;
    const i64 start = node[START], stop = node[STOP];
    const int feature = (int)node[FEATURE], cut = (int)node[CUT];
    const bool missing_left = node[MISSING_LEFT] != 0;
    const u8* column = codes + (i64)(feature / BLOCK_FEATURES) * n_rows * BLOCK_FEATURES + feature % BLOCK_FEATURES;
    rows += (i64)tree * stride;
    sorted += (i64)tree * stride;
    cursors += 2 * tree;

    const int lane = threadIdx.x & 31;
    const u32 below = (1u << lane) - 1;
    for (i64 base = start + (i64)blockIdx.x * blockDim.x; base < stop; base += (i64)gridDim.x * blockDim.x) {
        if (threadIdx.x == 0) n_left = n_right = 0;
        __syncthreads();
        const i64 i = base + threadIdx.x;
        const int row = i < stop ? rows[i] : 0;
        const int code = i < stop ? column[(i64)row * BLOCK_FEATURES] : 0;
        const bool goes_left = i < stop && (code == MISSING_CODE ? missing_left : code <= cut);
        const bool goes_right = i < stop && !goes_left;
        const u32 left = __ballot_sync(FULL_WARP, goes_left), right = __ballot_sync(FULL_WARP, goes_right);
        int left_place = 0, right_place = 0;
        if (lane == 0) {
            left_place = atomicAdd(&n_left, __popc(left));
            right_place = atomicAdd(&n_right, __popc(right));
        }
        left_place = __shfl_sync(FULL_WARP, left_place, 0) + __popc(left & below);
        right_place = __shfl_sync(FULL_WARP, right_place, 0) + __popc(right & below);
        __syncthreads();
        if (threadIdx.x == 0) {
            first_left = atomicAdd(&cursors[0], n_left);
            first_right = atomicAdd(&cursors[1], n_right);
        }
        __syncthreads();
        if (goes_left) sorted[start + first_left + left_place] = row;
        if (goes_right) sorted[stop - 1 - first_right - right_place] = row;
    }
}

extern "C" __global__ void __launch_bounds__(256)
partition_nodes(int* __restrict__ rows, const int* __restrict__ sorted, i64* __restrict__ table, const i64* __restrict__ current,
                int* __restrict__ cursors, int* __restrict__ histogram, const PartitionSizes sizes)
{
    const int stride = sizes.stride, max_nodes = sizes.max_nodes, n_classes = sizes.n_classes, n_channels = sizes.n_channels;
    const int tree = blockIdx.y, popped = (int)current[tree];
    if (popped < 0) return;
    const i64* node = record(table, tree, popped, max_nodes, n_channels);
    const int left = (int)node[LEFT];
    if (left == 0) return;
    const i64 start = node[START], stop = node[STOP];
    for (i64 i = start + (i64)blockIdx.x * blockDim.x + threadIdx.x; i < stop; i += (i64)gridDim.x * blockDim.x)
        rows[(i64)tree * stride + i] = sorted[(i64)tree * stride + i];
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < sizes.n_cells; i += (i64)gridDim.x * blockDim.x)
        histogram[tree * sizes.n_cells + i] = 0;

    if (blockIdx.x != 0 || threadIdx.x >= 32) return;
    // The first warp fills in both children, a lane a channel.
    const int lane = threadIdx.x;
    const i64 middle = start + cursors[2 * tree];
    i64 *l = record(table, tree, left, max_nodes, n_channels), *r = record(table, tree, left + 1, max_nodes, n_channels);
    const i64 *totals = totals_of(node), *edges = edges_of(node, n_channels);
    i64 left_baseline = 0, right_baseline = 0;
    for (int c = lane; c < n_channels; c += 32) {
        const i64 total = totals[c], edge = edges[c];
        const i64 left_total = (total - edge) / 2, right_total = (total + edge) / 2;  // exact: the edge is right minus left
        totals_of(l)[c] = left_total;
        totals_of(r)[c] = right_total;
        const bool votes_for_right = edge > 0;  // eq. 13: v = sign(edge), and 0 votes against
        if (c < n_classes) {
            left_baseline += votes_for_right ? -left_total : left_total;
            right_baseline += votes_for_right ? right_total : -right_total;
        }
    }
    for (int d = 16; d; d >>= 1) {
        left_baseline += __shfl_down_sync(FULL_WARP, left_baseline, d);
        right_baseline += __shfl_down_sync(FULL_WARP, right_baseline, d);
    }
    __syncwarp();  // all lanes have read the cursor (shuffles do not order memory)
    if (lane != 0) return;
    const bool left_is_smaller = middle - start <= stop - middle;
    l[START] = start;
    l[STOP] = r[START] = middle;
    r[STOP] = stop;
    l[SLOT] = left_is_smaller ? sizes.slot : node[SLOT];  // the larger child inherits its parent's histogram
    r[SLOT] = left_is_smaller ? node[SLOT] : sizes.slot;
    l[BASELINE] = left_baseline;
    r[BASELINE] = right_baseline;
    cursors[2 * tree] = cursors[2 * tree + 1] = 0;
}

extern "C" __global__ void __launch_bounds__(256)
node_of_rows(const int* __restrict__ rows, const i64* __restrict__ table, int* __restrict__ out, int n_rows, int max_nodes,
             int n_channels)
{
    const int tree = blockIdx.z;
    for (int node = blockIdx.y; node < max_nodes; node += gridDim.y) {
        const i64* leaf = record(table, tree, node, max_nodes, n_channels);
        if (leaf[LEFT] != 0) continue;
        const i64 stop = leaf[STOP];
        for (i64 i = leaf[START] + (i64)blockIdx.x * blockDim.x + threadIdx.x; i < stop; i += (i64)gridDim.x * blockDim.x)
            out[(i64)tree * n_rows + rows[(i64)tree * n_rows + i]] = node;
    }
}
