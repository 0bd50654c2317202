#include "candidate/term.h"

#include <stdlib.h>

#include "candidate/deadmen.h"
#include "candidate/env.h"
#include "candidate/feed.h"
#include "candidate/handlers.h"
#include "candidate/state.h"
#include "lua/task.h"

static struct scope *new_scope(struct candidate *candidate, const struct scope_owner *owner)
{
    struct scope *scope = scope_new(owner, candidate);
    if (scope == NULL)
        abort(); /* crash-only, as every allocation of a few bytes */
    scope_set_hold(scope, &candidate->term->hold);
    return scope;
}

/* The dead-man timer is for Lua that would outlive the deadline: where none is left, a command that
 * does not end must not cost a runtime that is well, with all its other elections. */
static void arm(struct candidate *candidate)
{
    struct term *term = candidate->term;
    bool won = term->scope != NULL && scope_runs_here(term->scope);
    /* A `lost` that comes too late, on a host that slept, has its time all the same. */
    bool lost = term->lost != NULL && scope_runs_here(term->lost) &&
                loop_now(candidate->env->loop) < term->instants.deadline_ns;
    deadmen_set(candidate->env->deadmen, &term->deadman,
                won || lost ? loop_boottime(candidate->env->loop, term->instants.deadline_ns)
                            : TIME_NEVER);
}

static void quiet(void *context)
{
    arm(context);
}

int term_init(struct candidate *candidate)
{
    if (!candidate->has_won && !candidate->has_lost &&
        candidate_options(candidate, ELECTION_ROLE_LEADER) == NULL)
        return 0; /* nothing will run in it, and it may be one of a hundred thousand */
    candidate->term = malloc(sizeof(*candidate->term));
    if (candidate->term == NULL)
        return -1;
    *candidate->term = (struct term){.instants = SCOPE_NO_INSTANTS, .hold = SCOPE_NO_HOLD};
    return 0;
}

void term_free(struct candidate *candidate)
{
    free(candidate->term);
    candidate->term = NULL;
}

void term_set_hold(struct candidate *candidate, const struct scope_hold *hold)
{
    if (candidate->term != NULL)
        candidate->term->hold = *hold;
}

void term_set_instants(struct candidate *candidate, const struct election_action *action)
{
    struct term *term = candidate->term;
    if (term == NULL)
        return;
    term->instants = (struct scope_instants){.stop_at_ns = action->stop_at_ns,
                                             .kill_at_ns = action->kill_at_ns,
                                             .deadline_ns = action->deadline_ns};
    /* The keepers first: they are what stops the commands when this process hangs a moment later.
     */
    if (term->scope != NULL)
        scope_set_instants(term->scope, &term->instants);
    arm(candidate);
}

static void term_gone(void *context)
{
    candidate_feed_type(context, ELECTION_EVENT_TERM_GONE);
}

void term_begin(struct candidate *candidate, uint64_t epoch)
{
    static const struct scope_owner owner = {
        .quiet = quiet, .empty = term_gone, .owns_processes = true};
    struct term *term = candidate->term;
    if (!candidate->has_won && candidate_options(candidate, ELECTION_ROLE_LEADER) == NULL)
        return; /* nothing will run in it */
    term->scope = new_scope(candidate, &owner);
    scope_set_instants(term->scope, &term->instants);
    term->untold = candidate->has_won;
    handlers_won(candidate, epoch);
    arm(candidate);
}

void term_told(struct candidate *candidate)
{
    candidate->term->untold = false;
}

void term_close(struct candidate *candidate)
{
    if (candidate->term != NULL && candidate->term->scope != NULL)
        scope_close(candidate->term->scope);
    else
        term_gone(candidate);
}

static void lost_gone(void *context)
{
    candidate_feed_type(context, ELECTION_EVENT_LOST_DONE);
}

/* What `lost` has left behind ends with it. */
static void lost_done(struct task *task, enum task_outcome outcome, int nresults, void *context)
{
    struct candidate *candidate = context;
    candidate->term->lost_task = NULL;
    handlers_lost_done(task, outcome, nresults, context);
    scope_close(candidate->term->lost);
}

void term_run_lost(struct candidate *candidate, const struct election_action *action)
{
    static const struct scope_owner owner = {
        .quiet = quiet, .empty = lost_gone, .owns_processes = true};
    struct term *term = candidate->term;
    if (term == NULL) {
        lost_gone(candidate);
        return;
    }
    /* Its commands are not told to stop before: `lost` itself may begin after that instant. One
     * that is not killed at the term's kill instant may outlive its deadline: from then on none is
     * started. A `lost` that begins after the deadline is news, and not of the term any more. */
    bool in_time = action->until_ns < term->instants.deadline_ns;
    const struct scope_instants instants = {
        .stop_at_ns = TIME_NEVER,
        .kill_at_ns = in_time && term->instants.kill_at_ns < action->until_ns
                          ? term->instants.kill_at_ns
                          : action->until_ns,
        .deadline_ns = in_time ? term->instants.deadline_ns : TIME_NEVER};
    term->lost = new_scope(candidate, &owner);
    scope_set_instants(term->lost, &instants);
    if (!term->untold)
        term->lost_task = handlers_lost(candidate, action->reason, term->lost, lost_done);
    if (term->lost_task == NULL)
        scope_close(term->lost);
    arm(candidate);
}

void term_close_lost(struct candidate *candidate)
{
    struct term *term = candidate->term;
    if (term == NULL)
        return;
    if (term->lost_task != NULL)
        handlers_lost_late(candidate);
    term->lost_task = NULL;
    scope_close(term->lost);
}

void term_forget(struct candidate *candidate)
{
    struct term *term = candidate->term;
    if (term == NULL)
        return;
    scope_free(term->scope);
    scope_free(term->lost);
    term->scope = term->lost = NULL;
    term->lost_task = NULL;
    term->untold = false;
    term->instants = SCOPE_NO_INSTANTS;
    arm(candidate);
}
