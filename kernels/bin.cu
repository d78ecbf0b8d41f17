// Binning: feature values to codes, code(x) = 0 if x is NaN, else 1 + number of cuts <= x (compared in float64).
//
// grid (any, blocks of 16 features), block 256: a thread is one of 16 features of one of 16 rows, so that codes are written whole.
//
// values      numbers of `kind` (see number_at: NumPy's kind and size), at values[row * row_stride + feature * column_stride], so that
//             every layout of the caller's array is read as it is
// chosen      int64 [n_rows] or null: the rows wanted
// cut_values  float64, the cuts of all features one after the other, ascending; none is NaN
// cut_offset  int64 [n_features + 1]: feature f owns cut_values[cut_offset[f] .. cut_offset[f + 1])
// codes       uint8 [n_blocks][n_code_rows][BLOCK_FEATURES]: this launch writes n_rows rows from first_row on; padding becomes 0
//
// Exactness: integers of 64 bits become float64 by rounding to nearest, as in NumPy; all others are exact. Comparisons only.
// Limit: reading the values and writing the codes: MNIST as uint8 47 MB each way, 28 us at 3.35 TB/s; eight dependent comparisons of a
// binary search for each value, in cuts that the first-level cache holds (16 features * 254 * 8 bytes = 32 KB).

#include "sizes.cuh"

enum {
    F16 = 0,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64
};

// A float16 or float32 as float64, from its bits: halves have no arithmetic without the headers of CUDA, and CuPy compiles with
// -ftz=true, under which a conversion takes floats below 2**-126 for 0.
static __device__ __forceinline__ double from_bits(u32 bits, int exponent_bits, int fraction_bits)
{
    const u32 top = (1u << exponent_bits) - 1, bias = top / 2;
    const u32 sign = bits >> (exponent_bits + fraction_bits), exponent = bits >> fraction_bits & top;
    const u32 fraction = bits & ((1u << fraction_bits) - 1);
    if (exponent == 0) {
        const double unit = __longlong_as_double((i64)(1024 - bias - fraction_bits) << 52), magnitude = (double)fraction * unit;
        return sign ? -magnitude : magnitude;
    }
    const u64 wide = exponent == top ? 2047 : exponent + 1023 - bias;
    return __longlong_as_double((i64)((u64)sign << 63 | wide << 52 | (u64)fraction << (52 - fraction_bits)));
}

static __device__ __forceinline__ double number_at(const u8* __restrict__ values, i64 at, int kind)
{
    switch (kind) {
        case F16: return from_bits(((const unsigned short*)values)[at], 5, 10);
        case F32: return from_bits(((const u32*)values)[at], 8, 23);
        case F64: return ((const double*)values)[at];
        case I8: return ((const signed char*)values)[at];
        case I16: return ((const short*)values)[at];
        case I32: return ((const int*)values)[at];
        case I64: return (double)((const i64*)values)[at];
        case U8: return values[at];
        case U16: return ((const unsigned short*)values)[at];
        case U32: return ((const u32*)values)[at];
        default: return (double)((const u64*)values)[at];
    }
}

extern "C" __global__ void __launch_bounds__(256)
bin(const u8* __restrict__ values, const i64* __restrict__ chosen, const double* __restrict__ cut_values,
    const i64* __restrict__ cut_offset, u8* __restrict__ codes, const BinSizes sizes)
{
    const int of_block = threadIdx.x % BLOCK_FEATURES, feature = blockIdx.y * BLOCK_FEATURES + of_block;
    const int rows_at_once = blockDim.x / BLOCK_FEATURES;
    const bool exists = feature < sizes.n_features;
    const i64 begin = exists ? cut_offset[feature] : 0, end = exists ? cut_offset[feature + 1] : 0;
    u8* out = codes + ((i64)blockIdx.y * sizes.n_code_rows + sizes.first_row) * BLOCK_FEATURES + of_block;

    for (i64 i = (i64)blockIdx.x * rows_at_once + threadIdx.x / BLOCK_FEATURES; i < sizes.n_rows; i += (i64)gridDim.x * rows_at_once) {
        int code = 0;
        if (exists) {
            const i64 row = chosen ? chosen[i] : i;
            const double x = number_at(values, row * sizes.row_stride + feature * sizes.column_stride, sizes.kind);
            if (x == x) {
                i64 low = begin, high = end;  // cuts before low are <= x, cuts from high on are above it
                while (low < high) {
                    const i64 middle = (low + high) / 2;
                    if (cut_values[middle] <= x) low = middle + 1;
                    else high = middle;
                }
                code = 1 + (int)(low - begin);
            }
        }
        out[i * BLOCK_FEATURES] = (u8)code;
    }
}
