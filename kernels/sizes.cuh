// Sizes that a kernel takes as one struct by value. No pointers: arrays are arguments of their own.
//
// STRUCTS in gpuboost/backends/cuda/kernels.py has the same fields in the same order; a test compares names, types and offsets.

#pragma once

#include "common.cuh"

// What bin.cu reads and writes: strides in elements, of any sign.
struct BinSizes {
    i64 row_stride, column_stride;
    int kind;         // see number_at
    int n_rows;       // of this launch
    int first_row;    // where they go
    int n_code_rows;  // of all launches
    int n_features;
};

// What a launch of `histogram` sums.
struct HistogramSizes {
    int n_rows, n_trees, max_nodes, n_channels;
    int stride, quantised_stride;  // see init_roots.cu
    int member;                    // which node of every tree, see node_of
    int first_word, n_words;       // positions in `words`
    int words_per_tile, channels_per_tile;
    int groups;                    // 1, 2 or 4 features of a word are in shared memory at a time
    int bins_stride;               // bins that shared memory has room for, of each
    int first_bin, bins_in_tile;   // the bins that `histograms` has room for
};

// What `init_roots` writes.
struct RootSizes {
    i64 n_started;  // rows of a root without bounds
    i64 n_cells;    // of a tree's histogram, 0 if it is not to be cleared
    int stride, max_nodes, n_channels;
};

// What `partition_nodes` writes.
struct PartitionSizes {
    i64 n_cells;  // of a tree's histogram, 0 if it is not to be cleared
    int stride, max_nodes, n_classes, n_channels;
    int slot;     // of the smaller child's histogram
};

// What a launch of a sweep finishes and compares.
struct SweepSizes {
    i64 min_count;                  // both sides of a split have rows with counts of at least this sum
    int n_trees, max_nodes, n_classes, n_channels;
    int n_voting;                   // n_classes for Edge, whose constant classifier has a score; 0 for others
    int first_member;               // ROOT, or LEFT_CHILD and the next
    int kept;                       // whether histograms lie in their nodes' slots
    int first_feature, n_features;  // positions in `features`
    int first_bin, bins_in_tile;
};

// What `quantise` writes.
struct QuantiseSizes {
    int n_rows, n_classes, n_channels;
    int shift;  // where the device has chosen none
};

// What `predict_until` reads.
struct ExitSizes {
    int n_rows, n_classes, rows_per_tile;
    int n_checkpoints, first_checkpoint;  // of this launch, and how many come before
    int ends;                             // whether all rows leave at the last one
    int checkpoint_stride, leader_stride, other_stride;  // of `margins`, in elements; 0 for an axis of length 1
};

// What `softmax_statistics` writes.
struct SoftmaxSizes {
    int n_rows, n_classes;
    int gradient_shift, curvature_shift;
};

enum {
    N_COEFFICIENTS = 11,
    N_EXP_COEFFICIENTS = 12
};

// What `minus_log2` needs.
struct LogarithmSeries {
    double coefficients[N_COEFFICIENTS];  // gpuboost.exactmath.LOG2_COEFFICIENTS
};

// How `softmax_losses` adds up.
struct LossSizes {
    int n_rows, n_classes, n_leaves, shift;
    double lowest;                        // probability
    double coefficients[N_COEFFICIENTS];  // gpuboost.exactmath.LOG2_COEFFICIENTS
};

// What `rectangle_sums` reads and writes.
struct RectangleSizes {
    int n_rows, height, width, n_channels, n_features;
    int n_bytes;  // of a pixel, 1 or 4
};

// What `weigh_labels` reads.
struct LabelSizes {
    int n_rows, n_classes, first_row, madaboost;
    double exp_coefficients[N_EXP_COEFFICIENTS];  // gpuboost.exactmath.EXP_COEFFICIENTS
    double coefficients[N_COEFFICIENTS];          // gpuboost.exactmath.LOG2_COEFFICIENTS
};
