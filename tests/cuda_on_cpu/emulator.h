// Compiles CUDA C as C++17. emulator.py puts this file in front of a kernel file, after it has rewritten
//
//   extern __shared__ T name[];     as    T* name = (T*)emulator::dynamic_shared();
//   __shared__ T name[N][M];        as    typedef T name_type[N][M];
//                                         static emulator::Shared<name_type> name_memory;
//                                         name_type& name = name_memory.of_block();
//
// What CUDA C has and is not declared here does not compile, on purpose: the kernels may use neither the C library nor functions
// whose results differ between devices, such as exp. __activemask is missing because its value is not defined.

#pragma once

#include <limits>
#include <type_traits>
#include <utility>

#include "runtime.h"

// ---- language ---------------------------------------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static_assert(false, "emulator.py could not rewrite this declaration of a __shared__ variable");

#define threadIdx (emulator::thread_index)
#define blockIdx (emulator::block_index)
#define blockDim (emulator::block_size)
#define gridDim (emulator::grid_size)
#define warpSize 32

#define DEVICE static inline __attribute__((always_inline, unused))
#define PLACE emulator::Place place = emulator::Place::here()

#define assert(condition) \
    ((condition) ? (void)0 : emulator::fail(emulator::Place::here(), "assertion failed: %s", #condition))
DEVICE void __trap(PLACE) { emulator::fail(place, "__trap"); }

#define VECTORS(T, name)                                                                                   \
    struct __align__(2 * sizeof(T)) name##2 { T x, y; };                                                   \
    struct name##3 { T x, y, z; };                                                                         \
    struct __align__(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; };                   \
    DEVICE name##2 make_##name##2(T x, T y) { return {x, y}; }                                             \
    DEVICE name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                     \
    DEVICE name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define uint3 uint3_of_vectors  // runtime.h has it already
VECTORS(signed char, char)
VECTORS(unsigned char, uchar)
VECTORS(short, short)
VECTORS(unsigned short, ushort)
VECTORS(int, int)
VECTORS(unsigned, uint)
VECTORS(long long, longlong)
VECTORS(unsigned long long, ulonglong)
VECTORS(float, float)
VECTORS(double, double)
#undef uint3
#undef VECTORS

namespace emulator {

// A variable in shared memory: one memory for all threads of a block, another one for the next block.
template <class T> struct Shared {
    uint64_t serial = 0;
    T* memory = nullptr;
    __attribute__((no_sanitize_thread)) T& of_block(PLACE)  // not an access of the kernel
    {
        if (serial != block_serial) {
            memory = static_cast<T*>(static_shared(sizeof(T), place));
            serial = block_serial;
        }
        return *memory;
    }
};

}  // namespace emulator

// ---- barriers, votes, shuffles ----------------------------------------------------------------------------------------------

DEVICE void __syncthreads(PLACE) { emulator::barrier(false, place); }
DEVICE int __syncthreads_count(int predicate, PLACE) { return emulator::barrier(predicate != 0, place); }
DEVICE int __syncthreads_or(int predicate, PLACE) { return emulator::barrier(predicate != 0, place) != 0; }
DEVICE int __syncthreads_and(int predicate, PLACE) { return emulator::barrier(predicate != 0, place) == (int)blockDim.x; }
DEVICE void __syncwarp(unsigned mask = 0xffffffffu, PLACE) { emulator::meet(emulator::Primitive::SYNC, mask, 0, 0, place); }

// Since a thread runs until it waits, fences only matter to the thread sanitizer: see the atomics below.
DEVICE void __threadfence() { emulator::fence(); }
DEVICE void __threadfence_block() { emulator::fence(); }

namespace emulator {

// CUDA shuffles numbers of 4 and 8 bytes; smaller ones are promoted there and rejected here.
template <class T> inline uint64_t to_bits(T value)
{
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "not a type that CUDA shuffles");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

template <class T> inline T from_bits(uint64_t bits)
{
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class T> inline T shuffle(unsigned mask, T value, int source, Place place)
{
    return from_bits<T>(meet(Primitive::SHUFFLE, mask, to_bits(value), source, place));
}

inline int lane() { return (int)(thread_index.x & 31); }

}  // namespace emulator

template <class T> DEVICE T __shfl_sync(unsigned mask, T value, int source, int width = 32, PLACE)
{
    const int lane = emulator::lane(), first = lane & ~(width - 1);
    return emulator::shuffle(mask, value, first + (source & (width - 1)), place);
}

template <class T> DEVICE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, PLACE)
{
    const int lane = emulator::lane(), in_group = lane & (width - 1);
    return emulator::shuffle(mask, value, in_group < (int)delta ? lane : lane - (int)delta, place);
}

template <class T> DEVICE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, PLACE)
{
    const int lane = emulator::lane(), in_group = lane & (width - 1);
    return emulator::shuffle(mask, value, in_group + (int)delta >= width ? lane : lane + (int)delta, place);
}

template <class T> DEVICE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, PLACE)
{
    const int lane = emulator::lane(), source = lane ^ lanes;  // lanes of earlier groups may be read, those of later ones not
    return emulator::shuffle(mask, value, source / width > lane / width ? lane : source, place);
}

