/* Elections come and go for as long as a runtime lives: what each has taken is given back. */
#include "whole.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "candidate/journal.h"
#include "lua/vm.h"

#define ROUNDS 40

static void says(enum wire_type type)
{
    whole_keeper_says(type, (struct wire_message){.pid = 42});
}

static void send(void)
{
    lua_State *L = lua_vm_state(whole.env.lua);
    lua_pushboolean(L, true);
    assert_true(candidate_send(whole.candidate, L));
}

/* With a node, handlers and commands of its own, an outage, a term and a denial with a reason. */
static void live_once(void)
{
    whole.config.node = "w1";
    whole.config.has_won = whole.config.has_lost = true;
    whole.config.child = whole_command();
    whole.config.follower_child = whole_command();
    whole_does("claim", "return 'unknown', 'the store is away', 'store'");
    whole_elect();
    says(WIRE_STARTED);
    whole_does("claim", "return 'unknown', 'it is still away'");
    whole_pass(6 * S);
    whole_does("claim", "return 'denied', 4, 'two', 6, false, nil, 'for a reason'");
    whole_pass(12 * S);
    whole_does("claim", "return 'denied', 4, 'three', 7, false, nil, 'for another reason'");
    whole_pass(5 * S);
    for (unsigned i = 0; i < 6; i++)
        send();
    whole_does("claim", "return 'granted', 10, 30, 8");
    whole_pass(6 * S);
    says(WIRE_GONE);
    whole_does("refresh", "return 'unknown', 'away once more'");
    whole_pass(11 * S);
    candidate_free(whole.candidate);
    whole.candidate = NULL;
    whole_skip();
}

static size_t used(void)
{
    return mallinfo2().uordblks;
}

/* Now and then something grows that is kept for the next one: each time would be a leak. */
static void assert_takes_nothing(void (*act)(void))
{
    unsigned grew = 0;
    for (unsigned i = 0; i < ROUNDS; i++)
        act();
    for (unsigned i = 0; i < ROUNDS; i++) {
        const size_t before = used();
        act();
        grew += used() > before;
    }
    assert_true(grew < ROUNDS / 2);
}

static void elections_that_come_and_go_take_no_memory(void **state)
{
    (void)state;
    assert_takes_nothing(live_once);
}

static void be_refused(void)
{
    struct crown_error err = {0};
    lua_newtable(lua_vm_state(whole.env.lua));
    whole.config.child = whole_command();
    whole.config.follower_child = whole_command();
    assert_null(candidate_new(&whole.env, lua_vm_state(whole.env.lua), &whole.config, &err));
}

static void one_that_is_refused_takes_none(void **state)
{
    (void)state;
    whole_elect();
    assert_takes_nothing(be_refused);
}

/* --- the journal */

static unsigned maps_of_journals(void)
{
    char line[512];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL)
        count += strstr(line, "memfd:journal") != NULL;
    assert_int_equal(fclose(maps), 0);
    return count;
}

static void a_journal_that_is_closed_has_no_pages_and_no_descriptor(void **state)
{
    (void)state;
    char name[16];
    const unsigned before = maps_of_journals();
    int fd = memfd_create("journal", MFD_CLOEXEC);
    struct journal *journal = journal_open(fd, NULL);
    assert_non_null(journal);
    for (unsigned i = 0; i < 20000; i++) { /* in several tables */
        (void)snprintf(name, sizeof(name), "%u", i);
        journal_set(journal, name, i + 1);
    }
    assert_true(maps_of_journals() > before);
    journal_close(journal);
    assert_int_equal(maps_of_journals(), before);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

#define WHOLE_TEST(name) cmocka_unit_test_setup_teardown(name, whole_open, whole_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(elections_that_come_and_go_take_no_memory),
        WHOLE_TEST(one_that_is_refused_takes_none),
        WHOLE_TEST(a_journal_that_is_closed_has_no_pages_and_no_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
