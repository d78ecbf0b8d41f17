// Histograms of a node: H[bin][channel] = sum of quantised[row][channel] over the node's rows with that bin, for a range of features.
//
// The idea (lane owns bank). A 32-bit word holds the codes of four neighbouring features. A lane of a warp is one (word, channel) of
// one row, and adds quantised[row][channel] to four histograms in shared memory, at
//
//     cells[code][feature of the word][lane],
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
// histogram_wide  the same for sums beyond int32: histograms are int64, and channels_per_tile counts counters, of which a channel has
//                 two, for the lower 16 bits of quantised and for the upper ones. A block takes up to WIDE_ROWS rows.
//
// Exactness: int32; the shift rule keeps every partial sum of a channel below 2^30. Of WIDE_ROWS rows the lower bits add up to less than
// 2^31, the upper ones, as quantised is at most 2^30 in magnitude, to 2^29; upper * 2^16 + lower is added to an int64.
// Limit: instructions. MNIST's root is 3.72 M (row, tile of three words) pairs, a warp each. The loop has 150 instructions for four of
// them, of which 24 are executed a pair, as 52 % of the pairs add anything, and of these to 82 % of a word's features: 89 M, 99 us
// at four a cycle on 132 multiprocessors of 1.7 GHz (sm_90, groups = 4; sm_75 171, sm_80 to sm_89 151, sm_100 and sm_120 166 for
// four), in at most 48 registers. Atomics are 6.3 M of them, 28 us at one a cycle. Each word is read once, 44.6 MB, 13.3 us at 3.35 TB/s,
// and the statistics once a tile from the second-level cache, 149 MB.

#include "sizes.cuh"

enum {
    BATCH = 4,
    MIN_ROWS = 128,
    WIDE_ROWS = 1 << 15
};

// Elements of arrays. In an array of structs an element's address is one multiply-add; in one of integers the compiler adds up all
// offsets first, and the array's address last.
struct Word {
    u32 codes, others[BLOCK_WORDS - 1];
};
struct __align__(4 * BATCH) Batch {
    int rows[BATCH];
};
template <int GROUPS> struct Bin {
    int cells[GROUPS][32];
};

// What a lane sums, a channel of a word, and where. `Sum` is int, or i64 for a lane that sums the lower or the upper bits of a channel.
template <class Sum> struct Lane {
    const Word* words;
    const int* quantised;
    Sum* histograms;
    u32 row_bytes;      // of `quantised`, and of a bin of `histograms` as far as that is int
    bool is_upper;
    int feature;        // the first in shared memory
    int shift;          // the bits of the word below its code; shifted by them,
    u32 skip, counted;  // the skipped codes, and the bytes of the features in shared memory that count
    int* cells;         // of each 32, the first is its own
    int slot, n_slots;  // its turn of all that take rows for this word
};

// An element of an array of things of `bytes` bytes. These seem to change in every step of a loop: or else the compiler converts them to
// 64 bits before it, and a product of two such factors takes more instructions than one of 32 bits.
template <class T> static __device__ __forceinline__ T* at(T* array, int index, u32 bytes)
{
    asm volatile("" : "+r"(bytes));
    return (T*)((char*)array + (u64)(u32)index * bytes);
}

// What a lane counts of a number, and what its count is worth.
static __device__ __forceinline__ int counted_of(const Lane<int>&, int value) { return value; }
static __device__ __forceinline__ int counted_of(const Lane<i64>& lane, int value) { return lane.is_upper ? value >> 16 : value & 0xffff; }
static __device__ __forceinline__ void add_count(const Lane<int>&, int* sum, int count) { atomicAdd(sum, count); }
static __device__ __forceinline__ void add_count(const Lane<i64>& lane, i64* sum, int count)
{
    atomicAdd((u64*)sum, (u64)(lane.is_upper ? (i64)count * 65536 : count));
}