DEVICE unsigned __ballot_sync(unsigned mask, int predicate, PLACE)
{
    return (unsigned)emulator::meet(emulator::Primitive::BALLOT, mask, predicate != 0, 0, place);
}
DEVICE int __any_sync(unsigned mask, int predicate, PLACE) { return __ballot_sync(mask, predicate, place) != 0; }
DEVICE int __all_sync(unsigned mask, int predicate, PLACE) { return __ballot_sync(mask, !predicate, place) == 0; }

template <class T> DEVICE unsigned __match_any_sync(unsigned mask, T value, PLACE)
{
    return (unsigned)emulator::meet(emulator::Primitive::MATCH, mask, emulator::to_bits(value), 0, place);
}

// ---- atomics ----------------------------------------------------------------------------------------------------------------
//
// Just the overloads that CUDA has: a call with other types must fail here as it does there.

namespace emulator {

// Replace *p by change(*p) and return what it was. Threads do not interrupt one another, so that plain code will do; the thread
// sanitizer must see an atomic operation, which orders other accesses only if the thread has called a fence before.
template <class T, class Change> inline T atomic(T* p, Change change)
{
#ifdef EMULATOR_TSAN
    T old, next;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    const int order = fenced ? __ATOMIC_ACQ_REL : __ATOMIC_RELAXED;
    do next = change(old);
    while (order == __ATOMIC_ACQ_REL ? !__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
                                     : !__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
#else
    const T old = *p;
    *p = change(old);
    return old;
#endif
}

}  // namespace emulator

#define ATOMIC(name, T, result) \
    DEVICE T name(T* p, T value) { return emulator::atomic(p, [value](T old) { return (T)(result); }); }

ATOMIC(atomicAdd, int, (unsigned)old + (unsigned)value)  // wraps
ATOMIC(atomicAdd, unsigned, old + value)
ATOMIC(atomicAdd, unsigned long long, old + value)
ATOMIC(atomicAdd, float, old + value)
ATOMIC(atomicAdd, double, old + value)
ATOMIC(atomicSub, int, (unsigned)old - (unsigned)value)
ATOMIC(atomicSub, unsigned, old - value)
ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
ATOMIC(atomicExch, int, value)
ATOMIC(atomicExch, unsigned, value)
ATOMIC(atomicExch, unsigned long long, value)
ATOMIC(atomicExch, float, value)

#define ATOMIC_LIMITS(T)                          \
    ATOMIC(atomicMax, T, old > value ? old : value) \
    ATOMIC(atomicMin, T, old < value ? old : value)
ATOMIC_LIMITS(int)
ATOMIC_LIMITS(unsigned)
ATOMIC_LIMITS(long long)
ATOMIC_LIMITS(unsigned long long)

#define ATOMIC_BITS(T)                  \
    ATOMIC(atomicAnd, T, old & value)   \
    ATOMIC(atomicOr, T, old | value)    \
    ATOMIC(atomicXor, T, old ^ value)   \
    DEVICE T atomicCAS(T* p, T expected, T value) \
    {                                   \
        return emulator::atomic(p, [=](T old) { return old == expected ? value : old; }); \
    }
ATOMIC_BITS(int)
ATOMIC_BITS(unsigned)
ATOMIC_BITS(unsigned long long)

#undef ATOMIC
#undef ATOMIC_LIMITS
#undef ATOMIC_BITS

// ---- memory, integers -------------------------------------------------------------------------------------------------------

template <class T> DEVICE T __ldg(const T* p) { return *p; }
template <class T> DEVICE T __ldcs(const T* p) { return *p; }
template <class T> DEVICE T __ldcg(const T* p) { return *p; }
template <class T> DEVICE void __stcs(T* p, T value) { *p = value; }
template <class T> DEVICE void __stcg(T* p, T value) { *p = value; }

DEVICE int __popc(unsigned v) { return __builtin_popcount(v); }
DEVICE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
DEVICE int __clz(int v) { return v == 0 ? 32 : __builtin_clz((unsigned)v); }
DEVICE int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll((unsigned long long)v); }
DEVICE int __ffs(int v) { return __builtin_ffs(v); }
DEVICE int __ffsll(long long v) { return __builtin_ffsll(v); }
DEVICE unsigned __brev(unsigned v)
{
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (v >> bit & 1) << (31 - bit);
    return reversed;
}

