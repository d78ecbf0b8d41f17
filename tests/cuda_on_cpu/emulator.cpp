// The run-time of the emulator: runs the blocks of a grid one after another, and the threads of a block as fibers.
//
// A fiber is a stack of its own. The thread that runs goes on until it waits for others (a barrier or a primitive of its warp) or
// returns; then the next of the threads that are ready is taken. A fiber whose thread has returned takes the next thread that has
// not started, so that a kernel without barriers needs one fiber. If nothing is ready while threads wait, they wait for ever.
//
// This file is compiled without sanitizers, also when the kernels are compiled with one, so that just the kernels' own accesses
// are watched. It tells the sanitizers of the fibers. To the thread sanitizer every CUDA thread is a thread, and only barriers,
// __syncwarp and atomics after a fence order the accesses of two of them: the order in which they happen to run here does not.

#include "fibers.h"
#include "runtime.h"
#include "shared_memory.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace emulator {

uint3 thread_index, block_index;
dim3 block_size, grid_size;
bool fenced;
uint64_t block_serial;

namespace {

constexpr unsigned WARP = 32;

// ---- state ------------------------------------------------------------------------------------------------------------------

enum class State {
    READY,
    AT_BARRIER,
    IN_WARP,
    RETURNED
};

struct Thread {
    unsigned number = 0;
    State state = State::READY;
    Context* fiber = nullptr;  // null: has not started
    bool fenced = false;
    Place place{};        // where it waits
    uint64_t result = 0;  // of the primitive that it waited in
};

struct Meeting {  // lanes that wait for one another in a primitive
    unsigned mask, arrived;
    Primitive primitive;
    Place place;
    unsigned parity;  // of the event that orders their memory
};

struct Warp {
    unsigned n_meetings = 0, lanes = 0;
    Meeting meetings[WARP];  // a lane waits in one of them
    uint64_t values[WARP];
    int sources[WARP];
    unsigned parity = 0;
};

struct Barrier {
    unsigned n_waiting = 0, n_true = 0, n_true_of_last = 0, parity = 0;
    Place place{};
};

enum class Order {
    FORWARD,
    REVERSE,
    RANDOM
};

// Of the run-time.
Context host;
std::deque<Context> fibers;
std::vector<Context*> free_fibers;
std::vector<Thread> threads;
std::vector<Warp> warps;

// Of the launch.
void (*run_thread)(const void*);
const void* arguments;
Order order;
uint64_t random_state;
std::string error;

// Of the block.
Thread* running;
std::vector<Thread*> ready;  // taken from the end
unsigned n_returned;
Barrier barrier_of_block;
void* dynamic;
size_t shared_used, shared_limit;

bool failed() { return !error.empty(); }

uint64_t random_number()  // splitmix64
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t random_below(uint64_t n) { return (uint64_t)((unsigned __int128)random_number() * n >> 64); }

// ---- what happens before what, for the thread sanitizer ---------------------------------------------------------------------

// Their addresses stand for events.
uint64_t launch_begins, launch_ends;

#ifdef EMULATOR_TSAN

// Each block has events of its own, so that nothing orders two blocks.
std::vector<uint64_t> events;
size_t first_event;

void set_up_events(uint64_t n_blocks) { events.resize(n_blocks * (2 + 2 * warps.size())); }
void* barrier_event(unsigned parity) { return &events[first_event + parity]; }
void* warp_event(size_t warp, unsigned parity) { return &events[first_event + 2 + 2 * warp + parity]; }

#else

void set_up_events(uint64_t) {}
void* barrier_event(unsigned) { return nullptr; }
void* warp_event(size_t, unsigned) { return nullptr; }

#endif

// ---- fibers -----------------------------------------------------------------------------------------------------------------

void finish_thread();

[[noreturn]] void fiber_main()
{
    arrived(*running->fiber);
    for (;;) {
        acquire(&launch_begins);
        run_thread(arguments);
        release(&launch_ends);
        finish_thread();
    }
}

Context* new_fiber()
{
    fibers.push_back(new_context(fibers.size(), fiber_main));
    return &fibers.back();
}

#ifdef EMULATOR_TSAN

// A CUDA thread needs a fiber that neither its block nor the blocks just before have used: what one fiber does is in order. There
// are some 8000 threads to the sanitizer, so that fibers are used in turn, by at least two blocks.
size_t n_turns, turn;

void set_up_fibers(uint64_t n_blocks)
{
    n_turns = n_blocks < 2 ? 1 : std::max<size_t>(2, std::min<size_t>(n_blocks, 512 / threads.size()));
    while (fibers.size() < n_turns * threads.size()) new_fiber();
}
Context* fiber_for(Thread& thread) { return &fibers[turn * threads.size() + thread.number]; }
void give_back(Context*) {}
bool may_continue_on(Context*) { return false; }

#else

void set_up_fibers(uint64_t) {}

Context* fiber_for(Thread&)
{
    if (free_fibers.empty()) return new_fiber();
    Context* fiber = free_fibers.back();
    free_fibers.pop_back();
    return fiber;
}
void give_back(Context* fiber) { free_fibers.push_back(fiber); }
bool may_continue_on(Context*) { return true; }

#endif

// ---- scheduling -------------------------------------------------------------------------------------------------------------

Thread* take_ready()
{
    if (ready.empty()) return nullptr;
    if (order == Order::RANDOM) std::swap(ready[random_below(ready.size())], ready.back());
    Thread* thread = ready.back();
    ready.pop_back();
    return thread;
}

// The threads of `lanes`, counted from thread `first`, can go on. They come before those that became ready earlier: a warp runs as
// far as it can, on few stacks.
void make_ready(unsigned first, unsigned lanes)
{
    for (unsigned i = 0; i < WARP; ++i) {
        const unsigned lane = order == Order::REVERSE ? i : WARP - 1 - i;
        if (!(lanes >> lane & 1)) continue;
        threads[first + lane].state = State::READY;
        ready.push_back(&threads[first + lane]);
    }
}

void make_all_ready()
{
    for (unsigned i = 0; i < warps.size(); ++i) {
        const unsigned warp = order == Order::REVERSE ? i : warps.size() - 1 - i;
        make_ready(WARP * warp, warps[warp].lanes);
    }
}

void become(Thread& thread)
{
    running = &thread;
    thread_index.x = thread.number;
    fenced = thread.fenced;
}

void switch_to_host(Context& from) { switch_from(from, host); }

// The running thread waits, or is ready but not first: let others run until its turn comes.
void wait()
{
    Thread& me = *running;
    me.fenced = fenced;
    Thread* next = take_ready();
    if (next == &me) return;
    if (!next) switch_to_host(*me.fiber);  // which finds the deadlock, and does not return
    become(*next);
    if (!next->fiber) next->fiber = fiber_for(*next);
    switch_from(*me.fiber, *next->fiber);
}

// The running thread has returned. When this returns, another one has taken over its fiber.
void finish_thread()
{
    Context* fiber = running->fiber;
    running->state = State::RETURNED;
    ++n_returned;
    Thread* next = take_ready();
    if (next && !next->fiber && may_continue_on(fiber)) {
        next->fiber = fiber;
        become(*next);
        return;
    }
    give_back(fiber);
    if (!next) return switch_to_host(*fiber);
    become(*next);
    if (!next->fiber) next->fiber = fiber_for(*next);
    switch_from(*fiber, *next->fiber);
}

// ---- shared memory ----------------------------------------------------------------------------------------------------------

void* new_shared_memory(size_t size)
{
    shared_used += size;
    void* memory = take_memory(size);
    fill_with_garbage(memory, size, random_number());
    return memory;
}

// ---- launches ---------------------------------------------------------------------------------------------------------------

std::string here(Place place) { return std::string(place.file) + ":" + std::to_string(place.line); }

std::string in_block()
{
    return "block (" + std::to_string(block_index.x) + ", " + std::to_string(block_index.y) + ", " + std::to_string(block_index.z) + ")";
}

std::string deadlock()
{
    std::string text;
    for (State state : {State::AT_BARRIER, State::IN_WARP}) {
        const Thread* first = nullptr;
        unsigned n = 0;
        for (const Thread& thread : threads)
            if (thread.state == state && n++ == 0) first = &thread;
        if (!first) continue;
        text += text.empty() ? here(first->place) + ": deadlock in " + in_block() + ": " : ", ";
        text += std::to_string(n) + (state == State::AT_BARRIER ? " threads wait in __syncthreads" : " threads wait for their warp");
        text += " (thread " + std::to_string(first->number) + " at " + here(first->place) + ")";
    }
    return text + ", " + std::to_string(n_returned) + " have returned";
}

// Threads that were stopped half-way still happen before the end of the launch. Their fibers start anew.
void abandon_threads()
{
    for (Thread& thread : threads) {
        if (!thread.fiber || thread.state == State::RETURNED) continue;
#ifdef EMULATOR_TSAN
        __tsan_switch_to_fiber(thread.fiber->tsan, 1);
        __tsan_release(&launch_ends);
        __tsan_switch_to_fiber(host.tsan, 1);
#endif
        reset(*thread.fiber, fiber_main);
        give_back(thread.fiber);
    }
}

void run_block(size_t shared_bytes)
{
    ++block_serial;
    shared_used = 0;
    dynamic = new_shared_memory(shared_bytes);
    barrier_of_block = {};
    n_returned = 0;
    for (Warp& warp : warps) warp.n_meetings = 0;
    for (Thread& thread : threads) {
        thread.fiber = nullptr;
        thread.fenced = false;
    }
    ready.clear();
    make_all_ready();
    Thread* first = take_ready();
    become(*first);
    first->fiber = fiber_for(*first);
    switch_from(host, *first->fiber);
    if (!failed() && n_returned < threads.size()) error = deadlock();
    free_shared_memory();
}

void set_up_block(unsigned n_threads)
{
    block_size = dim3(n_threads);
    thread_index = {0, 0, 0};
    threads.resize(n_threads);
    warps.resize((n_threads + WARP - 1) / WARP);
    for (unsigned i = 0; i < n_threads; ++i) threads[i].number = i;
    for (unsigned i = 0; i < warps.size(); ++i) {
        const unsigned n = std::min(WARP, n_threads - WARP * i);
        warps[i].lanes = n == WARP ? ~0u : (1u << n) - 1;
    }
}

std::vector<uint64_t> blocks_in_order(uint64_t n_blocks)
{
    std::vector<uint64_t> blocks(n_blocks);
    for (uint64_t i = 0; i < n_blocks; ++i) blocks[i] = order == Order::REVERSE ? n_blocks - 1 - i : i;
    if (order == Order::RANDOM)
        for (uint64_t i = n_blocks - 1; i > 0; --i) std::swap(blocks[i], blocks[random_below(i + 1)]);
    return blocks;
}

}  // namespace

