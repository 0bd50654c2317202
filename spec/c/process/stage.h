/**
 * A stage for tests of real processes: a supervisor with a runtime that does what the test tells it
 * through shared memory, and children that tick into a FIFO. The FIFO's end of file is exact: no
 * process of any child's tree exists any more. The test is a subreaper: whatever outlives its
 * parent becomes its child, so nothing can be left behind unseen.
 */
#ifndef CROWN_SPEC_STAGE_H
#define CROWN_SPEC_STAGE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "process/child_spec.h"
#include "process/wire.h"

#define STAGE_LOG_MOST 64

/* What a child writes into the FIFO. */
enum tick_kind {
    TICK_CHILD,    /* the child lives */
    TICK_DAEMON,   /* a daemonized descendant lives */
    TICK_SIGNALLED /* the child got a signal: `detail` */
};

struct tick {
    int64_t at_ns;
    pid_t pid; /* as its namespace counts */
    int kind, detail;
};

/* What the test tells its runtime to do. */
enum order {
    ORDER_NONE,
    ORDER_START, /* as many children as `children` says; nothing is read until ORDER_READ */
    ORDER_READ,
    ORDER_DEADLINE,
    ORDER_STOP,
    ORDER_SIGNAL,
    ORDER_HANG,  /* no heartbeat any more */
    ORDER_SPIN,  /* nor any wait */
    ORDER_NAP,   /* nor any progress until it is asked what it does */
    ORDER_IDLE,  /* as ORDER_NAP, having said that it is idle for a long time */
    ORDER_SAY,   /* what it does, though nobody has asked */
    ORDER_WORK,  /* as long as STAGE_WORK_NS of processor time take, without a heartbeat */
    ORDER_CLOSE, /* the line to the keeper */
    ORDER_DISARM,
};

/* What the child in mode "world" found around it. */
struct stage_world {
    uint64_t blocked, ignored; /* signals, as /proc/PID/status shows them */
    int fds[32];
    unsigned fd_count;
    bool null[3]; /* which of the standard streams is /dev/null */
    bool leads_group;
    int death_signal;
    char cwd[64];
    int oom_score, niceness;
    uid_t uid;
    gid_t gid, groups[8];
    int group_count;
};

#define STAGE_IDLE_NS INT64_C(20000000000)
#define STAGE_WORK_NS INT64_C(150000000)
#define STAGE_SLOW_NS INT64_C(600000000)
#define STAGE_MANY 600
#define STAGE_NOBODY 65534 /* a user and a group without rights */

/* Shared by the test and its runtime. */
struct stage_board {
    /* The test's, before stage_start. */
    const char *mode;    /* what the child plays: see stage.c */
    const char *program; /* NULL: this very program, playing `mode` */
    bool arm;            /* the runtime says ARM */
    bool later;          /* it starts its child when it is ordered to */
    bool ready;          /* it asks for a keeper that is ready, before anything but ARM */
    bool stay;           /* it notes STOP, and goes on */
    bool slow;           /* its heartbeats come STAGE_SLOW_NS apart */
    bool forks;          /* it has forked a process, "stray", which has its descriptors */
    bool quiet;          /* it sends no heartbeat */
    bool answers;        /* it says what it does when it is asked */
    bool unprivileged;   /* the supervisor runs as a user without rights, who has nothing else */
    int processes;       /* how many that user may have; 0: any number */
    bool hides;          /* as process 1: /proc shows a user's processes to nobody else */
    int descriptors;     /* how many each process may have; 0: as many as the test */
    bool own_group;      /* the supervisor leads a process group, and has no terminal */
    int niceness;        /* that the supervisor is started with */
    int64_t slept_s;     /* how long its host has slept; 0 where that cannot be pretended */
    char lock[48];       /* the runtime holds this file's lock, and so do its children, with as many
                            descriptors as may be; "": none */
    bool crash;          /* the runtime ends itself before it says ARM */
    bool stranger; /* a process that is none of ours is the supervisor's child from the start */
    int64_t silence_ns, end_silence_ns; /* armed; and when it is asked to end, not armed */
    struct child_spec spec;             /* all but argv, envp and label */

    /* The test's, at any time; the runtime takes an order by setting ORDER_NONE. */
    _Atomic int order;
    struct wire_message order_message;
    unsigned children; /* 0: one */