// Four of the eight bytes of `low` and `high`: each nibble of `selector` names one by its lower three bits.
DEVICE unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    const unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned chosen = 0;
    for (int i = 0; i < 4; ++i) chosen |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return chosen;
}

DEVICE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
DEVICE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
DEVICE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
DEVICE unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

DEVICE int abs(int v) { return v < 0 ? -v : v; }
DEVICE long long abs(long long v) { return v < 0 ? -v : v; }
DEVICE long long llabs(long long v) { return v < 0 ? -v : v; }

#define LIMITS(A, B, T)                                         \
    DEVICE T min(A a, B b) { return (T)b < (T)a ? (T)b : (T)a; } \
    DEVICE T max(A a, B b) { return (T)a < (T)b ? (T)b : (T)a; }
LIMITS(int, int, int)
LIMITS(unsigned, unsigned, unsigned)
LIMITS(int, unsigned, unsigned)
LIMITS(unsigned, int, unsigned)
LIMITS(long, long, long)
LIMITS(unsigned long, unsigned long, unsigned long)
LIMITS(long long, long long, long long)
LIMITS(unsigned long long, unsigned long long, unsigned long long)
LIMITS(long long, unsigned long long, unsigned long long)
LIMITS(unsigned long long, long long, unsigned long long)
#undef LIMITS

// ---- floating point ---------------------------------------------------------------------------------------------------------
//
// Only what IEEE 754 defines to the last bit. Compiled without contraction, as the kernels are with -fmad=false.

