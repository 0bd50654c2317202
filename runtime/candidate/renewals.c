#include "candidate/renewals.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/container.h"

struct waiting {
    struct op op;
    struct list_node link; /* until a renewal was answered */
};

static bool clock_was_set(const struct renewals *renewals)
{
    return llabs(clock_wall_offset_ns() - renewals->offset_ns) > renewals->times.clock_set_ns;
}

/* They come in rounds, all of one a little apart, and the first one renews: as next_refresh in
 * crown.register.session. */
static int64_t next_refresh(struct renewals *renewals, int64_t asked_ns)
{
    const struct renewals_times *times = &renewals->times;
    int64_t apart_ns = (int64_t)random_below(&renewals->random, (uint64_t)times->apart_ns + 1);
    int64_t rounds_ns = times->delay_ns - times->apart_ns;
    int64_t into_ns = (asked_ns - renewals->first_ns) % rounds_ns;
    int64_t left_ns = rounds_ns - into_ns;
    if (left_ns < times->apart_ns)
        left_ns += rounds_ns;
    int64_t most_ns = renewals->sent_ns + times->delay_ns - asked_ns;
    return left_ns + apart_ns < most_ns ? left_ns + apart_ns : most_ns;
}

/* It counts from the instant before the renewal was sent; one that was called before counts from
 * its own call. */
static bool grants(struct refresher *base, const struct refresher_term *term,
                   struct refresher_found *found)
{
    struct renewals *renewals = container_of(base, struct renewals, refresher);
    int64_t now_ns = loop_now(renewals->loop);
    if (!term->stands || renewals->sent_ns == TIME_NEVER ||
        now_ns - renewals->sent_ns > renewals->times.fresh_ns || clock_was_set(renewals))
        return false;
    found->past_ns = term->asked_ns > renewals->sent_ns ? term->asked_ns - renewals->sent_ns : 0;
    found->delay_ns = next_refresh(renewals, term->asked_ns);
    return true;
}

static void cancel(struct op *op)
{
    struct waiting *waiting = container_of(op, struct waiting, op);
    list_remove(&waiting->link);
    free(waiting);
}

static bool renews(struct renewals *renewals)
{
    int64_t now_ns = loop_now(renewals->loop);
    if (renewals->asked_ns != TIME_NEVER &&
        now_ns - renewals->asked_ns <= renewals->times.patience_ns)
        return true;
    renewals->asked_ns = now_ns;
    if (renewals->renew(renewals))
        return true;
    renewals->asked_ns = TIME_NEVER;
    return false;
}

static struct op *ask(struct refresher *base, const struct refresher_term *term, lua_State *L)
{
    struct renewals *renewals = container_of(base, struct renewals, refresher);
    (void)L;
    bool waits = term->stands && renewals->sent_ns != TIME_NEVER; /* the oracle may know more */
    struct waiting *waiting = waits ? calloc(1, sizeof(*waiting)) : NULL;
    if (waiting == NULL)
        return NULL;
    op_init(&waiting->op, renewals->loop, cancel);
    list_append(&renewals->waiting, &waiting->link);
    if (renews(renewals))
        return &waiting->op;
    cancel(&waiting->op);
    return NULL;
}

static enum refresher_answer look(struct refresher *base, struct op *op,
                                  const struct refresher_term *term, struct refresher_found *found)
{
    struct renewals *renewals = container_of(base, struct renewals, refresher);
    cancel(op);
    if (grants(base, term, found))
        return REFRESHER_SAME;
    if (!term->stands || !renewals->failed)
        return REFRESHER_OTHER;
    found->err = renewals->failure;
    found->code = renewals->code;
    return REFRESHER_UNKNOWN;
}

void renewals_init(struct renewals *renewals, struct loop *loop, const struct renewals_times *times,
                   bool (*renew)(struct renewals *renewals))
{
    *renewals = (struct renewals){
        .refresher = {.ttl_ns = times->ttl_ns,
                      .delay_ns = times->delay_ns,
                      .grants = grants,
                      .ask = ask,
                      .look = look},
        .times = *times,
        .loop = loop,
        .renew = renew,
        .asked_ns = TIME_NEVER,
        .sent_ns = TIME_NEVER,
    };
    random_seed(&renewals->random, random_kernel());
    list_init(&renewals->waiting);
}

struct renewals *renewals_of(struct refresher *refresher)
{
    return refresher->grants == grants ? container_of(refresher, struct renewals, refresher) : NULL;
}

static void answer(struct renewals *renewals, bool failed)
{
    struct list_node *node;
    renewals->failed = failed;
    renewals->asked_ns = TIME_NEVER;
    while ((node = list_first(&renewals->waiting)) != NULL) {
        list_remove(node);
        op_complete(&container_of(node, struct waiting, link)->op);
    }
}

void renewals_count(struct renewals *renewals, int64_t sent_ns, int64_t offset_ns, int64_t first_ns)
{
    renewals->first_ns = first_ns;
    renewals->sent_ns = sent_ns;
    renewals->offset_ns = offset_ns;
    answer(renewals, false);
}

void renewals_forget(struct renewals *renewals)
{
    renewals->sent_ns = TIME_NEVER;
    answer(renewals, false);
}

void renewals_fail(struct renewals *renewals, const char *message, bool answers)
{
    (void)error_set(&renewals->failure, ERROR_STORE, "%s", message);
    renewals->code = answers ? "store" : NULL;
    answer(renewals, true);
}
