/* Which election was led, and under which epoch, by a runtime that is dead. */
#include "candidate/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define NAMES 300000u /* several for each place of the table */

static int memory = -1;
static struct journal *journal;

/* As another runtime does: with a descriptor of its own. */
static void open_again(void)
{
    int fd = dup(memory);
    journal_close(journal);
    journal = fd < 0 ? NULL : journal_open(fd, NULL);
}

static int open_journal(void **state)
{
    (void)state;
    memory = memfd_create("journal", MFD_CLOEXEC);
    journal = NULL;
    open_again();
    return journal != NULL ? 0 : -1;
}

static int close_journal(void **state)
{
    (void)state;
    journal_close(journal);
    return close(memory);
}

static void what_was_led_is_found_by_the_next_runtime_until_it_is_taken_back(void **state)
{
    (void)state;
    journal_set(journal, "a", 5);
    journal_set(journal, "b", 6);
    open_again();
    assert_int_equal(journal_get(journal, "a"), 5);
    assert_int_equal(journal_get(journal, "b"), 6);
    assert_int_equal(journal_get(journal, "c"), 0);
    journal_set(journal, "a", 0);
    assert_int_equal(journal_get(journal, "a"), 0);
    assert_int_equal(journal_get(journal, "b"), 6);
}

static void no_name_is_taken_for_another(void **state)
{
    (void)state;
    char name[32];
    journal_set(journal, "a", 5);
    for (unsigned i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof(name), "name-%u", i);
        assert_int_equal(journal_get(journal, name), 0);
    }
}

static void names_that_share_a_place_are_kept_apart_however_many_they_are(void **state)
{
    (void)state;
    char name[32];
    const unsigned many = 150000;
    for (unsigned i = 0; i < many; i++) {
        (void)snprintf(name, sizeof(name), "name-%u", i);
        journal_set(journal, name, i + 1);
    }
    open_again();
    for (unsigned i = 0; i < many; i++) {
        (void)snprintf(name, sizeof(name), "name-%u", i);
        assert_int_equal(journal_get(journal, name), i + 1);
    }
}

#define JOURNAL_TEST(name) cmocka_unit_test_setup_teardown(name, open_journal, close_journal)

int main(void)
{
    const struct CMUnitTest tests[] = {
        JOURNAL_TEST(what_was_led_is_found_by_the_next_runtime_until_it_is_taken_back),
        JOURNAL_TEST(no_name_is_taken_for_another),
        JOURNAL_TEST(names_that_share_a_place_are_kept_apart_however_many_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