#define FLOATS(T, suffix)                                                                  \
    DEVICE T min(T a, T b) { return __builtin_fmin##suffix(a, b); }                        \
    DEVICE T max(T a, T b) { return __builtin_fmax##suffix(a, b); }                        \
    DEVICE T fmin##suffix(T a, T b) { return __builtin_fmin##suffix(a, b); }               \
    DEVICE T fmax##suffix(T a, T b) { return __builtin_fmax##suffix(a, b); }               \
    DEVICE T fabs##suffix(T v) { return __builtin_fabs##suffix(v); }                       \
    DEVICE T sqrt##suffix(T v) { return __builtin_sqrt##suffix(v); }                       \
    DEVICE T rint##suffix(T v) { return __builtin_rint##suffix(v); }                       \
    DEVICE T floor##suffix(T v) { return __builtin_floor##suffix(v); }                     \
    DEVICE T ceil##suffix(T v) { return __builtin_ceil##suffix(v); }                       \
    DEVICE T trunc##suffix(T v) { return __builtin_trunc##suffix(v); }                     \
    DEVICE T fma##suffix(T a, T b, T c) { return __builtin_fma##suffix(a, b, c); }         \
    DEVICE T ldexp##suffix(T v, int exponent) { return __builtin_ldexp##suffix(v, exponent); } \
    DEVICE T copysign##suffix(T v, T sign) { return __builtin_copysign##suffix(v, sign); } \
    DEVICE bool isnan(T v) { return __builtin_isnan(v); }                                  \
    DEVICE bool isinf(T v) { return __builtin_isinf(v); }                                  \
    DEVICE bool isfinite(T v) { return __builtin_isfinite(v); }                            \
    DEVICE bool signbit(T v) { return __builtin_signbit(v); }
FLOATS(float, f)
FLOATS(double, )
#undef FLOATS

DEVICE float __fadd_rn(float a, float b) { return a + b; }
DEVICE float __fsub_rn(float a, float b) { return a - b; }
DEVICE float __fmul_rn(float a, float b) { return a * b; }
DEVICE float __fdiv_rn(float a, float b) { return a / b; }
DEVICE float __fsqrt_rn(float v) { return sqrtf(v); }
DEVICE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE double __dadd_rn(double a, double b) { return a + b; }
DEVICE double __dsub_rn(double a, double b) { return a - b; }
DEVICE double __dmul_rn(double a, double b) { return a * b; }
DEVICE double __ddiv_rn(double a, double b) { return a / b; }
DEVICE double __dsqrt_rn(double v) { return sqrt(v); }
DEVICE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

namespace emulator {

// PTX's cvt of a value that has been rounded: too large a number becomes the nearest one; NaN becomes 0 between types of 32 bits,
// and otherwise the integer of which only the highest bit is set.
template <class To, class From> inline To to_integer(From rounded)
{
    using Limits = std::numeric_limits<To>;
    if (rounded != rounded) return sizeof(To) + sizeof(From) == 8 ? 0 : (To)(1ull << (8 * sizeof(To) - 1));
    const From beyond = (From)2 * (From)(1ull << (Limits::digits - 1));  // max + 1
    return rounded >= beyond ? Limits::max() : rounded < (From)Limits::min() ? Limits::min()
                                                                             : (To)rounded;
}

}  // namespace emulator

#define CONVERSIONS(From, from, suffix, To, to)                                                                      \
    DEVICE To __##from##2##to##_rn(From v) { return emulator::to_integer<To>(__builtin_rint##suffix(v)); }           \
    DEVICE To __##from##2##to##_rz(From v) { return emulator::to_integer<To>(__builtin_trunc##suffix(v)); }          \
    DEVICE To __##from##2##to##_rd(From v) { return emulator::to_integer<To>(__builtin_floor##suffix(v)); }          \
    DEVICE To __##from##2##to##_ru(From v) { return emulator::to_integer<To>(__builtin_ceil##suffix(v)); }           \
    DEVICE From __##to##2##from##_rn(To v) { return (From)v; }
CONVERSIONS(float, float, f, int, int)
CONVERSIONS(float, float, f, unsigned, uint)
CONVERSIONS(float, float, f, long long, ll)
CONVERSIONS(float, float, f, unsigned long long, ull)
CONVERSIONS(double, double, , int, int)
CONVERSIONS(double, double, , unsigned, uint)
CONVERSIONS(double, double, , long long, ll)
CONVERSIONS(double, double, , unsigned long long, ull)
#undef CONVERSIONS
DEVICE float __double2float_rn(double v) { return (float)v; }

#define REINTERPRETATION(name, From, To) \
    DEVICE To name(From v) { return emulator::from_bits<To>(emulator::to_bits(v)); }
REINTERPRETATION(__float_as_int, float, int)
REINTERPRETATION(__float_as_uint, float, unsigned)
REINTERPRETATION(__int_as_float, int, float)
REINTERPRETATION(__uint_as_float, unsigned, float)
REINTERPRETATION(__double_as_longlong, double, long long)
REINTERPRETATION(__longlong_as_double, long long, double)
#undef REINTERPRETATION
DEVICE int __double2hiint(double v) { return (int)(__double_as_longlong(v) >> 32); }
DEVICE int __double2loint(double v) { return (int)__double_as_longlong(v); }
DEVICE double __hiloint2double(int high, int low)
{
    return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

// ---- the table of kernels that emulator.py appends --------------------------------------------------------------------------

namespace emulator {

struct Type { char star, kind, size; };

template <class T> constexpr Type type_of()
{
    using Value = std::remove_cv_t<std::remove_pointer_t<T>>;
    const char kind = std::is_same_v<Value, bool>       ? '?'
                      : std::is_floating_point_v<Value> ? 'f'
                      : !std::is_integral_v<Value>      ? '?'
                      : std::is_signed_v<Value>         ? 'i'
                                                        : 'u';
    if constexpr (std::is_void_v<Value>) return {'*', '?', '0'};
    else if constexpr (std::is_class_v<T>) return {'s', (char)('0' + sizeof(T) / 40), (char)('0' + sizeof(T) / 4 % 10)};
    else return {std::is_pointer_v<T> ? '*' : ' ', kind, (char)('0' + sizeof(Value))};
}

template <auto kernel> struct Entry;

template <class... Parameters, void (*kernel)(Parameters...)> struct Entry<kernel> {
    static constexpr Type types[] = {type_of<Parameters>()..., {}};

    // Where the slots of an argument begin.
    static constexpr size_t offset_of(size_t argument)
    {
        constexpr size_t sizes[] = {sizeof(Parameters)..., 0};
        size_t offset = 0;
        for (size_t i = 0; i < argument; ++i) offset += (sizes[i] + 7) / 8 * 8;
        return offset;
    }
    template <size_t... I> static void call(const char* slots, std::index_sequence<I...>)
    {
        kernel(*reinterpret_cast<const Parameters*>(slots + offset_of(I))...);
    }
    static void run(const void* slots)
    {
        call(static_cast<const char*>(slots), std::index_sequence_for<Parameters...>());
    }
};

}  // namespace emulator

#define EMULATED_KERNEL(name, max_block, parameters) \
    {#name, emulator::Entry<name>::run, &emulator::Entry<name>::types[0].star, parameters, max_block}
