#include "loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/crown-held-XXXXXX";
static struct loop *loop;
static long pause_ms;

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

static void hold(struct loop_job *job)
{
    static unsigned turns;
    struct timespec pause = {.tv_nsec = pause_ms * 1000000};
    while (nanosleep(&pause, &pause) < 0)
        ;
    if (++turns % 2 == 0)
        loop_stop(loop);
    else
        loop_defer(loop, job); /* the first turn has no wait before it */
}

static size_t report(char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t got = fread(text, 1, size - 1, file);
    assert_int_equal(0, fclose(file));
    text[got] = '\0';
    return got;
}

static void run(long ms)
{
    struct crown_error err;
    struct loop_job job = {.run = hold};
    pause_ms = ms;
    loop = loop_new(&err);
    assert_non_null(loop);
    loop_post(loop, &job);
    loop_run(loop);
    loop_free(loop);
}

static void what_held_the_loop_is_told_with_its_stack(void **state)
{
    (void)state;
    char text[16384];
    run(1);
    assert_int_equal(0, report(text, sizeof(text)));
    run(60);
    (void)report(text, sizeof(text));
    assert_non_null(strstr(text, "the loop was held for "));
    assert_non_null(strstr(text, "nanosleep"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_held_the_loop_is_told_with_its_stack)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
