#include "loop/held.h"

#include <execinfo.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FRAMES_MAX 48
#define HELD_SIGNAL (SIGRTMIN + 4)

struct held {
    int out;
    int statistics; /* of this thread: how long it ran, how long it had to wait for a processor */
    timer_t timer;
    int64_t began_ns, starved_ns;
};

/* A signal handler has no other way to hand over what it found. */
static void *frames[FRAMES_MAX];
static volatile sig_atomic_t frame_count;

/* What unwinds a stack believes what the compiler wrote about each instruction. For code in
 * assembler, such as LuaJIT's interpreter, that is wrong where a function begins and ends: then it
 * reads an address that is none. */
static sigjmp_buf lost_way;
static _Thread_local volatile sig_atomic_t unwinding; /* another thread's fault is its own */

static void lose_way(int signal_number)
{
    if (unwinding)
        siglongjmp(lost_way, 1);
    (void)signal(signal_number, SIG_DFL); /* it happens again when this returns */
}

static int frames_found(void)
{
    int count = 0;
    while (count < FRAMES_MAX && frames[count] != NULL)
        count++;
    return count;
}

static void take_stack(int signal)
{
    const struct sigaction guard = {.sa_handler = lose_way};
    struct sigaction segv, bus;
    (void)signal;
    (void)memset((void *)frames, 0, sizeof(frames));
    (void)sigaction(SIGSEGV, &guard, &segv); /* the arguments are right, here and below */
    (void)sigaction(SIGBUS, &guard, &bus);
    if (sigsetjmp(lost_way, 1) == 0) {
        unwinding = 1;
        (void)backtrace(frames, FRAMES_MAX);
    }
    unwinding = 0;
    (void)sigaction(SIGSEGV, &segv, NULL);
    (void)sigaction(SIGBUS, &bus, NULL);
    frame_count = frames_found();
}

static int64_t starved_ns(const struct held *held)
{
    char text[96];
    ssize_t size = pread(held->statistics, text, sizeof(text) - 1, 0);
    if (size <= 0)
        return 0;
    text[size] = '\0';
    const char *second = strchr(text, ' ');
    return second != NULL ? strtoll(second, NULL, 10) : 0;
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* it is there */
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int open_timer(struct held *held)
{
    struct sigaction action = {.sa_handler = take_stack, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = HELD_SIGNAL};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    (void)backtrace(frames, 1); /* loads what it needs, which a signal handler may not */
    return sigaction(HELD_SIGNAL, &action, NULL) < 0
               ? -1
               : timer_create(CLOCK_MONOTONIC, &event, &held->timer);
}

struct held *held_open(void)
{
    const char *path = getenv("CROWN_LOOP_HELD");
    struct held *held = path != NULL && path[0] != '\0' ? calloc(1, sizeof(*held)) : NULL;
    if (held == NULL)
        return NULL;
    held->out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    held->statistics = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (held->out >= 0 && held->statistics >= 0 && open_timer(held) == 0)
        return held;
    if (held->out >= 0)
        (void)close(held->out);
    if (held->statistics >= 0)
        (void)close(held->statistics);
    free(held);
    return NULL;
}

void held_close(struct held *held)
{
    if (held == NULL)
        return;
    (void)timer_delete(held->timer);
    (void)close(held->out);
    (void)close(held->statistics);
    free(held);
}

static void arm(const struct held *held, int64_t ns)
{
    const struct itimerspec spec = {.it_value = {.tv_nsec = ns}};
    (void)timer_settime(held->timer, 0, &spec, NULL); /* the arguments are right */
}

void held_begin(struct held *held)
{
    if (held == NULL)
        return;
    frame_count = 0;
    held->began_ns = now_ns();
    held->starved_ns = starved_ns(held);
    arm(held, HELD_NS);
}

void held_end(struct held *held)
{
    char line[96];
    if (held == NULL || held->began_ns == 0)
        return;
    arm(held, 0);
    int64_t took = now_ns() - held->began_ns;
    held->began_ns = 0;
    if (took > HELD_NS)
        took -= starved_ns(held) - held->starved_ns;
    if (took <= HELD_NS)
        return;
    int size = snprintf(line, sizeof(line), "process %d: the loop was held for %lld ms\n",
                        (int)getpid(), (long long)(took / NS_PER_MS));
    ssize_t written = write(held->out, line, (size_t)size);
    if (written == size)
        backtrace_symbols_fd(frames, frame_count, held->out);
}
