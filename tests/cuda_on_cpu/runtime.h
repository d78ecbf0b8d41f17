// What the kernels and the run-time know of each other.
//
// Kernels are compiled with emulator.h, which includes this file; emulator.cpp is the run-time.

#pragma once

#include <cstddef>
#include <cstdint>

struct uint3 { unsigned x, y, z; };

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace emulator {

// A place in the source of a kernel. As a default argument, here() is the place of the call.
struct Place {
    const char* file;
    int line;
    static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// The CUDA thread that runs now. The run-time sets these whenever it changes to another one.
extern uint3 thread_index, block_index;
extern dim3 block_size, grid_size;
extern bool fenced;  // it has called fence

// Order what the thread does before and after, for the thread sanitizer.
void fence();

// Counts the blocks that have been started, to tell shared variables that they belong to an earlier one.
extern uint64_t block_serial;

// Stop the launch with an error.
[[noreturn]] __attribute__((format(printf, 2, 3))) void fail(Place place, const char* format, ...);

// Wait for all threads of the block; return how many came with a true predicate.
int barrier(bool predicate, Place place);

// Wait for all lanes of `mask`, and return what the primitive gives to this one:
// SYNC 0, SHUFFLE the value of lane `source`, BALLOT the lanes with a value other than 0, MATCH the lanes with the same value.
enum class Primitive {
    SYNC,
    SHUFFLE,
    BALLOT,
    MATCH
};
uint64_t meet(Primitive primitive, unsigned mask, uint64_t value, int source, Place place);

// Shared memory of the block that runs now: filled with garbage, gone when the block ends.
void* dynamic_shared();
void* static_shared(size_t size, Place place);

// An entry point of a file of kernels; a table of these ends with a null name.
struct Kernel {
    const char* name;
    void (*run)(const void* slots);  // of one thread; arguments stand at the start of slots of 8 bytes
    const char* types;               // three letters a parameter: '*' or ' ', then i, u, f or ?, then its size in bytes;
                                     // 's' and how many times 4 bytes it has, of a struct
    const char* parameters;          // their names, separated by blanks
    int max_block;                   // of __launch_bounds__
};

}  // namespace emulator