// ---- what kernels call ------------------------------------------------------------------------------------------------------

void fail(Place place, const char* format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    error = here(place) + ": " + text + ", " + in_block() + ", thread " + std::to_string(running->number);
    switch_to_host(*running->fiber);
    abort();  // nobody switches back
}

void fence() { fenced = true; }

int barrier(bool predicate, Place place)
{
    Barrier& b = barrier_of_block;
    if (b.n_waiting > 0 && (place.line != b.place.line || place.file != b.place.file))
        fail(place, "divergent __syncthreads: others wait at %s", here(b.place).c_str());
    b.place = running->place = place;
    b.n_true += predicate;
    void* event = barrier_event(b.parity);
    release(event);
    running->state = State::AT_BARRIER;
    if (++b.n_waiting == threads.size()) {
        b.n_true_of_last = b.n_true;
        b.n_waiting = b.n_true = 0;
        b.parity ^= 1;
        make_all_ready();
    }
    wait();
    acquire(event);
    return (int)b.n_true_of_last;
}

namespace {

unsigned lanes_with(const Warp& warp, unsigned mask, bool (*holds)(uint64_t, uint64_t), uint64_t value)
{
    unsigned lanes = 0;
    for (unsigned lane = 0; lane < WARP; ++lane)
        if (mask >> lane & 1 && holds(warp.values[lane], value)) lanes |= 1u << lane;
    return lanes;
}

void give_results(const Warp& warp, unsigned first, unsigned mask, Primitive primitive)
{
    const auto differ = [](uint64_t a, uint64_t b) { return a != b; };
    const auto agree = [](uint64_t a, uint64_t b) { return a == b; };
    const unsigned ballot = primitive == Primitive::BALLOT ? lanes_with(warp, mask, differ, 0) : 0;
    for (unsigned lane = 0; lane < WARP; ++lane) {
        if (!(mask >> lane & 1)) continue;
        threads[first + lane].result = primitive == Primitive::SHUFFLE  ? warp.values[warp.sources[lane]]
                                       : primitive == Primitive::BALLOT ? ballot
                                                                        : lanes_with(warp, mask, agree, warp.values[lane]);
    }
}

}  // namespace

