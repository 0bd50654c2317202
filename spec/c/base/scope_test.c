#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/container.h"

/* A member that ends at once, or only when its test says so. */
struct thing {
    struct scope_member member;
    bool slow;
    unsigned ended, told;
    struct scope_instants instants;
    struct thing *takes_along; /* leaves together with this one */
};

static void thing_end(struct scope_member *member)
{
    struct thing *thing = container_of(member, struct thing, member);
    thing->ended++;
    if (thing->slow)
        return;
    if (thing->takes_along != NULL)
        scope_leave(&thing->takes_along->member);
    scope_leave(member);
}

static void thing_told(struct scope_member *member, const struct scope_instants *instants)
{
    struct thing *thing = container_of(member, struct thing, member);
    thing->told++;
    thing->instants = *instants;
}

static const struct scope_kind remote = {"remote", thing_end, thing_told};
static const struct scope_kind local = {"local", thing_end, NULL};

static void count(void *context)
{
    (*(unsigned *)context)++;
}

static const struct scope_owner counts_empty = {.empty = count};
static const struct scope_owner counts_quiet = {.quiet = count};

static void an_empty_one_is_gone_as_it_closes(void **state)
{
    unsigned empty = 0;
    struct scope *scope = scope_new(&counts_empty, &empty);
    (void)state;
    assert_int_equal(empty, 0);
    scope_close(scope);
    assert_int_equal(empty, 1);
    scope_close(scope);
    assert_int_equal(empty, 1);
    scope_free(scope);
    assert_int_equal(empty, 1);
}

static void it_is_not_gone_before_it_closes(void **state)
{
    unsigned empty = 0;
    struct thing thing = {.slow = false};
    struct scope *scope = scope_new(&counts_empty, &empty);
    (void)state;
    assert_true(scope_enter(scope, &thing.member, &local));
    scope_leave(&thing.member);
    assert_int_equal(empty, 0);
    assert_true(scope_enter(scope, &thing.member, &local));
    scope_free(scope);
    assert_int_equal(thing.ended, 1);
}

static void the_owner_hears_when_the_last_has_left(void **state)
{
    unsigned empty = 0;
    struct thing fast = {.slow = false}, first = {.slow = true}, last = {.slow = true};
    struct scope *scope = scope_new(&counts_empty, &empty);
    (void)state;
    assert_true(scope_enter(scope, &first.member, &remote));
    assert_true(scope_enter(scope, &fast.member, &local));
    assert_true(scope_enter(scope, &last.member, &remote));
    scope_close(scope);
    assert_int_equal(first.ended + fast.ended + last.ended, 3);
    scope_leave(&last.member);
    assert_int_equal(empty, 0);
    scope_leave(&first.member);
    assert_int_equal(empty, 1);
    scope_leave(&first.member);
    assert_int_equal(empty, 1);
    scope_free(scope);
}

static void a_closed_one_takes_nobody(void **state)
{
    unsigned empty = 0;
    struct thing thing = {.slow = false};
    struct scope *scope = scope_new(&counts_empty, &empty);
    (void)state;
    scope_close(scope);
    assert_true(scope_closed(scope));
    assert_false(scope_enter(scope, &thing.member, &local));
    assert_null(thing.member.scope);
    scope_leave(&thing.member);
    assert_int_equal(empty, 1);
    scope_free(scope);
}

static void one_that_ends_may_take_others_along(void **state)
{
    unsigned empty = 0;
    struct thing second = {.slow = true}, third = {.slow = false};
    struct thing first = {.takes_along = &second};
    struct scope *scope = scope_new(&counts_empty, &empty);
    (void)state;
    assert_true(scope_enter(scope, &first.member, &local));
    assert_true(scope_enter(scope, &second.member, &local));
    assert_true(scope_enter(scope, &third.member, &local));
    scope_close(scope);
    assert_int_equal(second.ended, 0);
    assert_int_equal(third.ended, 1);
    assert_int_equal(empty, 1);
    scope_free(scope);
}

static void instants_reach_those_there_are_and_those_that_come(void **state)
{
    struct thing there = {.slow = false}, here = {.slow = false}, late = {.slow = false};
    struct scope *scope = scope_new(NULL, NULL);
    const struct scope_instants instants = {1, 2, 3};
    (void)state;
    assert_int_equal(scope_instants(scope)->deadline_ns, TIME_NEVER);
    assert_true(scope_enter(scope, &there.member, &remote));
    assert_true(scope_enter(scope, &here.member, &local));
    scope_set_instants(scope, &instants);
    assert_int_equal(there.told, 1);
    assert_int_equal(there.instants.stop_at_ns, 1);
    assert_int_equal(there.instants.kill_at_ns, 2);
    assert_int_equal(there.instants.deadline_ns, 3);
    assert_int_equal(here.told, 0);
    assert_true(scope_enter(scope, &late.member, &remote));
    assert_int_equal(late.told, 0);
    assert_int_equal(scope_instants(scope)->kill_at_ns, 2);
    scope_free(scope);
}

static void instants_reach_those_that_are_ending(void **state)
{
    struct thing thing = {.slow = true};
    struct scope *scope = scope_new(NULL, NULL);
    const struct scope_instants instants = {1, 2, 3};
    (void)state;
    assert_true(scope_enter(scope, &thing.member, &remote));
    scope_close(scope);
    scope_set_instants(scope, &instants);
    assert_int_equal(thing.told, 1);
    scope_leave(&thing.member);
    scope_free(scope);
}

