/* The memory of the Lua heap. */
#include "lua/slabs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"

#define BLOCKS 4000u
#define STEPS 200000u
#define SIZE_MOST 700u /* small ones and large ones */
#define MANY 300000u
#define SIZE 128u
#define MIB ((size_t)1 << 20)

struct held {
    unsigned char *at;
    size_t size;
    unsigned char with;
};

static struct slabs *slabs;

static int open(void **state)
{
    (void)state;
    slabs = slabs_new();
    return slabs != NULL ? 0 : -1;
}

static int close_it(void **state)
{
    (void)state;
    slabs_free(slabs);
    return 0;
}

static void assert_whole(const struct held *held, size_t size)
{
    for (size_t i = 0; i < size; i++)
        assert_int_equal(held->at[i], held->with);
}

static void resize(struct held *held, size_t size, unsigned char with)
{
    assert_whole(held, held->size);
    unsigned char *at = slabs_allocate(slabs, held->at, held->size, size);
    assert_true(size == 0 ? at == NULL : at != NULL);
    assert_int_equal((uintptr_t)at % 8, 0);
    held->at = at;
    assert_whole(held, size < held->size ? size : held->size);
    *held = (struct held){at, size, with};
    if (size > 0)
        memset(at, with, size);
}

static void a_block_keeps_what_is_written_whatever_others_do(void **state)
{
    static struct held held[BLOCKS];
    struct random random;
    (void)state;
    random_seed(&random, 42);
    for (unsigned step = 0; step < STEPS; step++) {
        struct held *one = &held[random_below(&random, BLOCKS)];
        size_t size = random_below(&random, 3) == 0 ? 0 : random_below(&random, SIZE_MOST) + 1;
        resize(one, size, (unsigned char)step);
        if (step % 1000 == 0)
            slabs_trim(slabs);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        resize(&held[i], 0, 0);
}

static void nothing_is_made_or_freed_of_nothing(void **state)
{
    (void)state;
    assert_null(slabs_allocate(slabs, NULL, 0, 0));
    char nothing;
    assert_null(slabs_allocate(slabs, &nothing, 0, 0));
}

static size_t resident(void)
{
    unsigned long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &all, &pages), 2);
    assert_int_equal(fclose(file), 0);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Of two sizes, taken in turn, one is given back. */
static void what_is_free_goes_back_to_the_system_also_beside_what_stays(void **state)
{
    (void)state;
    void **stays = calloc(MANY, sizeof(*stays)), **goes = calloc(MANY, sizeof(*goes));
    assert_true(stays != NULL && goes != NULL);
    for (unsigned i = 0; i < MANY; i++) {
        stays[i] = slabs_allocate(slabs, NULL, 0, SIZE);
        goes[i] = slabs_allocate(slabs, NULL, 0, SIZE + 8);
        assert_true(stays[i] != NULL && goes[i] != NULL);
        memset(stays[i], 1, SIZE);
        memset(goes[i], 1, SIZE + 8);
    }
    size_t most = resident();
    for (unsigned i = 0; i < MANY; i++)
        assert_null(slabs_allocate(slabs, goes[i], SIZE + 8, 0));
    slabs_trim(slabs);
    assert_true(resident() + (size_t)MANY * SIZE < most + MIB);
    for (unsigned i = 0; i < MANY; i++)
        assert_null(slabs_allocate(slabs, stays[i], SIZE, 0));
    free(stays);
    free(goes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open, close_it)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_block_keeps_what_is_written_whatever_others_do),
        TEST(nothing_is_made_or_freed_of_nothing),
        TEST(what_is_free_goes_back_to_the_system_also_beside_what_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