template <int GROUPS, int N, class Sum> static __device__ __forceinline__ void add_rows(const Lane<Sum>& lane, const int* rows)
{
    u32 codes[N];
    int value[N];
#pragma unroll
    for (int b = 0; b < N; ++b) {  // all loads of a batch are under way before the first is needed
        codes[b] = lane.words[(u32)rows[b]].codes >> (GROUPS == 4 ? 0 : lane.shift);
        value[b] = counted_of(lane, *at(lane.quantised, rows[b], lane.row_bytes));
    }
    Bin<GROUPS>* bins = (Bin<GROUPS>*)lane.cells;
#pragma unroll
    for (int b = 0; b < N; ++b) {
        const u32 differs = (codes[b] ^ lane.skip) & lane.counted;
        if ((differs == 0) | (value[b] == 0)) continue;  // without the value here, its load sinks below
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
            if (GROUPS == 1 || (differs & 255u << 8 * g) != 0)
                atomicAdd(bins[__byte_perm(codes[b], 0, 0x4440 + g)].cells[g], value[b]);  // byte g
    }
}

// Add the lane's turns of n rows: whole batches, which are aligned and need no bounds, and what is left before and behind, row by row.
template <int GROUPS, class Sum> static __device__ __forceinline__ void add_turns(const Lane<Sum>& lane, const int* __restrict__ rows, int n)
{
    const int before = (int)(0 - (u64)rows / sizeof(int) & BATCH - 1);
    const int n_batches = (n - before) / BATCH;  // 0 if n is less than that
    const Batch* batches = (const Batch*)(rows + before);
    Batch next = {};
    if (lane.slot < n_batches) next = batches[lane.slot];
#pragma unroll 1
    for (int i = lane.slot; i < n_batches;) {
        const Batch now = next;
        i += lane.n_slots;
        if (i < n_batches) next = batches[i];  // under way while this one is added
        add_rows<GROUPS, BATCH>(lane, now.rows);
    }
#pragma unroll 1
    for (int i = lane.slot; i < n - n_batches * BATCH; i += lane.n_slots)
        add_rows<GROUPS, 1>(lane, rows + (i < before ? i : i + n_batches * BATCH));
}

// Empty the lane's own cells of every n_warps-th bin into the histograms. Rows that shared a warp meet there.
template <int GROUPS, class Sum>
static __device__ __forceinline__ void empty_cells(const Lane<Sum>& lane, const int* __restrict__ bins, int first_bin)
{
    const Bin<GROUPS>* cells = (const Bin<GROUPS>*)lane.cells;
    int n_bins = 0;  // beyond a feature's own bins, its cells are 0
    Sum* of_feature[GROUPS];
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        const Bins own = bins_of(bins, lane.feature + g);
        n_bins = max(n_bins, own.n);
        of_feature[g] = at(lane.histograms, own.offset - first_bin, sizeof(Sum) / sizeof(int) * lane.row_bytes);
    }
    for (int bin = threadIdx.x >> 5; bin < n_bins; bin += blockDim.x >> 5) {
        int value[GROUPS];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) value[g] = cells[bin].cells[g][0];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g)
            if (value[g] != 0) add_count(lane, at(of_feature[g], bin, sizeof(Sum) / sizeof(int) * lane.row_bytes), value[g]);
    }
}

template <int GROUPS, class Sum>
static __device__ __forceinline__ void
sum_rows(const Lane<Sum>& lane, const int* __restrict__ rows, int n, const int* __restrict__ bins, int first_bin)
{
    if (lane.counted != 0) add_turns<GROUPS>(lane, rows, n);
    __syncthreads();
    if (lane.counted != 0) empty_cells<GROUPS>(lane, bins, first_bin);
}

// What this lane is: one channel of one word, in one of the rows that the warp takes at once.
template <class Sum>
static __device__ __forceinline__ Lane<Sum>
lane_of(const u32* __restrict__ codes, const u32* __restrict__ skipped, const int* __restrict__ words, const int* __restrict__ bins,
        const int* __restrict__ quantised, Sum* histograms, int* cells, u32 channel_tile, const HistogramSizes& sizes)
{
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5, groups = sizes.groups;
    const u32 tile = blockIdx.y * groups / 4, first_group = blockIdx.y * groups % 4, shift = 8 * first_group;
    const u32 words_per_tile = sizes.words_per_tile, channels_per_tile = sizes.channels_per_tile;
    const u32 lanes_per_row = words_per_tile * channels_per_tile, rows_at_once = 32 / lanes_per_row;
    const u32 row_of_lane = lane / lanes_per_row, place = lane % lanes_per_row;
    const int word = tile * words_per_tile + place / channels_per_tile;
    const int counter = channel_tile * channels_per_tile + place % channels_per_tile;
    const int channel = sizeof(Sum) == sizeof(int) ? counter : counter / 2;
    const bool idle = row_of_lane >= rows_at_once || word >= sizes.n_words || channel >= sizes.n_channels;
    const int w = idle ? 0 : words[sizes.first_word + word];
    u32 counted = 0;  // the bytes of the word whose features count
#pragma unroll
    for (int j = 0; j < 4; ++j)
        if (bins_of(bins, 4 * w + j).n > 0) counted |= 255u << 8 * j;

    Lane<Sum> own;
    own.words = (const Word*)(codes + (i64)(w / BLOCK_WORDS) * sizes.n_rows * BLOCK_WORDS + w % BLOCK_WORDS);
    own.quantised = quantised + channel;
    own.histograms = histograms + channel;
    own.row_bytes = 4 * (u32)sizes.n_channels;
    own.is_upper = counter % 2 != 0;
    own.shift = shift;
    own.skip = skipped[w] >> shift;
    own.counted = idle ? 0 : counted >> shift & ~0u >> 8 * (4 - groups);
    own.cells = cells + lane;
    own.slot = warp * rows_at_once + row_of_lane;
    own.n_slots = n_warps * rows_at_once;
    own.feature = 4 * w + first_group;
    return own;
}

