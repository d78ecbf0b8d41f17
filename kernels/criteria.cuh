// Criteria: what a cut is worth. Each sees the classes in order, as the class's total in the node and the part of it left of the cut,
// and then says the cut's score: an int64 that has the order of the scores, where that of the constant classifier is known. One that has
// WEIGHS sees all classes twice, first by `weigh` and then by `add`.
//
// They are the device twins of gpuboost/backends/criteria.py. `Sum` is int, or i64 for sums beyond 2^30.

#pragma once

#include "common.cuh"
#include "logarithm.cuh"

// The edge of the best votes, the sum of |right - left| = |P - 2L| (eqs. 11 and 13 of Kegl 2014). The shift rule keeps P and 2L, and so
// the difference, within Sum; the sum over the classes needs 64 bits. Exact.
struct Edge {
    static constexpr bool WEIGHS = false;
    i64 sum = 0;
    static __device__ __forceinline__ i64 magnitude(int edge) { return (u32)(edge < 0 ? -edge : edge); }
    static __device__ __forceinline__ i64 magnitude(i64 edge) { return edge < 0 ? -edge : edge; }
    template <class Sum> __device__ __forceinline__ void add(Sum total, Sum left) { sum += magnitude(total - 2 * left); }
    __device__ __forceinline__ i64 score() const { return sum; }
};

// The decrease of the weighted Gini impurity, purity(L) + purity(P - L) - purity(P) with purity(S) = sum S_k^2 / sum S_k. In float64,
// class by class, one rounding an operation; as the bits of a number that is not negative. The constant classifier scores 0.
struct Gini {
    static constexpr bool WEIGHS = false;
    double whole_squares = 0.0, left_squares = 0.0, right_squares = 0.0;
    i64 whole_sum = 0, left_sum = 0, right_sum = 0;
    template <class Sum> __device__ __forceinline__ void add(Sum total, Sum left)
    {
        const Sum right = total - left;
        whole_squares += (double)total * (double)total;
        left_squares += (double)left * (double)left;
        right_squares += (double)right * (double)right;
        whole_sum += total;
        left_sum += left;
        right_sum += right;
    }
    static __device__ __forceinline__ double purity(double squares, i64 sum) { return sum == 0 ? 0.0 : squares / (double)sum; }
    __device__ __forceinline__ i64 score() const
    {
        const double gain = purity(left_squares, left_sum) + purity(right_squares, right_sum) - purity(whole_squares, whole_sum);
        return gain > 0.0 ? __double_as_longlong(gain) : 0;
    }
};

// The gain of a Newton step, L_0^2 / L_1 + R_0^2 / R_1 - P_0^2 / P_1, of the first two channels: a gradient, and a curvature (or a
// weight) that is not negative. A cut with a side where that is 0 is no candidate. In float64, one rounding an operation; as the bits of a
// number that is not negative. The constant classifier scores 0.
struct Newton {
    static constexpr bool WEIGHS = false;
    i64 all_g = 0, all_h = 0, left_g = 0, left_h = 0;
    int n_seen = 0;
    template <class Sum> __device__ __forceinline__ void add(Sum total, Sum left)
    {
        if (n_seen == 0) {
            all_g = total;
            left_g = left;
        } else if (n_seen == 1) {
            all_h = total;
            left_h = left;
        }
        ++n_seen;
    }
    static __device__ __forceinline__ double gain(i64 gradient, i64 curvature)
    {
        return (double)gradient * (double)gradient / (double)curvature;
    }
    __device__ __forceinline__ i64 score() const
    {
        if (left_h <= 0 || left_h >= all_h) return -1;
        const double found = gain(left_g, left_h) + gain(all_g - left_g, all_h - left_h) - gain(all_g, all_h);
        return found > 0.0 ? __double_as_longlong(found) : 0;
    }
};

// What is won of the exponential loss when every class has its best coefficient, loss(P) - loss(P - 2L) with
// loss(D) = sum sqrt((T_k + D_k) (T_k - D_k)), T_k the class's sum of |quantised| over the root's rows (eq. 4.10 of Appel's thesis). In float64,
// class by class, one rounding an operation; as the bits of a number that is not negative. The factors are below 2^53 and exact.
struct Rebel {
    static constexpr bool WEIGHS = false;
    const i64* sum_abs;  // of the next class
    double whole = 0.0, cut = 0.0;
    __device__ __forceinline__ explicit Rebel(const i64* sum_abs_of_tree) : sum_abs(sum_abs_of_tree) {}
    static __device__ __forceinline__ double loss(i64 t, i64 d) { return __dsqrt_rn((double)(t + d) * (double)(t - d)); }
    template <class Sum> __device__ __forceinline__ void add(Sum total, Sum left)
    {
        const i64 t = *sum_abs++;
        whole += loss(t, total);
        cut += loss(t, total - 2 * left);
    }
    __device__ __forceinline__ i64 score() const
    {
        const double gain = whole - cut;
        return gain > 0.0 ? __double_as_longlong(gain) : 0;
    }
};

// The decrease of the weighted entropy, (bits(P) - bits(L)) - bits(P - L) with bits(S) = sum S_k minus_log2(S_k / sum S_j) over the
// classes with S_k > 0. In float64, class by class, one rounding an operation; as the bits of a number that is not negative. The
// constant classifier scores 0.
struct Entropy {
    static constexpr bool WEIGHS = true;
    const double* coefficients;
    i64 whole_weight = 0, left_weight = 0;
    double whole_bits = 0.0, left_bits = 0.0, right_bits = 0.0;
    __device__ __forceinline__ explicit Entropy(const LogarithmSeries& series) : coefficients(series.coefficients) {}
    template <class Sum> __device__ __forceinline__ void weigh(Sum total, Sum left)
    {
        whole_weight += total;
        left_weight += left;
    }
    template <class Sum> __device__ __forceinline__ double bits(Sum sum, i64 weight) const
    {
        return sum > 0 ? (double)sum * minus_log2((double)sum / (double)weight, coefficients) : 0.0;
    }
    template <class Sum> __device__ __forceinline__ void add(Sum total, Sum left)
    {
        whole_bits += bits(total, whole_weight);
        left_bits += bits(left, left_weight);
        right_bits += bits(total - left, whole_weight - left_weight);
    }
    __device__ __forceinline__ i64 score() const
    {
        const double gain = whole_bits - left_bits - right_bits;
        return gain > 0.0 ? __double_as_longlong(gain) : 0;
    }
};
