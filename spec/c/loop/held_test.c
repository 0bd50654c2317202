#include "loop/loop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/crown-held-XXXXXX";
static struct loop *loop;
static void (*work)(void);
static long pause_ms;
static char text[16384]; /* the report */

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd) < 0 ? -1 : setenv("CROWN_LOOP_HELD", path, 1);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(path);
}

static void pause_it(void)
{
    struct timespec pause = {.tv_nsec = pause_ms * 1000000};
    while (nanosleep(&pause, &pause) < 0)
        ;
}

static void hold(struct loop_job *job)
{
    static unsigned turns;
    work();
    if (++turns % 2 == 0)
        loop_stop(loop);
    else
        loop_defer(loop, job); /* the first turn has no wait before it */
}

static void report(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t got = fread(text, 1, sizeof(text) - 1, file);
    assert_int_equal(0, fclose(file));
    text[got] = '\0';
}

static void run(void (*what)(void))
{
    struct crown_error err;
    struct loop_job job = {.run = hold};
    work = what;
    loop = loop_new(&err);
    assert_non_null(loop);
    loop_post(loop, &job);
    loop_run(loop);
    loop_free(loop);
}

#define TRIES 50

/* Until the report is as it should be. Where this process waits for a processor, its stack is taken
 * before the work has begun, or the machine has held it: then once more. */
static bool comes(void (*what)(void), bool (*is_right)(void))
{
    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(0, truncate(path, 0));
        run(what);
        report();
        if (is_right())
            return true;
    }
    return false;
}

static bool says_nothing(void)
{
    return text[0] == '\0';
}

static bool names_the_pause(void)
{
    return strstr(text, "the loop was held for ") != NULL && strstr(text, "nanosleep") != NULL;
}

static void what_held_the_loop_is_told_with_its_stack(void **state)
{
    (void)state;
    pause_ms = 1;
    assert_true(comes(pause_it, says_nothing));
    pause_ms = 60;
    assert_true(comes(pause_it, names_the_pause));
}

#ifdef __x86_64__

/* Returns when `*over` is set. The unwinder is told that the caller's frame is where `nowhere`
 * points to. */
void spin_without_a_frame(uintptr_t nowhere, const volatile sig_atomic_t *over);
__asm__(".text\n"
        ".globl spin_without_a_frame\n"
        ".type spin_without_a_frame, @function\n"
        "spin_without_a_frame:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa %rdi, 8\n"
        "1: cmpl $0, (%rsi)\n"
        "je 1b\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size spin_without_a_frame, . - spin_without_a_frame\n");

static volatile sig_atomic_t spun;

static void stop_spinning(int signal)
{
    (void)signal;
    spun = 1;
}

static void spin(void)
{
    /* Processor time, since what others use of it is not counted as held. */
    const struct itimerval wait = {.it_value = {.tv_usec = 60000}};
    spun = 0;
    assert_int_equal(0, setitimer(ITIMER_VIRTUAL, &wait, NULL));
    spin_without_a_frame(64, &spun);
}

static bool names_its_first_frame_alone(void)
{
    return strstr(text, "the loop was held for ") != NULL && strstr(text, "held_test") != NULL &&
           strstr(text, "ev_run") == NULL;
}

static void a_stack_that_cannot_be_followed_is_told_as_far_as_it_was(void **state)
{
    (void)state;
    assert_true(signal(SIGVTALRM, stop_spinning) != SIG_ERR);
    assert_true(comes(spin, names_its_first_frame_alone));
}

#else

static void a_stack_that_cannot_be_followed_is_told_as_far_as_it_was(void **state)
{
    (void)state;
    skip(); /* the function without a frame is written for one processor */
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_held_the_loop_is_told_with_its_stack),
        cmocka_unit_test(a_stack_that_cannot_be_followed_is_told_as_far_as_it_was)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
