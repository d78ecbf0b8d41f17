// Histograms of a node: H[bin][channel] = sum of quantised[row][channel] over the node's rows with that bin, for a range of features.
//
// The idea (lane owns bank). A 32-bit word holds the codes of four neighbouring features. A lane of a warp is one (word, channel) of
// one row, and adds quantised[row][channel] to four histograms in shared memory, at
//
//     cells[feature of the word][code][lane],
//
// so that lane l only ever touches bank l: no data can make two lanes of a warp conflict. W words and Kt channels take W * Kt lanes; as
// many rows as fit share a warp (K = 10: 3 words, 12 features, 30 lanes; K = 7: 4 words; K = 2 with 4 words: 4 rows). More than 32
// channels are tiled over blockIdx.z.
//
// Exact skipping. A row whose code is its feature's most frequent one is left out, a word of four such codes at once; `siblings`
// recovers that bin as the node's total minus all other bins, exactly, because these are integers. (Sibling subtraction and sparsity as
// in LightGBM and XGBoost; there in floats.)
//
// Which node: see node_of in common.cuh. Where rows are few, the blocks without rows end at once.
//
// groups = 1, 2 or 4 of a word's four features are in shared memory at a time; 4 / groups blocks (blockIdx.y) share a tile.
// grid (any, n_tiles * 4 / groups, n_trees * n_channel_tiles), block up to 1024, dynamic shared memory groups * bins_stride * 128 bytes.
//
// codes       uint32 [n_blocks][n_rows][BLOCK_WORDS]
// skipped     uint32 [n_blocks * BLOCK_WORDS]: the skipped codes of a word's four features
// words       int32 [..]: the words that hold a usable feature, ascending; this launch does words[first_word .. first_word + n_words)
// bins        int32 [n_features padded to whole words][2], see bins_of; codes of features that cannot be split are passed over
// rows        int32 [n_trees][stride], see init_roots.cu
// quantised   int32 [n_trees][n_rows][n_channels], or one tree's if quantised_stride is 0
// histograms  int32 [slot][n_trees][bins_in_tile][n_channels], the bins from first_bin on; zero where this kernel adds. The slot is
//             the node's, or for LEFT_CHILD and RIGHT_CHILD (histograms that are not kept) 0 and 1
//
// Exactness: int32; the shift rule keeps every partial sum of a channel below 2^30.
// Limit: instructions. MNIST's root is 3.72 M (row, tile of three words) pairs, a warp each. The loop has 332 instructions for four of
// them, of which 57 are executed a pair, as 52 % of the pairs add anything, and of these to 82 % of a word's features: 212 M, 237 us
// at four a cycle on 132 multiprocessors of 1.7 GHz. Atomics are 6.4 M of them, 29 us at one a cycle. Each word is read once,
// 44.6 MB, 13.3 us at 3.35 TB/s, and the statistics once a tile from the second-level cache, 149 MB.

#include "sizes.cuh"

enum {
    BATCH = 4,
    MIN_ROWS = 128
};

