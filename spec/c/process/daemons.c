#include "daemons.h"

void daemons_start(void)
{
    stage.board->mode = "daemons";
    stage_start();
    stage_until_ticking(DAEMONS);
}

void daemons_start_with_deadline(void)
{
    stage_set_deadlines(TIME_NEVER, 4 * SOON, 5 * SOON);
    daemons_start();
}

void daemons_leave_alone(void)
{
    stage_kill(stage_pid("crown-runtime"), SIGSTOP);
    stage_kill(stage.supervisor, SIGSTOP);
}

void daemons_assert_gone_in_time(void)
{
    stage_until_gone();
    assert_true(stage.last_ns[TICK_CHILD] <= stage.board->spec.deadline_ns);
    assert_true(stage.last_ns[TICK_DAEMON] <= stage.board->spec.deadline_ns);
}
