#include "apart.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_SIZE (2u << 20) /* stack_release gives 256 KiB below its place back */

static ucontext_t test, process;
static void *stack = MAP_FAILED;
static void (*start)(void);
static bool ended = true;

static void enter(void)
{
    start();
    apart_end();
}

void apart_begin(void (*run)(void))
{
    apart_close();
    stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || getcontext(&process) < 0)
        abort();
    process.uc_stack.ss_sp = stack;
    process.uc_stack.ss_size = STACK_SIZE;
    start = run;
    ended = false;
    makecontext(&process, enter, 0);
    apart_go_on();
}

void apart_go_on(void)
{
    if (!ended && swapcontext(&test, &process) < 0)
        abort();
}

void apart_wait(void)
{
    if (swapcontext(&process, &test) < 0)
        abort();
}

void apart_end(void)
{
    ended = true;
    (void)setcontext(&test);
    abort();
}

bool apart_has_ended(void)
{
    return ended;
}

void apart_close(void)
{
    ended = true;
    if (stack != MAP_FAILED)
        (void)munmap(stack, STACK_SIZE);
    stack = MAP_FAILED;
}
