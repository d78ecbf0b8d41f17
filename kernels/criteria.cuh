// Criteria: what a cut is worth, as a sum over the classes of a term in (P, L), the class's total in the node and left of the cut.
//
// Each is the device twin of a line in gpuboost/backends/numpy_backend.py. Terms are exact integers.

#pragma once

// The edge of the best vote for class l: |right - left| = |P - 2L| (eqs. 11 and 13 of Kegl 2014). The shift rule keeps P and 2L, and
// so the difference, within int32; the sum over the classes needs 64 bits.
struct Edge {
    static __device__ __forceinline__ u32 term(int total, int left)
    {
        const int edge = total - 2 * left;
        return (u32)(edge < 0 ? -edge : edge);
    }
    // The classifier that is constant on the node.
    static __device__ __forceinline__ u32 whole(i64 total) { return (u32)(total < 0 ? -total : total); }
};