uint64_t meet(Primitive primitive, unsigned mask, uint64_t value, int source, Place place)
{
    Thread& me = *running;
    const unsigned lane = me.number % WARP, first = me.number - lane;
    Warp& warp = warps[me.number / WARP];
    mask &= warp.lanes;
    if (!(mask >> lane & 1)) fail(place, "lane %u is not in its own mask %08x", lane, mask);
    if (primitive == Primitive::SHUFFLE && (source < 0 || source >= (int)WARP || !(mask >> source & 1)))
        fail(place, "shuffle from lane %d, which is not in mask %08x", source, mask);

    unsigned i = 0;
    while (i < warp.n_meetings && warp.meetings[i].mask != mask) ++i;
    Meeting& meeting = warp.meetings[i];
    if (i == warp.n_meetings) {
        meeting = {mask, 0, primitive, place, warp.parity ^= 1};
        ++warp.n_meetings;
    }
    if (meeting.primitive != primitive || meeting.place.line != place.line || meeting.place.file != place.file)
        fail(place, "divergent warp: other lanes of mask %08x wait at %s", mask, here(meeting.place).c_str());
    meeting.arrived |= 1u << lane;
    warp.values[lane] = value;
    warp.sources[lane] = source;
    me.place = place;
    me.state = State::IN_WARP;

    void* event = warp_event(me.number / WARP, meeting.parity);
    const bool orders_memory = primitive == Primitive::SYNC;  // shuffles and votes do not
    if (orders_memory) release(event);
    if (meeting.arrived == mask) {
        if (!orders_memory) give_results(warp, first, mask, primitive);
        make_ready(first, mask);
        meeting = warp.meetings[--warp.n_meetings];
    }
    wait();
    if (orders_memory) acquire(event);
    return me.result;
}

