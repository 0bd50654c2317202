#include "seen.h"

#include <unistd.h>

#include "base/container.h"

#define PATIENCE_S 60 /* far more than all of this takes */

struct seen seen;

int seen_open(void **state)
{
    (void)state;
    struct crown_error err;
    (void)alarm(PATIENCE_S); /* a loop that does not end is a failure */
    seen = (struct seen){.loop = loop_new(&err), .wanted = 1};
    return seen.loop == NULL ? -1 : 0;
}

int seen_close(void **state)
{
    (void)state;
    loop_free(seen.loop);
    return 0;
}

void seen_note(int64_t at_ns)
{
    assert_true(seen.count < SEEN_MOST);
    seen.at_ns[seen.count++] = at_ns;
    if (seen.count == seen.wanted)
        loop_stop(seen.loop);
}

void seen_deadline(struct loop_deadline *deadline)
{
    assert_false(loop_at_armed(deadline));
    assert_true(loop_now(seen.loop) >= deadline->node.key);
    seen_note(deadline->node.key);
}

void seen_ready(struct loop_watch *watch, unsigned events)
{
    char byte;
    assert_int_equal(events, LOOP_READ);
    assert_int_equal(read(watch->fd, &byte, 1), 1);
    loop_unwatch(watch);
    seen_note(byte);
}

void seen_step(struct loop_job *job)
{
    struct step *step = container_of(job, struct step, job);
    seen_note(step->number);
    if (step->next != NULL)
        loop_post(seen.loop, &step->next->job);
}

void seen_turn(void *context)
{
    unsigned *turns = context;
    (*turns)++;
}

void seen_progress(void *context)
{
    assert_ptr_equal(context, &seen);
    seen.progress++;
}
