// Best-first: pop the node with the largest positive key in every tree (figure 2 of Kegl 2014).
//
// grid (n_trees), block 32. Ties go to the lowest node. A popped node that has a cut gets the children 2 * step + 1 and the next.
// A tree without a positive key keeps current = -1, and the kernels that follow leave it alone: the host need not be asked.
//
// table    int64 [n_trees][max_nodes][N_COLUMNS + 2 * n_channels]
// current  int64 [n_trees]
//
// Limit: a launch; a tree has some tens of nodes.

#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
pop_best_leaf(i64* __restrict__ table, i64* __restrict__ current, int max_nodes, int n_channels, int step)
{
    const int tree = blockIdx.x, lane = threadIdx.x;
    i64 best_key = 0;
    int best = -1;
    const int n_nodes = 2 * step + 1;  // later nodes have not been made
    for (int node = lane; node < n_nodes; node += 32) {
        const i64 key = record(table, tree, node, max_nodes, n_channels)[KEY];
        if (key > best_key) {
            best_key = key;
            best = node;
        }
    }
    for (int d = 16; d; d >>= 1) {
        const i64 key = __shfl_down_sync(FULL_WARP, best_key, d);
        const int node = __shfl_down_sync(FULL_WARP, best, d);
        if (key > best_key || (key == best_key && node >= 0 && node < best)) {
            best_key = key;
            best = node;
        }
    }
    __syncwarp();  // all lanes have read the keys (shuffles do not order memory)
    if (lane != 0) return;
    current[tree] = best;
    if (best < 0) return;
    i64* popped = record(table, tree, best, max_nodes, n_channels);
    popped[GAIN] = best_key;
    popped[KEY] = CLOSED;
    if (popped[FEATURE] >= 0) popped[LEFT] = 2 * step + 1;
}
