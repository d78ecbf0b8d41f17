// Stacks to run on, how to change from one to another, and what the sanitizers must be told about that.
//
// Only for emulator.cpp. Linux on x86-64.

#pragma once

#include <cstddef>
#include <cstdlib>

#include <sys/mman.h>

#ifdef EMULATOR_ASAN
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);
void __asan_unpoison_memory_region(const volatile void* start, size_t size);
}
#endif

#ifdef EMULATOR_TSAN
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace emulator {

namespace {

constexpr size_t PAGE = 4096;
#ifdef EMULATOR_ASAN
constexpr size_t STACK = 64 * PAGE;  // red zones need room
#else
constexpr size_t STACK = 16 * PAGE;
#endif

// What the processor can run: a fiber, or the host's thread.
struct Context {
    void* stack_pointer = nullptr;
    const void* bottom = nullptr;
    size_t size = 0;
    void* fake_stack = nullptr;  // address sanitizer's
    void* tsan = nullptr;        // thread sanitizer's
};

extern "C" void emulator_switch(void** save_stack_pointer, void* load_stack_pointer);

// Push what a function must preserve, change stacks, pop it again.
asm(R"(
.text
.p2align 4
.type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulator_switch, .-emulator_switch
)");

Context* left;  // the context that ran before

void arrived([[maybe_unused]] Context& here)
{
#ifdef EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(here.fake_stack, &left->bottom, &left->size);
#endif
}

void switch_from(Context& from, Context& to)
{
    left = &from;
#ifdef EMULATOR_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
#endif
#ifdef EMULATOR_TSAN
    __tsan_switch_to_fiber(to.tsan, 1);  // 1: this orders nothing
#endif
    emulator_switch(&from.stack_pointer, to.stack_pointer);
    arrived(from);
}

// Let the fiber start with `main`, which must not return, when it is next switched to.
void reset(Context& fiber, void (*main)())
{
    void** stack = (void**)((char*)fiber.bottom + fiber.size);
    *--stack = nullptr;  // as if main had been called: 8 bytes below a multiple of 16 stands where it returns to
    *--stack = (void*)main;
    for (int i = 0; i < 6; ++i) *--stack = nullptr;
    fiber.stack_pointer = stack;
    fiber.fake_stack = nullptr;
#ifdef EMULATOR_ASAN
    __asan_unpoison_memory_region(fiber.bottom, fiber.size);
#endif
#ifdef EMULATOR_TSAN
    if (fiber.tsan) __tsan_destroy_fiber(fiber.tsan);
    fiber.tsan = __tsan_create_fiber(0);
#endif
}

Context new_context(size_t number, void (*main)())
{
    char* guard = (char*)mmap(nullptr, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guard == MAP_FAILED || mprotect(guard, PAGE, PROT_NONE) != 0) abort();
    Context fiber;
    fiber.bottom = guard + PAGE;
    // Stacks begin at different places within a page; else their ends would compete for the same lines of the cache.
    fiber.size = STACK - 256 * (number % 16);
    reset(fiber, main);
    return fiber;
}

// What comes before a release of an event happens before what comes after an acquisition of it.
void release([[maybe_unused]] void* event)
{
#ifdef EMULATOR_TSAN
    __tsan_release(event);
#endif
}

void acquire([[maybe_unused]] void* event)
{
#ifdef EMULATOR_TSAN
    __tsan_acquire(event);
#endif
}

}  // namespace

}  // namespace emulator