static void a_member_moves_and_is_missed_by_nobody(void **state)
{
    unsigned empty = 0;
    struct thing thing = {.slow = true};
    struct scope *term = scope_new(&counts_empty, &empty), *candidate = scope_new(NULL, NULL);
    (void)state;
    assert_true(scope_enter(term, &thing.member, &remote));
    scope_close(term);
    assert_int_equal(thing.ended, 1);
    scope_move(&thing.member, candidate);
    assert_int_equal(empty, 1);
    assert_int_equal(thing.ended, 1);
    scope_free(term);
    scope_close(candidate);
    assert_int_equal(thing.ended, 2);
    scope_leave(&thing.member);
    scope_free(candidate);
}

static void a_member_that_moves_to_a_closed_one_ends(void **state)
{
    unsigned empty = 0;
    struct thing thing = {.slow = false};
    struct scope *term = scope_new(NULL, NULL), *over = scope_new(&counts_empty, &empty);
    (void)state;
    scope_close(over);
    assert_true(scope_enter(term, &thing.member, &remote));
    scope_move(&thing.member, over);
    assert_int_equal(thing.ended, 1);
    assert_null(thing.member.scope);
    scope_free(term);
    scope_free(over);
}

/* Under AddressSanitizer this is what proves it: the last of owner and members takes the memory. */
static void members_may_outlive_the_owner(void **state)
{
    unsigned empty = 0;
    struct thing thing = {.slow = true};
    struct scope *scope = scope_new(&counts_empty, &empty);
    (void)state;
    assert_true(scope_enter(scope, &thing.member, &remote));
    scope_free(scope);
    assert_int_equal(thing.ended, 1);
    assert_true(scope_closed(thing.member.scope));
    scope_leave(&thing.member);
    assert_int_equal(empty, 0);
}

struct owner {
    struct scope *scope;
    unsigned empty;
};

static void free_it(void *context)
{
    struct owner *owner = context;
    owner->empty++;
    scope_free(owner->scope);
    owner->scope = NULL;
}

static const struct scope_owner frees_it = {.empty = free_it};

static void the_owner_may_let_go_as_it_hears(void **state)
{
    struct owner owner = {.empty = 0};
    struct thing thing = {.slow = true};
    (void)state;
    owner.scope = scope_new(&frees_it, &owner);
    scope_close(owner.scope);
    assert_null(owner.scope);
    owner.scope = scope_new(&frees_it, &owner);
    assert_true(scope_enter(owner.scope, &thing.member, &remote));
    scope_close(owner.scope);
    scope_leave(&thing.member);
    assert_null(owner.scope);
    assert_int_equal(owner.empty, 2);
}

static void the_owner_hears_when_nothing_runs_here(void **state)
{
    unsigned quiet = 0;
    struct thing here = {.slow = false}, more = {.slow = true}, elsewhere = {.slow = true};
    struct scope *scope = scope_new(&counts_quiet, &quiet);
    (void)state;
    assert_false(scope_runs_here(scope));
    assert_true(scope_enter(scope, &elsewhere.member, &remote));
    assert_false(scope_runs_here(scope));
    assert_true(scope_enter(scope, &here.member, &local));
    assert_true(scope_enter(scope, &more.member, &local));
    assert_true(scope_runs_here(scope));
    scope_close(scope);
    assert_int_equal(quiet, 0);
    scope_leave(&more.member);
    assert_int_equal(quiet, 1);
    assert_false(scope_runs_here(scope));
    scope_leave(&elsewhere.member);
    assert_int_equal(quiet, 1);
    scope_free(scope);
}

static const struct scope_owner frees_when_quiet = {.quiet = free_it};

static void the_owner_may_let_go_as_it_hears_of_quiet(void **state)
{
    struct owner owner = {.empty = 0};
    struct thing thing = {.slow = false};
    (void)state;
    owner.scope = scope_new(&frees_when_quiet, &owner);
    assert_true(scope_enter(owner.scope, &thing.member, &local));
    scope_leave(&thing.member);
    assert_null(owner.scope);
    assert_int_equal(owner.empty, 1);
}

static void a_descriptor_is_held(void **state)
{
    struct scope *scope = scope_new(NULL, NULL);
    (void)state;
    assert_int_equal(scope_hold(scope)->fds[0], -1);
    scope_set_hold(scope, &(struct scope_hold){.fds = {7, 8}});
    assert_int_equal(scope_hold(scope)->fds[1], 8);
    scope_free(scope);
    scope_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_is_gone_as_it_closes),
        cmocka_unit_test(it_is_not_gone_before_it_closes),
        cmocka_unit_test(the_owner_hears_when_the_last_has_left),
        cmocka_unit_test(a_closed_one_takes_nobody),
        cmocka_unit_test(one_that_ends_may_take_others_along),
        cmocka_unit_test(instants_reach_those_there_are_and_those_that_come),
        cmocka_unit_test(instants_reach_those_that_are_ending),
        cmocka_unit_test(a_member_moves_and_is_missed_by_nobody),
        cmocka_unit_test(a_member_that_moves_to_a_closed_one_ends),
        cmocka_unit_test(members_may_outlive_the_owner),
        cmocka_unit_test(the_owner_may_let_go_as_it_hears),
        cmocka_unit_test(the_owner_hears_when_nothing_runs_here),
        cmocka_unit_test(the_owner_may_let_go_as_it_hears_of_quiet),
        cmocka_unit_test(a_descriptor_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
