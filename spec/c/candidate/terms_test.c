/* What a term runs and tells from the win to its end, in which order, and what a dead runtime has
 * left. */
#include "whole.h"

#include <lauxlib.h>

#include "candidate/journal.h"
#include "lua/vm.h"

static void with_handlers(void)
{
    whole.config.has_won = whole.config.has_lost = true;
    whole.config.has_campaign = whole.config.has_leader = true;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_does("refresh", "return 'granted', 10, 30, 7");
    whole_does("won", "wait(1000)");
}

static uint64_t journalled(void)
{
    return journal_get(whole.env.journal, "a");
}

static void handlers_are_called_with_what_has_happened(void **state)
{
    (void)state;
    with_handlers();
    whole_does("campaign", "error('no campaign', 0)");
    whole_does("leader", "error('no leader', 0)");
    whole_elect();
    assert_did(
        "runtime is held", "debug process.initialized phase=init epoch=0",
        "shown following, 0 lead", "asks campaign following",
        "error handler.error phase=following epoch=0 function=campaign error=\"no campaign\"",
        "   stack traceback:", "    [C]: in function 'error'", "    test:1: in main chunk",
        "asks claim", "info  leadership.claimed phase=leading leader=one epoch=7",
        "debug leadership.changed phase=leading leader=one epoch=7", "shown leading, 1 lead",
        "asks won 7", "asks leader one 7",
        "error handler.error phase=leading leader=one epoch=7 function=leader error=\"no leader\"",
        "   stack traceback:", "    [C]: in function 'error'", "    test:1: in main chunk");
    whole_does("campaign", "return");
    whole_pass(10 * S);
    assert_did("asks campaign leading", "asks refresh",
               "debug leadership.refreshed phase=leading leader=one epoch=7");
    assert_true(journalled() == (7 | JOURNAL_UNTOLD));
    candidate_won(whole.candidate);
    assert_int_equal(journalled(), 7);
    whole_does("lost", "error('no lost', 0)");
    candidate_abdicate(whole.candidate);
    whole_pass(0);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "asks lost abdicated",
               "error handler.error phase=finishing epoch=7 function=lost error=\"no lost\"",
               "   stack traceback:", "    [C]: in function 'error'", "    test:1: in main chunk",
               "asks abdicate false", "info  leadership.abdicated phase=following epoch=7",
               "shown following, 0 lead");
    assert_int_equal(journalled(), 0);
    whole_does("claim", "return 'denied', 30, 'two', 8");
    whole_does("leader", "return");
    whole_pass(6 * S);
    assert_did("asks campaign following", "asks claim",
               "debug leadership.rejected phase=following leader=two epoch=8",
               "info  leadership.changed phase=following leader=two epoch=8", "asks leader two 8");
}

