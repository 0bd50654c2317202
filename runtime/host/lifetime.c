#include "host/lifetime.h"

void lifetime_hold(struct lifetime *lifetime)
{
    lifetime->holds++;
}

void lifetime_release(struct lifetime *lifetime)
{
    lifetime->holds--;
    if (lifetime->holds == 0)
        heartbeat_arm(lifetime->heartbeat, false);
}

void lifetime_main_ended(struct lifetime *lifetime)
{
    lifetime->main_ended = true;
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
    lifetime->code_at_end = code;
}

void lifetime_turn(struct lifetime *lifetime)
{
    if (lifetime->main_ended && lifetime->holds == 0)
        lifetime_exit(lifetime, lifetime->code_at_end);
    if (lifetime->exiting)
        loop_stop(lifetime->loop);
}
