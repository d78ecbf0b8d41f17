// Walk trees, and add what their leaves say.
//
// apply       leaf[i] = the leaf of one tree that row i arrives in. grid (any), block 256.
// set_bit     sets bit `bit` of cell[i] where row i goes left at a cut, clears it elsewhere; feature -1: no row goes left.
//             grid (any), block 256.
// predict     scores[i][k] += the values of all trees, tree by tree. grid (any), block up to 256.
// predict_until  as predict, until a row leaves: at checkpoint c, after stops[c] trees, if its largest score exceeds every other one by
//             more than margins[c][leader][other]. left_at[i] = that checkpoint. grid (any), block up to 256.
// add_trees   scores[i][k] += values[first[t] + leaf_indices[t][i]][k], tree after tree. grid (any), block up to 256.
//
// nodes    int32 [n_nodes][4]: feature, cut + 256 * missing_left, left, right: one 16-byte load a step. A child c >= 0 is a node of this
//          array, c < 0 the leaf ~c, in `predict` a row of values
// stops    int32 [n_checkpoints], ascending    left_at  int32 [n_rows]: negative for rows that have not left, before and after
// margins  float64, by the strides of ExitSizes
// roots    int32 [n_trees]: where a walk starts, of the same kind
// codes    uint8 [n_blocks][n_rows][BLOCK_FEATURES]
// values   float64 [n_leaves][n_classes]       scores  float64 [n_rows][n_classes]
// leaf, cell  int32 [n_rows]
// leaf_indices  int64 [n_trees]: the addresses of int32 [n_rows]     first  int32 [n_trees]: where a tree's values begin
//
// predict works on tiles of rows_per_tile rows by trees_per_batch trees, at most TILE pairs and 2**31 scores. Phase 1: a thread walks pairs of (row,
// tree), 32 neighbouring rows of one tree a warp, and leaves the leaf in shared memory. Phase 2: a thread is a (row, class) and adds the
// batch's values in the order of the trees.
//
// predict_until works on tiles of rows_per_tile rows, up to MAX_TILE_ROWS, of which those that have not left stand in a list in shared
// memory: a batch has as many trees as TILE / (rows in the list). So a block works on full warps as long as it has 32 pairs, and ends
// with its last row. Whether a row leaves is one thread's to say.
//
// Exactness: float64, one rounding for every tree, in the order of the trees whatever the tiles are; the walk compares integers.
// Limit: the first-level cache. MNIST with 1000 trees of 20 leaves: 60 M walks of about 5 steps, each a node and a code from some 10
// wavefronts a warp: 60 M * 5 / 32 * 10 / 132 SMs / 1.7 GHz = 0.42 ms; 600 M values from 4 wavefronts a warp, 0.33 ms. The codes
// (47 MB) are read once, 14 us at 3.35 TB/s. predict_until: the share of it that the trees in use are, and an add, a subtraction and two
// loads for each (row, checkpoint, class), 1 in 20 of the adds where trees have 10 classes and checkpoints come every ten.

#include "rows.cuh"
#include "sizes.cuh"

enum {
    TILE = 2048,
    MAX_TILE_ROWS = 32
};

static __device__ __forceinline__ int
leaf_of(const int* __restrict__ nodes, const u8* __restrict__ codes, i64 n_rows, i64 row, int node)
{
    while (node >= 0) {
        const int4 n = ((const int4*)nodes)[node];
        const int code = codes[(n.x / BLOCK_FEATURES * n_rows + row) * BLOCK_FEATURES + n.x % BLOCK_FEATURES];
        const bool goes_left = code == MISSING_CODE ? n.y >= 256 : code <= (n.y & 255);
        node = goes_left ? n.z : n.w;
    }
    return ~node;
}

extern "C" __global__ void __launch_bounds__(256)
apply(const int* __restrict__ nodes, const u8* __restrict__ codes, int* __restrict__ leaf, int n_rows, int root)
{
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x)
        leaf[i] = leaf_of(nodes, codes, n_rows, i, root);
}

extern "C" __global__ void __launch_bounds__(256)
set_bit(const u8* __restrict__ codes, int* __restrict__ cell, int n_rows, int feature, int cut, int missing_left, int bit)
{
    const u8* column = codes + (i64)(feature / BLOCK_FEATURES) * n_rows * BLOCK_FEATURES + feature % BLOCK_FEATURES;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows; i += (i64)gridDim.x * blockDim.x) {
        const int code = feature < 0 ? 256 : column[i * BLOCK_FEATURES], others = cell[i] & ~(1 << bit);
        const bool goes_left = code == MISSING_CODE ? missing_left != 0 : code <= cut;
        cell[i] = goes_left ? others | 1 << bit : others;
    }
}

