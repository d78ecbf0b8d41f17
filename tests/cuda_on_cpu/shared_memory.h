// Where shared memory comes from, and what it holds before a kernel writes to it.
//
// Only for emulator.cpp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <sys/mman.h>

namespace emulator {

namespace {

#ifdef EMULATOR_TSAN

// Blocks must not share memory, or they would seem to race for it; and malloc would count as a write. So take it from one big
// mapping that the sanitizer does not know, from its start in each launch.
constexpr size_t ARENA = 4ull << 30;
char* arena;
size_t arena_used;

void set_up_shared_memory()
{
    if (!arena) {
        arena = (char*)mmap(nullptr, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena == MAP_FAILED) abort();
    }
    arena_used = 0;
}
void* take_memory(size_t size)
{
    void* memory = arena + arena_used;
    arena_used += (size + 15) / 16 * 16;
    if (arena_used > ARENA) abort();
    return memory;
}
void free_shared_memory() {}

#else

std::vector<void*> shared_memory;  // of the block

void set_up_shared_memory() {}
void* take_memory(size_t size)
{
    void* memory = malloc(size);  // just as much, so that the address sanitizer sees what is beyond
    if (!memory) abort();
    shared_memory.push_back(memory);
    return memory;
}
void free_shared_memory()
{
    for (void* memory : shared_memory) free(memory);
    shared_memory.clear();
}

#endif

// Garbage that depends on the seed and has no zero bytes: what is read before it is written shows.
void fill_with_garbage(void* memory, size_t size, uint64_t seed)
{
    const auto garbage = [seed](size_t i) { return ((seed + i) * 0x9e3779b97f4a7c15u >> 7) | 0x0101010101010101u; };
    const size_t n_words = size / 8;
    for (size_t i = 0; i < n_words; ++i) static_cast<uint64_t*>(memory)[i] = garbage(i);
    const uint64_t last = garbage(n_words);
    __builtin_memcpy(static_cast<char*>(memory) + 8 * n_words, &last, size % 8);
}

}  // namespace

}  // namespace emulator