// A lane's part of the sums: its word and channel, in the rows first, first + step, ... of the node.
template <int GROUPS>
static __device__ __forceinline__ void
add_rows(int* __restrict__ cells, const u32* __restrict__ column, u32 skip, u32 counted, const int* __restrict__ rows,
         const int* __restrict__ quantised, int n_channels, int first, int end, int step, int first_group, int bins_stride)
{
    for (int i = first; i < end; i += BATCH * step) {
        u32 code[BATCH];
        int value[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {  // all loads of a batch are under way before the first is needed
            const bool inside = b * step < end - i;
            const int row = inside ? rows[i + b * step] : 0;
            code[b] = inside ? column[(i64)row * BLOCK_WORDS] : skip;
            value[b] = inside ? quantised[(i64)row * n_channels] : 0;
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const u32 differs = (code[b] ^ skip) & counted;
            if (differs == 0) continue;
#pragma unroll
            for (int g = 0; g < GROUPS; ++g) {
                const int shift = 8 * (first_group + g);
                if ((differs >> shift & 255) != 0)
                    atomicAdd(&cells[(g * bins_stride + (int)(code[b] >> shift & 255)) * 32], value[b]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024, 1)
histogram(const u32* __restrict__ codes, const u32* __restrict__ skipped, const int* __restrict__ words, const int* __restrict__ bins,
          const int* __restrict__ rows, const int* __restrict__ quantised, const i64* __restrict__ table,
          const i64* __restrict__ current, int* __restrict__ histograms, const HistogramSizes sizes)
{
    extern __shared__ int cells[];
    const int n_trees = sizes.n_trees, max_nodes = sizes.max_nodes, n_channels = sizes.n_channels, member = sizes.member;
    const int groups = sizes.groups, bins_stride = sizes.bins_stride;
    const int tree = blockIdx.z % n_trees, channel_tile = blockIdx.z / n_trees;
    const int node = node_of(table, current, tree, member, max_nodes, n_channels);
    if (node < 0) return;
    const i64* r = record(table, tree, node, max_nodes, n_channels);
    const int n_node_rows = (int)(r[STOP] - r[START]);
    const int per_block = max((n_node_rows + (int)gridDim.x - 1) / (int)gridDim.x, (int)MIN_ROWS);
    const int begin = min((int)blockIdx.x * per_block, n_node_rows), end = min(begin + per_block, n_node_rows);
    if (begin == end) return;
    rows += (i64)tree * sizes.stride + r[START];
    quantised += (i64)tree * sizes.quantised_stride * n_channels;

    const int n_cells = groups * bins_stride * 32;
    for (int i = threadIdx.x; i < n_cells; i += blockDim.x) cells[i] = 0;
    __syncthreads();

    // What this lane is: one channel of one word, in one of the rows that the warp takes at once.
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    const int tile = blockIdx.y / (4 / groups), first_group = blockIdx.y % (4 / groups) * groups;
    const int lanes_per_row = sizes.words_per_tile * sizes.channels_per_tile, rows_at_once = 32 / lanes_per_row;
    const int row_of_lane = lane / lanes_per_row, place = lane % lanes_per_row;
    const int word = tile * sizes.words_per_tile + place / sizes.channels_per_tile;
    const int channel = channel_tile * sizes.channels_per_tile + place % sizes.channels_per_tile;
    const bool idle = row_of_lane >= rows_at_once || word >= sizes.n_words || channel >= n_channels;
    const int w = idle ? 0 : words[sizes.first_word + word];

    u32 counted = 0;  // the bytes of the word whose features count
    for (int j = 0; j < 4 && !idle; ++j)
        if (bins_of(bins, 4 * w + j).n > 0) counted |= 255u << 8 * j;
    if (counted != 0) {
        const u32* column = codes + (i64)(w / BLOCK_WORDS) * sizes.n_rows * BLOCK_WORDS + w % BLOCK_WORDS;
        const int first = begin + warp * rows_at_once + row_of_lane, step = n_warps * rows_at_once;
        const u32 skip = skipped[w];
        quantised += channel;
        if (groups == 4) add_rows<4>(cells + lane, column, skip, counted, rows, quantised, n_channels, first, end, step, first_group, bins_stride);
        else if (groups == 2) add_rows<2>(cells + lane, column, skip, counted, rows, quantised, n_channels, first, end, step, first_group, bins_stride);
        else add_rows<1>(cells + lane, column, skip, counted, rows, quantised, n_channels, first, end, step, first_group, bins_stride);
    }
    __syncthreads();
    if (idle) return;

    // A warp empties every n_warps-th bin, each lane its own cells. Rows that shared a warp meet in the same place.
    const i64 slot = member == LEFT_CHILD ? 0 : (member == RIGHT_CHILD ? 1 : r[SLOT]);
    int* out = histograms + (slot * n_trees + tree) * sizes.bins_in_tile * n_channels + channel;
    for (int g = 0; g < groups; ++g) {
        const Bins of_feature = bins_of(bins, 4 * w + first_group + g);
        for (int bin = warp; bin < of_feature.n; bin += n_warps) {
            const int value = cells[(g * bins_stride + bin) * 32 + lane];
            if (value != 0) atomicAdd(&out[(i64)(of_feature.offset - sizes.first_bin + bin) * n_channels], value);
        }
    }
}
