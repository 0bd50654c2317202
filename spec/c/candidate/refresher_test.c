/* A grant may come with a refresher, which is asked in place of the oracle for each refresh, and to
 * give the lease back. */
#include "candidate/refresher.h"

#include "whole.h"

#include <lauxlib.h>
#include <string.h>

#include "lua/vm.h"

static struct refresher *refresher;
static struct op op;
static struct refresher_term asked; /* as it was asked or looked last */
static enum refresher_answer answer;
static const char *code;
static bool can_ask, at_once;
static char said[256]; /* a letter for each that was called */

static void say(const char *what)
{
    (void)strncat(said, what, sizeof(said) - strlen(said) - 1);
}

static void assert_said(const char *wanted)
{
    assert_string_equal(said, wanted);
    said[0] = '\0';
}

static void cancel(struct op *cancelled)
{
    assert_ptr_equal(cancelled, &op);
    say("cancel ");
}

static struct op *begin(lua_State *L)
{
    lua_getglobal(L, "state");
    assert_true(lua_rawequal(L, -1, -2));
    lua_pop(L, 1);
    op_init(&op, whole.env.loop, cancel);
    return can_ask ? &op : NULL;
}

static struct op *ask(struct refresher *one, const struct refresher_term *term, lua_State *L)
{
    assert_ptr_equal(one, refresher);
    asked = *term;
    say("ask ");
    return begin(L);
}

static struct op *release(struct refresher *one, lua_State *L)
{
    assert_ptr_equal(one, refresher);
    say("release ");
    return begin(L);
}

static bool grants(struct refresher *one, const struct refresher_term *term,
                   struct refresher_found *found)
{
    (void)one;
    asked = *term;
    found->past_ns = S;
    return at_once;
}

static enum refresher_answer look(struct refresher *one, struct op *done,
                                  const struct refresher_term *term, struct refresher_found *found)
{
    assert_ptr_equal(one, refresher);
    assert_ptr_equal(done, &op);
    assert_int_equal(found->ttl_ns, refresher->ttl_ns);
    assert_int_equal(found->delay_ns, refresher->delay_ns);
    asked = *term;
    found->err = (struct crown_error){.code = ERROR_STORE, .message = "no idea"};
    found->code = code;
    say("look ");
    return answer;
}

static void forget(struct op *done)
{
    assert_ptr_equal(done, &op);
    say("forget ");
}

static int open_refresher(void **state)
{
    if (whole_open(state) < 0)
        return -1;
    said[0] = '\0';
    at_once = false;
    can_ask = true;
    answer = REFRESHER_SAME;
    code = NULL;
    lua_State *L = lua_vm_state(whole.env.lua);
    refresher = lua_newuserdata(L, sizeof(*refresher));
    *refresher = (struct refresher){.ttl_ns = 20 * S,
                                    .delay_ns = 6 * S,
                                    .ask = ask,
                                    .look = look,
                                    .release = release,
                                    .forget = forget};
    refresher_keep(L);
    lua_setglobal(L, "mine");
    return 0;
}

static void lead(void)
{
    whole_does("claim", "return 'granted', 10, 30, 7, nil, nil, nil, mine");
    whole_does("refresh", "return 'granted', 10, 30, 7, nil, nil, nil, mine");
    whole_elect();
    whole_skip();
}

static int64_t left(void)
{
    return candidate_deadline(whole.candidate) - loop_now(whole.env.loop);
}

static void a_refresh_is_its_refreshers(void **state)
{
    (void)state;
    lead();
    candidate_stand(whole.candidate, true);
    whole_pass(9 * S);
    assert_said("");
    whole_pass(S);
    assert_said("ask ");
    assert_int_equal(asked.epoch, 7);
    assert_int_equal(asked.asked_ns, whole.candidate->call_began_ns);
    assert_true(asked.stands);
    assert_did(NULL);
    whole_pass(S);
    asked.asked_ns = 0;
    op_complete(&op);
    whole_pass(0);
    assert_said("look ");
    assert_int_equal(asked.asked_ns, whole.candidate->call_began_ns);
    assert_int_equal(asked.epoch, 7);
    assert_did("debug leadership.refreshed phase=leading leader=one epoch=7");
    assert_true(left() < 19 * S && left() > 18 * S); /* 20 s from when it was asked */
    assert_int_equal(whole_calls("refresh"), 1);
    candidate_stand(whole.candidate, false);
    whole_pass(5 * S);
    assert_said("ask ");
    assert_false(asked.stands);
}

static void the_oracle_is_asked_where_something_has_changed(void **state)
{
    (void)state;
    answer = REFRESHER_OTHER;
    lead();
    whole_pass(10 * S);
    op_complete(&op);
    whole_pass(0);
    assert_said("ask look ");
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=7");
    assert_int_equal(whole_calls("refresh"), 1);
    can_ask = false;
    whole_pass(10 * S);
    assert_said("ask ");
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=7");
}

