#include "whole_keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "apart.h"
#include "process/keeper.h"
#include "whole_kernel.h"

#include <setjmp.h>
#include <stddef.h>

#include <cmocka.h>

int whole_keeper_open(void **state)
{
    (void)state;
    static char *const argv[] = {"app", NULL};
    static char *const envp[] = {NULL};
    kernel.now_ns = START_NS;
    kernel.timer_ns = TIME_NEVER;
    kernel.note = (struct warden_note){.deadline_ns = TIME_NEVER};
    kernel.timer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    whole_keeper = (struct whole_keeper){.spec = {.argv = argv,
                                                  .envp = envp,
                                                  .label = "a",
                                                  .stop_signal = SIGTERM,
                                                  .stop_at_ns = START_NS + 10 * NS_PER_S,
                                                  .kill_at_ns = START_NS + 12 * NS_PER_S,
                                                  .deadline_ns = START_NS + 20 * NS_PER_S},
                                         .group = WHOLE_SUPERVISOR,
                                         .foreground = WHOLE_SUPERVISOR};
    whole_process_open(WHOLE_SUPERVISOR);
    if (kernel.timer < 0 || pipe2(kernel.signals, O_CLOEXEC | O_NONBLOCK) < 0 ||
        wire_pair(kernel.runtime, NULL) < 0 || wire_pair(kernel.line, NULL) < 0 ||
        wire_pair(kernel.supervisor, NULL) < 0)
        return -1;
    return 0;
}

int whole_keeper_close(void **state)
{
    (void)state;
    apart_close();
    const int all[] = {kernel.timer,      kernel.signals[0],    kernel.signals[1],
                       kernel.runtime[0], kernel.runtime[1],    kernel.line[0],
                       kernel.line[1],    kernel.supervisor[0], kernel.supervisor[1],
                       kernel.given[1],   kernel.given[2],      kernel.given[3],
                       kernel.given[4]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] > STDERR_FILENO)
            (void)close(all[i]); /* the keeper has closed some */
    memset(kernel.given, 0, sizeof(kernel.given));
    return 0;
}

static void say(int fd, const struct wire_message *message)
{
    assert_int_equal(__real_wire_send(fd, message, NULL, 0, NULL), 0);
    apart_go_on();
}

static void hang_up(int *fd)
{
    (void)close(*fd);
    *fd = -1;
    apart_go_on();
}

static const struct keeper_home home = {.supervisor = WHOLE_SUPERVISOR, .warden = &kernel.note};

static unsigned gather(void)
{
    unsigned count = 2;
    kernel.given[0] = kernel.runtime[0];
    whole_keeper.block = kernel.given[1] = child_spec_write(&whole_keeper.spec, NULL);
    assert_true(kernel.given[1] >= 0);
    for (int i = 0; i < 3; i++)
        if (whole_keeper.streams[i] > 0)
            kernel.given[count++] = whole_keeper.streams[i];
    return count;
}

static unsigned gathered;

static void run(void)
{
    keeper_run(kernel.given, gathered, &home);
}

void whole_keeper_starts(void)
{
    gathered = gather();
    apart_begin(run);
}

static void wait_for_child(void)
{
    whole_keeper.orders = kernel.supervisor[0];
    keeper_wait(kernel.supervisor[0], &home);
}

void whole_keeper_is_ready(void)
{
    apart_begin(wait_for_child);
}

void whole_keeper_is_given_the_child(unsigned count)
{
    const struct wire_message message = {.type = WIRE_START_KEEPER};
    (void)gather();
    assert_int_equal(__real_wire_send(kernel.supervisor[1], &message, kernel.given, count, NULL),
                     0);
    apart_go_on();
}

void whole_keeper_is_of_no_use(void)
{
    hang_up(&kernel.supervisor[1]);
}

void runtime_says(struct wire_message message)
{
    say(kernel.runtime[1], &message);
}

void runtime_leaves(void)
{
    whole_keeper.runtime_has_left = true;
    hang_up(&kernel.runtime[1]);
}

void warden_hangs_up(void)
{
    hang_up(&kernel.line[1]);
}

void warden_says(struct wire_message message)
{
    say(kernel.line[1], &message);
}

void warden_dies(void)
{
    whole_keeper.warden_is_dead = true;
    signal_comes(SIGCHLD, CLD_KILLED);
}

void signal_comes(int signal, int code)
{
    const struct signalfd_siginfo info = {.ssi_signo = (uint32_t)signal, .ssi_code = code};
    assert_int_equal(write(kernel.signals[1], &info, sizeof(info)), sizeof(info));
    apart_go_on();
}

void time_passes(int64_t ns)
{
    kernel.now_ns += ns;
    if (kernel.timer_ns <= kernel.now_ns) {
        whole_kernel_fire();
        kernel.timer_ns = TIME_NEVER; /* it goes off once */
    }
    apart_go_on();
}

void keeper_wakes(void)
{
    apart_go_on();
}