extern "C" __global__ void __launch_bounds__(256)
predict(const int* __restrict__ nodes, const int* __restrict__ roots, const double* __restrict__ values,
        const u8* __restrict__ codes, double* __restrict__ scores, int n_rows, int n_trees, int n_classes, int rows_per_tile,
        int trees_per_batch)
{
    __shared__ int leaves[TILE];
    for (i64 base = (i64)blockIdx.x * rows_per_tile; base < n_rows; base += (i64)gridDim.x * rows_per_tile) {
        const int rows = (int)min((i64)rows_per_tile, n_rows - base);
        double* tile = scores + base * n_classes;
        for (int first = 0; first < n_trees; first += trees_per_batch) {
            const int trees = min(trees_per_batch, n_trees - first);
            for (int p = threadIdx.x; p < rows * trees; p += blockDim.x)
                leaves[p] = leaf_of(nodes, codes, n_rows, base + p % rows, roots[first + p / rows]);
            __syncthreads();
            for (int e = threadIdx.x; e < rows * n_classes; e += blockDim.x) {
                const int row = e / n_classes, k = e % n_classes;
                double score = tile[e];
#pragma unroll 4
                for (int t = 0; t < trees; ++t) score += values[(i64)leaves[t * rows + row] * n_classes + k];
                tile[e] = score;
            }
            __syncthreads();  // before the next batch's leaves
        }
    }
}

// Whether the first largest score of a row exceeds every other one by more than its margin.
static __device__ __forceinline__ bool
is_ahead(const double* row, const double* __restrict__ margins, int n_classes, int leader_stride, int other_stride)
{
    int leader = 0;
    for (int k = 1; k < n_classes; ++k) leader = row[k] > row[leader] ? k : leader;
    const double* needed = margins + (i64)leader * leader_stride;
    for (int k = 0; k < n_classes; ++k)
        if (k != leader && !(row[leader] - row[k] > needed[(i64)k * other_stride])) return false;
    return true;
}

extern "C" __global__ void __launch_bounds__(256)
predict_until(const int* __restrict__ nodes, const int* __restrict__ roots, const double* __restrict__ values,
              const u8* __restrict__ codes, double* scores, const int* __restrict__ stops, const double* __restrict__ margins,
              int* left_at, const ExitSizes sizes)
{
    __shared__ int leaves[TILE];
    __shared__ int inside[MAX_TILE_ROWS];
    __shared__ int leaving[MAX_TILE_ROWS];
    __shared__ int n_inside;
    const int n_classes = sizes.n_classes;
    for (i64 base = (i64)blockIdx.x * sizes.rows_per_tile; base < sizes.n_rows; base += (i64)gridDim.x * sizes.rows_per_tile) {
        if (threadIdx.x == 0) {
            n_inside = 0;
            for (int r = 0; r < sizes.rows_per_tile && base + r < sizes.n_rows; ++r)
                if (left_at[base + r] < 0) inside[n_inside++] = r;
        }
        __syncthreads();
        double* tile = scores + base * n_classes;
        int first = 0;
        for (int c = 0; c < sizes.n_checkpoints && n_inside > 0; ++c) {
            const int rows = n_inside, trees_per_batch = TILE / rows;
            for (; first < stops[c]; first += trees_per_batch) {
                const int trees = min(trees_per_batch, stops[c] - first);
                for (int p = threadIdx.x; p < rows * trees; p += blockDim.x)
                    leaves[p] = leaf_of(nodes, codes, sizes.n_rows, base + inside[p % rows], roots[first + p / rows]);
                __syncthreads();
                for (int e = threadIdx.x; e < rows * n_classes; e += blockDim.x) {
                    const int j = e / n_classes, k = e % n_classes;
                    double* own = tile + (i64)inside[j] * n_classes + k;
                    double score = *own;
#pragma unroll 4
                    for (int t = 0; t < trees; ++t) score += values[(i64)leaves[t * rows + j] * n_classes + k];
                    *own = score;
                }
                __syncthreads();  // before the next batch's leaves, and before the scores are compared
            }
            first = stops[c];
            const double* needed = margins + (i64)(sizes.first_checkpoint + c) * sizes.checkpoint_stride;
            const bool all = sizes.ends && c == sizes.n_checkpoints - 1;
            for (int j = threadIdx.x; j < rows; j += blockDim.x)
                leaving[j] = all || is_ahead(tile + (i64)inside[j] * n_classes, needed, n_classes, sizes.leader_stride, sizes.other_stride);
            __syncthreads();
            if (threadIdx.x == 0) {
                int kept = 0;
                for (int j = 0; j < rows; ++j) {
                    if (leaving[j])
                        left_at[base + inside[j]] = sizes.first_checkpoint + c;
                    else
                        inside[kept++] = inside[j];
                }
                n_inside = kept;
            }
            __syncthreads();
        }
        __syncthreads();  // before the next tile's list
    }
}

extern "C" __global__ void __launch_bounds__(256)
add_trees(double* __restrict__ scores, const i64* __restrict__ leaf_indices, const int* __restrict__ first,
          const double* __restrict__ values, int n_rows, int n_classes, int n_trees)
{
    const Pairs at(n_classes);
    for (int c = at.channel; c < n_classes && !at.idle(); c += at.lanes)
#pragma unroll 1  // few registers, many threads: they hide the latency
        for (i64 i = at.first_row(); i < n_rows; i += at.step()) {
            double score = scores[i * n_classes + c];
            for (int t = 0; t < n_trees; ++t)
                score += values[(i64)(first[t] + ((const int*)leaf_indices[t])[i]) * n_classes + c];
            scores[i * n_classes + c] = score;
        }
}