static void what_is_not_there_is_not_called(void **state)
{
    (void)state;
    whole_does("claim", "return 'granted', 10, 30, 7");
    whole_elect();
    whole_skip();
    assert_int_equal(journalled(), 7);
    candidate_abdicate(whole.candidate);
    whole_pass(0);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

/* Its `won` has not begun to run: nothing has to be undone. */
static void who_was_not_told_of_a_win_is_told_of_no_loss(void **state)
{
    (void)state;
    with_handlers();
    whole_elect();
    whole_skip();
    candidate_abdicate(whole.candidate);
    whole_pass(0);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void a_win_whose_handler_fails_is_given_up(void **state)
{
    (void)state;
    with_handlers();
    whole_does("won", "error('no way', 0)");
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown following, 0 lead", "asks campaign following", "asks claim",
               "info  leadership.claimed phase=leading leader=one epoch=7",
               "debug leadership.changed phase=leading leader=one epoch=7", "shown leading, 1 lead",
               "asks won 7",
               "error handler.error phase=leading leader=one epoch=7 function=won error=\"no way\"",
               "   stack traceback:", "    [C]: in function 'error'", "    test:1: in main chunk",
               "warn  leadership.lost phase=finishing leader=one epoch=7 reason=handler_failed",
               "shown finishing, 0 lead", "asks leader one 7", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void a_lost_that_takes_too_long_is_dropped(void **state)
{
    (void)state;
    with_handlers();
    whole_does("lost", "wait(1000)");
    whole_elect();
    candidate_won(whole.candidate);
    whole_skip();
    candidate_abdicate(whole.candidate);
    whole_pass(4 * S);
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "asks lost abdicated",
               "error handler.error phase=finishing epoch=7 function=lost error=\"not done in the "
               "time allowed: dropped\"",
               "asks abdicate false", "info  leadership.abdicated phase=following epoch=7",
               "shown following, 0 lead");
    whole_pass(30 * S);
    assert_did(
        "asks campaign following", "asks claim",
        "error oracle.amnesia phase=following leader=one epoch=7 error=\"the store may have lost "
        "the record of who leads: nobody claims until a lease that it may have granted is over\"",
        "asks abdicate false");
}

/* What holds the lock of a lease: it stays open in all that the term starts. */
static void a_term_holds_what_its_grant_names(void **state)
{
    (void)state;
    with_handlers();
    whole_does("claim", "return 'granted', 10, 30, 7, 50, 51, 52");
    whole_elect();
    const int *fds = whole.candidate->term->hold.fds;
    assert_int_equal(fds[0], 50);
    assert_int_equal(fds[1], 51);
    assert_int_equal(fds[2], 52);
    assert_int_equal(scope_hold(whole.candidate->term->scope)->fds[2], 52);
    whole_pass(10 * S); /* whose grant names none */
    assert_int_equal(fds[0], -1);
    assert_int_equal(fds[1], -1);
    assert_int_equal(fds[2], -1);
}

/* --- what the runtime before has left */

static void owe(uint64_t epoch)
{
    whole.config.has_won = whole.config.has_lost = true;
    whole_does("claim", "return 'denied', 30, 'two', 8");
    journal_set(whole.env.journal, "a", epoch);
}

static void the_loss_of_a_dead_runtime_is_made_up_for(void **state)
{
    (void)state;
    owe(5);
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "warn  leadership.lost phase=init leader=one epoch=5 reason=runtime_died",
               "shown finishing, 0 lead", "asks lost runtime_died", "shown following, 0 lead",
               "asks claim", "debug leadership.rejected phase=following leader=two epoch=8",
               "info  leadership.changed phase=following leader=two epoch=8");
    assert_int_equal(journalled(), 0);
}

/* The event alone tells of it. */
static void nothing_runs_for_the_lost_term(void)
{
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "warn  leadership.lost phase=init leader=one epoch=5 reason=runtime_died",
               "shown following, 0 lead", "asks claim",
               "debug leadership.rejected phase=following leader=two epoch=8",
               "info  leadership.changed phase=following leader=two epoch=8");
    assert_int_equal(journalled(), 0);
}

static void who_was_not_told_of_a_win_is_owed_nothing(void **state)
{
    (void)state;
    owe(5 | JOURNAL_UNTOLD);
    nothing_runs_for_the_lost_term();
}

static void without_a_handler_the_event_is_all(void **state)
{
    (void)state;
    owe(5);
    whole.config.has_lost = false;
    nothing_runs_for_the_lost_term();
}

static void a_node_of_its_own_has_a_journal_of_its_own(void **state)
{
    (void)state;
    owe(5);
    journal_set(whole.env.journal, "a\nw1", 6);
    whole.config.node = "w1";
    whole_elect();
    assert_did(
        "runtime is held", "debug process.initialized name=a node=w1 phase=init epoch=0",
        "warn  leadership.lost name=a node=w1 phase=init leader=w1 epoch=6 reason=runtime_died",
        "shown finishing, 0 lead", "asks lost runtime_died", "shown following, 0 lead",
        "asks claim", "debug leadership.rejected name=a node=w1 phase=following leader=two epoch=8",
        "info  leadership.changed name=a node=w1 phase=following leader=two epoch=8");
    assert_int_equal(journalled(), 5);
    assert_int_equal(journal_get(whole.env.journal, "a\nw1"), 0);
    assert_string_equal(candidate_node(whole.candidate), "w1");
}

static void a_runtime_that_ends_makes_up_for_it_too(void **state)
{
    (void)state;
    owe(5);
    whole.env.stopping = true;
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "warn  leadership.lost phase=init leader=one epoch=5 reason=runtime_died",
               "shown finishing, 0 lead", "asks lost runtime_died", "shown finishing, 0 lead",
               "debug process.terminating phase=finishing epoch=0", "runtime is let go");
    assert_int_equal(journalled(), 0);
}

static void a_runtime_that_ends_begins_nothing(void **state)
{
    (void)state;
    whole.env.stopping = true;
    whole_elect();
    assert_did("runtime is held", "debug process.initialized phase=init epoch=0",
               "shown finishing, 0 lead", "debug process.terminating phase=finishing epoch=0",
               "runtime is let go");
    assert_true(candidate_finished(whole.candidate));
}

/* --- its end */

