#include "candidate/term.h"

#include "base/container.h"
#include "candidate/deadmen.h"
#include "candidate/env.h"
#include "candidate/feed.h"
#include "candidate/handlers.h"
#include "candidate/state.h"
#include "candidate/workload.h"
#include "child/exec.h"

void term_begin(struct candidate *candidate, uint64_t epoch)
{
    task_scope_init(&candidate->term);
    candidate->term.owner = candidate;
    handlers_won(candidate, epoch);
}

void term_set_instants(struct candidate *candidate, const struct election_action *action)
{
    /* The keeper first: it is what stops the child when this process hangs a moment later. */
    workload_set_instants(candidate, action);
    exec_set_deadlines(&candidate->execs, action->stop_at_ns, action->kill_at_ns,
                       action->deadline_ns);
    deadmen_set(candidate->env->deadmen, &candidate->deadman,
                candidate->has_won ? action->deadline_ns : TIME_NEVER);
}

void term_clear_instants(struct candidate *candidate)
{
    deadmen_set(candidate->env->deadmen, &candidate->deadman, TIME_NEVER);
}

static void execs_gone(struct exec_group *execs)
{
    candidate_feed_type(container_of(execs, struct candidate, execs), ELECTION_EVENT_TERM_GONE);
}

void term_prepare(struct candidate *candidate)
{
    task_scope_init(&candidate->term);
    list_init(&candidate->execs.members);
    candidate->execs.empty = execs_gone;
}

void term_close(struct candidate *candidate)
{
    candidate->won = NULL;
    task_scope_close(&candidate->term);
    exec_kill_all(&candidate->execs);
    if (list_empty(&candidate->execs.members))
        execs_gone(&candidate->execs);
}

void term_disown(struct candidate *candidate)
{
    exec_disown(&candidate->execs);
}

struct exec_group *term_adopt_exec(const struct task_scope *scope, struct child_spec *spec)
{
    struct candidate *candidate = scope != NULL ? scope->owner : NULL;
    if (candidate == NULL)
        return NULL;
    struct election_view view = election_look(&candidate->election);
    spec->stop_at_ns = view.stop_at_ns;
    spec->kill_at_ns = view.kill_at_ns;
    spec->deadline_ns = view.deadline_ns;
    return &candidate->execs;
}