static void its_failure_is_told_as_the_oracles(void **state)
{
    (void)state;
    struct candidate_status status;
    answer = REFRESHER_UNKNOWN;
    lead();
    whole_pass(10 * S);
    op_complete(&op);
    whole_pass(0);
    assert_did(
        "error oracle.error phase=leading leader=one epoch=7 function=refresh error=\"no idea\"",
        "warn  leadership.uncertain phase=leading leader=one epoch=7");
    candidate_status(whole.candidate, &status);
    assert_false(status.answers);
    code = "store";
    whole_pass(S);
    op_complete(&op);
    whole_pass(0);
    candidate_status(whole.candidate, &status);
    assert_true(status.answers);
    assert_int_equal(whole_calls("refresh"), 2);
    answer = REFRESHER_SAME;
    whole_skip();
    whole_pass(S);
    op_complete(&op);
    whole_pass(0);
    assert_did("debug leadership.refreshed phase=leading leader=one epoch=7");
    candidate_status(whole.candidate, &status);
    assert_false(status.answers);
    assert_int_equal(status.failing_since_ns, TIME_NEVER);
}

static void it_may_grant_by_what_others_have_asked(void **state)
{
    (void)state;
    refresher->grants = grants;
    lead();
    whole_pass(10 * S);
    assert_said("ask ");
    op_complete(&op);
    whole_pass(0);
    at_once = true;
    whole_skip();
    said[0] = '\0';
    whole_pass(6 * S);
    assert_said("");
    assert_did("debug leadership.refreshed phase=leading leader=one epoch=7");
    assert_true(left() < 19 * S && left() > 18 * S); /* 20 s from a second before */
    assert_int_equal(whole_calls("refresh"), 2);
}

/* The oracle's state says so: what it hears from then on is of another's term. */
static bool says_that_it_has_left(void)
{
    lua_State *L = lua_vm_state(whole.env.lua);
    lua_getglobal(L, "state");
    lua_getfield(L, -1, "leading");
    bool left_it = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
    lua_pop(L, 2);
    return left_it;
}

static void it_gives_the_lease_back(void **state)
{
    (void)state;
    lead();
    whole_pass(10 * S);
    op_complete(&op);
    whole_pass(0);
    assert_said("ask look ");
    assert_false(says_that_it_has_left());
    whole_skip();
    candidate_abdicate(whole.candidate);
    whole_pass(0);
    assert_said("release ");
    assert_true(says_that_it_has_left());
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead");
    op_complete(&op);
    whole_pass(0);
    assert_said("forget ");
    assert_did("info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
    assert_int_equal(whole_calls("abdicate"), 1);
}

static void one_that_cannot_release_leaves_it_to_the_oracle(void **state)
{
    (void)state;
    refresher->release = NULL;
    lead();
    candidate_abdicate(whole.candidate);
    whole_pass(0);
    assert_said("");
    assert_did("info  leadership.lost phase=finishing leader=one epoch=7 reason=abdicated",
               "shown finishing, 0 lead", "asks abdicate false",
               "info  leadership.abdicated phase=following epoch=7", "shown following, 0 lead");
}

static void one_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    lead();
    whole_pass(10 * S);
    assert_said("ask ");
    whole_skip();
    whole_pass(2 * S);
    assert_said("");
    can_ask = false;
    whole_pass(3 * S);
    assert_said("cancel ask ");
    assert_did("error oracle.error phase=leading leader=one epoch=7 function=refresh "
               "error=\"words://here: no answer in the time allowed\"",
               "warn  leadership.uncertain phase=leading leader=one epoch=7", "asks refresh",
               "debug leadership.refreshed phase=leading leader=one epoch=7");
}

static void one_that_is_asked_while_all_ends_is_cancelled(void **state)
{
    (void)state;
    lead();
    whole_pass(10 * S);
    assert_said("ask ");
    candidate_close(whole.candidate);
    assert_said("cancel ");
}

/* A claim may be answered by a grant without one. */
static void a_grant_without_one_leaves_refreshes_to_the_oracle(void **state)
{
    (void)state;
    answer = REFRESHER_OTHER;
    lead();
    whole_does("refresh", "return 'granted', 10, 30, 7, nil, nil, nil, {}");
    whole_pass(10 * S);
    op_complete(&op);
    whole_pass(0);
    assert_said("ask look ");
    whole_skip();
    whole_pass(10 * S);
    assert_said("");
    assert_did("asks refresh", "debug leadership.refreshed phase=leading leader=one epoch=7");
}

#define REFRESHER_TEST(name) cmocka_unit_test_setup_teardown(name, open_refresher, whole_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFRESHER_TEST(a_refresh_is_its_refreshers),
        REFRESHER_TEST(the_oracle_is_asked_where_something_has_changed),
        REFRESHER_TEST(its_failure_is_told_as_the_oracles),
        REFRESHER_TEST(it_may_grant_by_what_others_have_asked),
        REFRESHER_TEST(it_gives_the_lease_back),
        REFRESHER_TEST(one_that_cannot_release_leaves_it_to_the_oracle),
        REFRESHER_TEST(one_that_does_not_answer_is_given_up),
        REFRESHER_TEST(one_that_is_asked_while_all_ends_is_cancelled),
        REFRESHER_TEST(a_grant_without_one_leaves_refreshes_to_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
