#include "host/lifetime.h"

#include "base/clock.h"
#include "base/container.h"

#define PATIENCE_NS NS_PER_S
#define YIELD_NS (20 * NS_PER_MS) /* in which others hear of it, claim, and start a child */

bool lifetime_is_held(const struct lifetime *lifetime)
{
    return lifetime->elections > 0 || (lifetime->holds > 0 && !lifetime->stopping);
}

static void patience_over(struct loop_deadline *deadline)
{
    struct lifetime *lifetime = container_of(deadline, struct lifetime, patience);
    if (!lifetime_is_held(lifetime))
        lifetime_exit(lifetime, lifetime->code_at_end);
}

/* With nothing left to wait for, the runtime's end is no death any more. */
static void let_go(struct lifetime *lifetime)
{
    if (lifetime_is_held(lifetime))
        return;
    heartbeat_arm(lifetime->heartbeat, false);
    lifetime->patience.fire = patience_over;
    if (lifetime->main_ended)
        loop_at(lifetime->loop, &lifetime->patience,
                clock_add_ns(loop_now(lifetime->loop), PATIENCE_NS));
}

void lifetime_election(struct lifetime *lifetime, bool begins)
{
    if (begins) {
        lifetime->elections++;
        return;
    }
    lifetime->elections--;
    let_go(lifetime);
}

void lifetime_hold(struct lifetime *lifetime)
{
    lifetime->holds++;
}

void lifetime_release(struct lifetime *lifetime)
{
    lifetime->holds--;
    let_go(lifetime);
}

void lifetime_main_ended(struct lifetime *lifetime)
{
    lifetime->main_ended = true;
}

void lifetime_stop(struct lifetime *lifetime)
{
    lifetime->stopping = lifetime->main_ended = true;
    heartbeat_ending(lifetime->heartbeat);
}

void lifetime_exit(struct lifetime *lifetime, int code)
{
    if (lifetime->exiting)
        return;
    lifetime->exiting = true;
    lifetime->code = code;
    heartbeat_arm(lifetime->heartbeat, false);
    loop_stop(lifetime->loop);
}

void lifetime_set_code(struct lifetime *lifetime, int code)
{
    if (!lifetime->code_fixed)
        lifetime->code_at_end = code;
}

void lifetime_fix_code(struct lifetime *lifetime, int code)
{
    lifetime->code_at_end = code;
    lifetime->code_fixed = true;
}

void lifetime_yield(struct lifetime *lifetime)
{
    lifetime->yields = !loop_is_virtual(lifetime->loop); /* where no time passes by itself */
}

static void yielded(struct loop_deadline *deadline)
{
    struct lifetime *lifetime = container_of(deadline, struct lifetime, yielded);
    lifetime->yields = false;
}

static void end(struct lifetime *lifetime)
{
    if (!lifetime->yields) {
        lifetime_exit(lifetime, lifetime->code_at_end);
        return;
    }
    lifetime->yielded.fire = yielded;
    if (!loop_at_armed(&lifetime->yielded))
        loop_at(lifetime->loop, &lifetime->yielded,
                clock_add_ns(loop_now(lifetime->loop), YIELD_NS));
}

void lifetime_turn(struct lifetime *lifetime)
{
    if (lifetime->main_ended && !lifetime_is_held(lifetime))
        end(lifetime);
    if (lifetime->exiting)
        loop_stop(lifetime->loop);
}