    /* The runtime's. */
    _Atomic int runs; /* how many runtimes have started */
    _Atomic int logged;
    char token[2][WIRE_TEXT];
    uint32_t restarts;
    _Atomic int64_t spun_ns;             /* processor time that it has spent on ORDER_SPIN */
    _Atomic unsigned started, unstarted; /* children */
    _Atomic bool stopped;                /* STOP came, perhaps after the log was full */
    struct wire_message log[STAGE_LOG_MOST];
};

struct stage {
    struct stage_board *board;
    char folder[32];
    char fifo[48];
    int ticks; /* the FIFO's reading end */
    pid_t supervisor;
    int status;         /* of the supervisor, once stage_wait_supervisor has returned */
    int64_t last_ns[2]; /* by TICK_CHILD, TICK_DAEMON */
    unsigned count[2];
    int last_signal;
    unsigned signals; /* how many were told of */
    unsigned daemons; /* how many different ones were heard of */
    pid_t daemon_pids[16];
};

extern struct stage stage;

/** Call first in main: plays a child where the program was started as one. Else returns. */
void stage_main(int argc, char **argv);

/** cmocka's set-up and teardown; the teardown kills whatever is left and fails if something was. */
int stage_open(void **state);
int stage_close(void **state);
#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_open, stage_close)
/** The same once more, with a keeper that is ready before there is a child. */
int stage_open_ready(void **state);
#define STAGE_TEST_READY(name)                                                                     \
    {                                                                                              \
#name "_ready", name, stage_open_ready, stage_close, NULL                                  \
    }

/** Forks the supervisor. */
void stage_start(void);
/** The same, with a runtime that is to be replaced when it dies, or is silent for so long (0: for
 * however long); until its child ticks. */
void stage_start_armed(int64_t silence_ns);
/** The same as process 1 of a PID namespace. */
void stage_start_as_init(void);

/** Reads ticks until `done` or the test fails for impatience. */
void stage_until(bool (*done)(void));
/** Until the child, and `daemons` daemons of it, tick. */
void stage_until_ticking(unsigned daemons);
/** Until so many runtimes have started. */
void stage_until_runs(int runs);
/** @return whether no process of the child's tree is left, where it has ticked. */
bool stage_gone(void);
/** Until no process of the child's tree is left. */
void stage_until_gone(void);
/** Until the supervisor has ended: stage.status. */
void stage_wait_supervisor(void);
/** Until the supervisor, and every process that ever came from it, has ended. */
void stage_until_empty(void);

/** Until a message of this type has come from a keeper or the supervisor. */
const struct wire_message *stage_until_message(enum wire_type type);
/** @return the first message of this type so far, or NULL. */
const struct wire_message *stage_message(enum wire_type type);

void stage_order(enum order order, const struct wire_message *message);
/** Asks the child to end, and has its tree killed after so long. */
void stage_stop_in(int64_t ns);

/** @return the pid of a process below the supervisor by its name; waits for it. */
pid_t stage_pid(const char *name);
/** The same without waiting. @return 0 when there is none. */
pid_t stage_find(const char *name);
/** @return a child of this process; 0 when it has none. */
pid_t stage_child_of(pid_t parent);

void stage_kill(pid_t pid, int signal);
/** Holds a process as a debugger does: SIGCONT does not let it go on, only its end comes through.
 */
void stage_hold(pid_t pid);
/** One that is held goes on. */
void stage_let_go(pid_t pid);

/** @return as ps(1) shows it: R, S, D, T, t, Z; NUL when it is gone. */
char stage_state(pid_t pid);

/**
 * As stage_start; but the keeper is held right behind its fork of the warden, as if it were
 * starved there. The warden goes on.
 * @return the warden.
 */
pid_t stage_start_and_hold_keeper(void);
/** The keeper that was held goes on. */
void stage_let_keeper_go(void);

/** Until the child in mode "world" has looked around. */
void stage_world(struct stage_world *world);

/** From now on the host has slept for an hour. Where that cannot be pretended, it has not. */
void stage_sleep_before(void);

/** Deadlines from now on: the child's stop, its SIGKILL and its dead-man's instant. */
void stage_set_deadlines(int64_t stop_ns, int64_t kill_ns, int64_t deadline_ns);

#endif
