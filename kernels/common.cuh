// What all kernels share: integer names, the node table, and how a kernel finds the node that it works on.
//
// Plain CUDA C++17 for NVRTC: no other headers, no library. Every file is compiled with -fmad=false.

#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define FULL_WARP 0xffffffffu

// Columns of a node's record, as in gpuboost/backends/frontier.py. Behind them stand the node's channel totals and its best
// classifier's channel edges: a record has N_COLUMNS + 2 * n_channels int64.
enum {
    START,
    STOP,
    FEATURE,
    CUT,
    MISSING_LEFT,
    LEFT,
    BASELINE,
    KEY,
    GAIN,
    SLOT,
    N_COLUMNS
};
enum {
    CLOSED = -1,
    MISSING_CODE = 0
};

// Features are stored by blocks of BLOCK_FEATURES: codes[block][row][BLOCK_FEATURES], four of them in a 32-bit word.
enum {
    BLOCK_FEATURES = 16,
    BLOCK_WORDS = BLOCK_FEATURES / 4
};

// The bins of a feature: how many, 0 if it cannot be split, and how many the features before it have.
struct Bins {
    int n, offset;
};

__device__ __forceinline__ Bins bins_of(const int* __restrict__ bins, int feature)
{
    const int2 pair = ((const int2*)bins)[feature];
    return {pair.x, pair.y};
}

// Which of the nodes of an expansion a kernel works on; see node_of.
enum {
    ROOT = 0,
    SMALLER = 1,
    LARGER = 2,
    LEFT_CHILD = 3,
    RIGHT_CHILD = 4
};

__device__ __forceinline__ i64* record(i64* table, int tree, int node, int max_nodes, int n_channels)
{
    return table + ((i64)tree * max_nodes + node) * (N_COLUMNS + 2 * n_channels);
}

__device__ __forceinline__ const i64* record(const i64* table, int tree, int node, int max_nodes, int n_channels)
{
    return table + ((i64)tree * max_nodes + node) * (N_COLUMNS + 2 * n_channels);
}

__device__ __forceinline__ i64* totals_of(i64* node) { return node + N_COLUMNS; }
__device__ __forceinline__ const i64* totals_of(const i64* node) { return node + N_COLUMNS; }
__device__ __forceinline__ i64* edges_of(i64* node, int n_channels) { return node + N_COLUMNS + n_channels; }
__device__ __forceinline__ const i64* edges_of(const i64* node, int n_channels) { return node + N_COLUMNS + n_channels; }

// The node of `tree` that `member` stands for: the root, or a child of the node that was popped last; -1 if it was not cut.
__device__ __forceinline__ int node_of(const i64* table, const i64* current, int tree, int member, int max_nodes, int n_channels)
{
    if (member == ROOT) return 0;
    const int popped = (int)current[tree];
    if (popped < 0) return -1;
    const int left = (int)record(table, tree, popped, max_nodes, n_channels)[LEFT];
    if (left == 0) return -1;
    if (member == LEFT_CHILD) return left;
    if (member == RIGHT_CHILD) return left + 1;
    const i64* l = record(table, tree, left, max_nodes, n_channels);
    const i64* r = record(table, tree, left + 1, max_nodes, n_channels);
    const bool left_is_smaller = l[STOP] - l[START] <= r[STOP] - r[START];
    return left_is_smaller == (member == SMALLER) ? left : left + 1;
}
