#include "base/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

#define NAMES 3000u
#define STEPS 60000u
#define VALUE_MOST 40u

/* What is to be there, done the slow way: by the number in the name. */
struct known {
    bool there;
    uint32_t number;
    size_t value_size;
    char value[VALUE_MOST];
};

static struct known known[NAMES];

static size_t name_of(uint32_t i, char *name, size_t room)
{
    return (size_t)snprintf(name, room, "a name %u", i) + 1; /* with its end: a name is bytes */
}

static void put(struct rows *rows, uint32_t i, struct random *random)
{
    char name[32];
    struct known *one = &known[i];
    one->there = true;
    one->number = (uint32_t)random_below(random, UINT32_MAX);
    one->value_size = random_below(random, VALUE_MOST);
    for (size_t at = 0; at < one->value_size; at++)
        one->value[at] = (char)random_below(random, 256);
    struct row row = {.name = name,
                      .name_size = name_of(i, name, sizeof(name)),
                      .value = one->value,
                      .value_size = one->value_size,
                      .number = one->number};
    assert_int_equal(rows_put(rows, &row), 0);
}

static void take(struct rows *rows, uint32_t i)
{
    char name[32];
    size_t size = name_of(i, name, sizeof(name));
    assert_int_equal(rows_remove(rows, name, size), known[i].there);
    known[i].there = false;
}

static void assert_row(const struct known *one, const struct row *row)
{
    assert_int_equal(row->number, one->number);
    assert_int_equal(row->value_size, one->value_size);
    assert_memory_equal(row->value, one->value, one->value_size);
}

static void assert_all(const struct rows *rows)
{
    char name[32];
    struct row row;
    uint32_t there = 0;
    for (uint32_t i = 0; i < NAMES; i++) {
        size_t size = name_of(i, name, sizeof(name));
        assert_int_equal(rows_get(rows, name, size, &row), known[i].there);
        if (!known[i].there)
            continue;
        there++;
        assert_row(&known[i], &row);
    }
    assert_int_equal(rows_count(rows), there);
    assert_false(rows_at(rows, 0, &row));
    assert_false(rows_at(rows, there + 1, &row));
    for (uint32_t place = 1; place <= there; place++) {
        unsigned i;
        assert_true(rows_at(rows, place, &row));
        assert_int_equal(sscanf(row.name, "a name %u", &i), 1);
        assert_true(known[i].there);
        assert_row(&known[i], &row);
    }
}

/* It grows, goes up and down, and shrinks to nothing. */
static void what_was_put_and_not_removed_is_there(void **state)
{
    (void)state;
    struct rows *rows = rows_new();
    struct random random;
    random_seed(&random, 7);
    memset(known, 0, sizeof(known));
    assert_non_null(rows);
    for (unsigned step = 0; step < STEPS; step++) {
        uint32_t i = (uint32_t)random_below(&random, NAMES);
        /* Of ten steps so many put: most at first, few in the end. */
        if (random_below(&random, 10) < 9 - step * 9 / STEPS)
            put(rows, i, &random);
        else
            take(rows, i);
        if (step % 5000 == 0)
            assert_all(rows);
    }
    for (uint32_t i = 0; i < NAMES; i++)
        take(rows, i);
    assert_all(rows);
    put(rows, 5, &random);
    assert_all(rows);
    rows_free(rows);
}

/* Whoever walks from the last place to the first sees each row that was there when he began and is
 * still there in the end. */
static void a_walk_sees_all_that_stays(void **state)
{
    (void)state;
    static bool seen[NAMES];
    struct rows *rows = rows_new();
    struct random random;
    struct row row;
    random_seed(&random, 8);
    memset(known, 0, sizeof(known));
    for (uint32_t i = 0; i < NAMES; i++)
        put(rows, i, &random);
    for (uint32_t place = rows_count(rows); place > 0; place--) {
        unsigned i;
        if (place > rows_count(rows))
            continue;
        assert_true(rows_at(rows, place, &row));
        assert_int_equal(sscanf(row.name, "a name %u", &i), 1);
        seen[i] = true;
        if (place % 3 == 0)
            take(rows, (uint32_t)random_below(&random, NAMES));
    }
    for (uint32_t i = 0; i < NAMES; i++)
        assert_true(seen[i] || !known[i].there);
    rows_free(rows);
}

#if !defined(__SANITIZE_ADDRESS__) /* which keeps what is freed for a while */
#define MANY 100000u
#define PAGES_OF_MANY 6000u /* of the 7700 that many rows need */

static struct rows *many_rows(void)
{
    static const char value[256];
    struct rows *rows = rows_new();
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        struct row row = {.name = name,
                          .name_size = name_of(i, name, sizeof(name)),
                          .value = value,
                          .value_size = sizeof(value)};
        assert_int_equal(rows_put(rows, &row), 0);
    }
    return rows;
}

static unsigned pages_in_use(void)
{
    unsigned all;
    unsigned resident;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%u %u", &all, &resident), 2);
    assert_int_equal(fclose(file), 0);
    return resident;
}

/* Also where others that are still there have come later. */
static void memory_of_many_is_given_back(void **state)
{
    (void)state;
    struct rows *first = many_rows();
    struct rows *second = many_rows();
    unsigned before = pages_in_use();
    while (rows_shrink(first, 1000))
        assert_true(rows_count(first) > 0);
    assert_int_equal(rows_count(first), 0);
    assert_true(pages_in_use() + PAGES_OF_MANY < before);
    rows_free(first);
    rows_free(second);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_and_not_removed_is_there),
        cmocka_unit_test(a_walk_sees_all_that_stays),
#if !defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(memory_of_many_is_given_back),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