static void one_that_was_closed_does_nothing_more(void **state)
{
    (void)state;
    with_handlers();
    whole_elect();
    whole_skip();
    assert_int_equal(candidates_count(whole.env.candidates), 1);
    candidate_close(whole.candidate);
    assert_did("debug process.terminating phase=leading leader=one epoch=7", "runtime is let go");
    assert_true(candidate_finished(whole.candidate));
    assert_int_equal(candidates_count(whole.env.candidates), 0);
    candidate_close(whole.candidate);
    candidate_stop(whole.candidate);
    candidate_abdicate(whole.candidate);
    candidate_start(whole.candidate);
    whole_pass(100 * S);
    assert_did(NULL);
    lua_State *L = lua_vm_state(whole.env.lua);
    const int top = lua_gettop(L);
    lua_pushboolean(L, true);
    assert_false(candidate_send(whole.candidate, L));
    assert_int_equal(lua_gettop(L), top);
}

/* A million elections may come and go. */
static void one_that_has_ended_leaves_nothing_in_lua(void **state)
{
    (void)state;
    lua_State *L = lua_vm_state(whole.env.lua);
    whole_does("claim", "wait(1000)");
    for (unsigned i = 0; i < 3; i++) {
        const int top = lua_gettop(L);
        lua_pushboolean(L, true);
        const int before = luaL_ref(L, LUA_REGISTRYINDEX);
        luaL_unref(L, LUA_REGISTRYINDEX, before);
        whole_elect();
        for (unsigned message = 0; message < 5; message++) {
            lua_pushboolean(L, true);
            assert_true(candidate_send(whole.candidate, L));
        }
        whole_pass(0);
        candidate_free(whole.candidate);
        whole.candidate = NULL;
        assert_int_equal(lua_gettop(L), top);
        for (int reference = 1; reference < before + 20; reference++) {
            lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
            assert_true(reference >= before || !lua_isboolean(L, -1));
            assert_true(reference < before || !lua_istable(L, -1));
            lua_pop(L, 1);
        }
    }
}

static void a_name_that_is_taken_is_refused(void **state)
{
    (void)state;
    struct crown_error err = {0};
    lua_State *L = lua_vm_state(whole.env.lua);
    whole_elect();
    whole_skip();
    const int top = lua_gettop(L);
    lua_newtable(L);
    whole.config.child = whole_command();
    whole.config.follower_child = whole_command();
    assert_null(candidate_new(&whole.env, L, &whole.config, &err));
    assert_int_equal(lua_gettop(L), top);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_int_equal(candidates_count(whole.env.candidates), 1);
    assert_ptr_equal(candidates_find(whole.env.candidates, "a"), whole.candidate);
    whole.config.child = whole.config.follower_child = NULL;
    assert_did(NULL);
}

static void a_timing_that_could_overlap_is_refused(void **state)
{
    (void)state;
    struct crown_error err = {0};
    lua_State *L = lua_vm_state(whole.env.lua);
    const int top = lua_gettop(L);
    lua_newtable(L);
    whole.config.election.timing.lease_ns = 1 * S;
    whole.config.election.timing.stop_timeout_ns = 20 * S;
    assert_null(candidate_new(&whole.env, L, &whole.config, &err));
    assert_int_equal(lua_gettop(L), top);
    assert_int_equal(err.code, ERROR_USAGE);
    assert_int_equal(candidates_count(whole.env.candidates), 0);
}

#define WHOLE_TEST(name) cmocka_unit_test_setup_teardown(name, whole_open, whole_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WHOLE_TEST(handlers_are_called_with_what_has_happened),
        WHOLE_TEST(what_is_not_there_is_not_called),
        WHOLE_TEST(who_was_not_told_of_a_win_is_told_of_no_loss),
        WHOLE_TEST(a_win_whose_handler_fails_is_given_up),
        WHOLE_TEST(a_lost_that_takes_too_long_is_dropped),
        WHOLE_TEST(a_term_holds_what_its_grant_names),
        WHOLE_TEST(the_loss_of_a_dead_runtime_is_made_up_for),
        WHOLE_TEST(who_was_not_told_of_a_win_is_owed_nothing),
        WHOLE_TEST(without_a_handler_the_event_is_all),
        WHOLE_TEST(a_node_of_its_own_has_a_journal_of_its_own),
        WHOLE_TEST(a_runtime_that_ends_makes_up_for_it_too),
        WHOLE_TEST(a_runtime_that_ends_begins_nothing),
        WHOLE_TEST(one_that_was_closed_does_nothing_more),
        WHOLE_TEST(one_that_has_ended_leaves_nothing_in_lua),
        WHOLE_TEST(a_name_that_is_taken_is_refused),
        WHOLE_TEST(a_timing_that_could_overlap_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
