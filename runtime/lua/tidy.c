#include "lua/tidy.h"

#include <malloc.h>

#include "base/clock.h"
#include "base/container.h"
#include "lua/slabs.h"
#include "lua/vm_state.h"

#define MANY 1024 /* tasks at once: what they need is not kept for the next ones */
#define FEW 8     /* the part of them that is left when most have gone */
#define SLICE_NS (2 * NS_PER_MS)
#define CYCLES 2 /* of the collector: the first may have passed by what it would find now */
#define GROWN 5  /* the heap has grown by this part since the last time: else it is let be */

/* How much larger than what lives the heap may be, in per cent. A fifth, not twice as much: ten
 * thousand elections are small, and so is what they throw away (make bench ROWS=10,000). But while
 * thousands of tasks run it grows all the time, and a walk through all of it at each fifth is what
 * most of the time would go into. */
#define PAUSE 120
#define PAUSE_IN_BURST 130

/* From one of the two to the other; what the user has set stays. */
static void change_pause(struct lua_vm *vm, int from, int to)
{
    int was = lua_gc(vm->L, LUA_GCSETPAUSE, to);
    if (was != from)
        (void)lua_gc(vm->L, LUA_GCSETPAUSE, was);
}

void tidy_open(struct lua_vm *vm)
{
    (void)lua_gc(vm->L, LUA_GCSETPAUSE, PAUSE);
    /* What is freed joins what is free beside it, so that the end of the heap can be given back:
     * else what a hundred thousand refreshes need that wait for one renewal stays, some 10 MB. */
    (void)mallopt(M_MXFAST, 0);
}

static void burst_is_over(struct lua_vm *vm)
{
    if (vm->tidy.tasks < MANY)
        change_pause(vm, PAUSE_IN_BURST, PAUSE);
}

static int heap_kb(const struct lua_vm *vm)
{
    return lua_gc(vm->L, LUA_GCCOUNT, 0);
}

static void collect(struct loop_job *job)
{
    struct lua_vm *vm = container_of(job, struct lua_vm, tidy.job);
    struct tidy *tidy = &vm->tidy;
    int64_t until_ns = clock_boottime_ns() + SLICE_NS;
    if (lua_gc(vm->L, LUA_GCISRUNNING, 0) == 0)
        tidy->cycles = 0; /* the user has stopped it */
    while (tidy->cycles > 0 && clock_boottime_ns() < until_ns)
        tidy->cycles -= lua_gc(vm->L, LUA_GCSTEP, 0) != 0;
    if (tidy->cycles > 0) {
        loop_defer(vm->loop, job);
        return;
    }
    burst_is_over(vm);
    tidy->left_kb = heap_kb(vm);
    if (vm->slabs != NULL)
        slabs_trim(vm->slabs);
    (void)malloc_trim(0); /* whether there was anything to give back does not matter */
}

/* A walk through the whole heap has to be worth while. */
static bool has_grown(struct lua_vm *vm)
{
    struct tidy *tidy = &vm->tidy;
    int now_kb = heap_kb(vm);
    if (now_kb < tidy->left_kb)
        tidy->left_kb = now_kb;
    return now_kb > tidy->left_kb + tidy->left_kb / GROWN;
}

void tidy_began(struct lua_vm *vm)
{
    struct tidy *tidy = &vm->tidy;
    if (++tidy->tasks > tidy->most)
        tidy->most = tidy->tasks;
    if (tidy->tasks == MANY)
        change_pause(vm, PAUSE, PAUSE_IN_BURST);
}

void tidy_ended(struct lua_vm *vm)
{
    struct tidy *tidy = &vm->tidy;
    if (--tidy->tasks > tidy->most / FEW || tidy->most < MANY)
        return;
    tidy->burst = tidy->most;
    tidy->most = tidy->tasks;
    /* A walk that has begun comes to its end: with a large heap the next burst is there before. */
    if (tidy->cycles > 0)
        return;
    if (!has_grown(vm)) {
        burst_is_over(vm);
        return;
    }
    tidy->cycles = CYCLES;
    tidy->job.run = collect;
    loop_defer(vm->loop, &tidy->job);
}

void tidy_close(struct lua_vm *vm)
{
    loop_unpost(vm->loop, &vm->tidy.job);
}