void* dynamic_shared() { return dynamic; }

void* static_shared(size_t size, Place place)
{
    void* memory = new_shared_memory(size);
    if (shared_used > shared_limit) fail(place, "%zu bytes of shared memory, but a block has %zu", shared_used, shared_limit);
    return memory;
}

}  // namespace emulator

// ---- what emulator.py calls -------------------------------------------------------------------------------------------------

// Run a kernel; return null, or why it stopped.
extern "C" const char* emulator_launch(void (*kernel)(const void*), const void* slots, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned n_threads, size_t shared_bytes, size_t limit, int order, uint64_t seed)
{
    using namespace emulator;
    run_thread = kernel;
    arguments = slots;
    grid_size = dim3(grid_x, grid_y, grid_z);
    shared_limit = limit;
    emulator::order = (Order)order;
    random_state = seed;
    error.clear();
    if (threads.size() != n_threads) set_up_block(n_threads);
    const uint64_t n_blocks = (uint64_t)grid_x * grid_y * grid_z;
    set_up_events(n_blocks);
    set_up_fibers(n_blocks);
    set_up_shared_memory();
#ifdef EMULATOR_TSAN
    host.tsan = __tsan_get_current_fiber();
#endif
    release(&launch_begins);
    for (uint64_t block : blocks_in_order(n_blocks)) {
        block_index = {(unsigned)(block % grid_x), (unsigned)(block / grid_x % grid_y), (unsigned)(block / grid_x / grid_y)};
#ifdef EMULATOR_TSAN
        first_event = block * (2 + 2 * warps.size());
        turn = (turn + 1) % n_turns;
#endif
        run_block(shared_bytes);
        if (failed()) break;
    }
    if (failed()) abandon_threads();
    acquire(&launch_ends);
    return failed() ? error.c_str() : nullptr;
}

// Memory of just this size, for the address sanitizer to watch.
extern "C" void* emulator_allocate(size_t size) { return malloc(size); }
extern "C" void emulator_free(void* memory) { free(memory); }