template <class Sum>
static __device__ __forceinline__ void
sum_node(const u32* __restrict__ codes, const u32* __restrict__ skipped, const int* __restrict__ words, const int* __restrict__ bins,
         const int* __restrict__ rows, const int* __restrict__ quantised, const i64* __restrict__ table,
         const i64* __restrict__ current, Sum* __restrict__ histograms, const HistogramSizes& sizes, int* cells)
{
    const int n_trees = sizes.n_trees, max_nodes = sizes.max_nodes, n_channels = sizes.n_channels, member = sizes.member;
    const u32 groups = sizes.groups, tree = blockIdx.z % (u32)n_trees, channel_tile = blockIdx.z / (u32)n_trees;
    const int node = node_of(table, current, tree, member, max_nodes, n_channels);
    if (node < 0) return;
    const i64* r = record(table, tree, node, max_nodes, n_channels);
    const int n_node_rows = (int)(r[STOP] - r[START]);
    const int per_block = max((n_node_rows + (int)gridDim.x - 1) / (int)gridDim.x, (int)MIN_ROWS);
    const int begin = min((int)blockIdx.x * per_block, n_node_rows), end = min(begin + per_block, n_node_rows);
    if (begin == end) return;
    rows += (i64)tree * sizes.stride + r[START] + begin;
    quantised += (i64)tree * sizes.quantised_stride * n_channels;
    const i64 slot = member == LEFT_CHILD ? 0 : (member == RIGHT_CHILD ? 1 : r[SLOT]);
    histograms += (slot * n_trees + tree) * sizes.bins_in_tile * n_channels;

    const int n_vectors = groups * sizes.bins_stride * 32 / 4;
    for (int i = threadIdx.x; i < n_vectors; i += blockDim.x) ((int4*)cells)[i] = make_int4(0, 0, 0, 0);
    const Lane<Sum> lane = lane_of(codes, skipped, words, bins, quantised, histograms, cells, channel_tile, sizes);
    __syncthreads();

    if (groups == 4) sum_rows<4>(lane, rows, end - begin, bins, sizes.first_bin);
    else if (groups == 2) sum_rows<2>(lane, rows, end - begin, bins, sizes.first_bin);
    else sum_rows<1>(lane, rows, end - begin, bins, sizes.first_bin);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
histogram(const u32* __restrict__ codes, const u32* __restrict__ skipped, const int* __restrict__ words, const int* __restrict__ bins,
          const int* __restrict__ rows, const int* __restrict__ quantised, const i64* __restrict__ table,
          const i64* __restrict__ current, int* __restrict__ histograms, const HistogramSizes sizes)
{
    extern __shared__ __align__(16) int cells[];
    sum_node(codes, skipped, words, bins, rows, quantised, table, current, histograms, sizes, cells);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
histogram_wide(const u32* __restrict__ codes, const u32* __restrict__ skipped, const int* __restrict__ words, const int* __restrict__ bins,
               const int* __restrict__ rows, const int* __restrict__ quantised, const i64* __restrict__ table,
               const i64* __restrict__ current, i64* __restrict__ histograms, const HistogramSizes sizes)
{
    extern __shared__ __align__(16) int cells[];
    sum_node(codes, skipped, words, bins, rows, quantised, table, current, histograms, sizes, cells);
}
