/**
 * What supervisor, runtime and keepers say to each other: fixed structs over SOCK_SEQPACKET pairs
 * made with SOCK_CLOEXEC, one message a packet, descriptors by SCM_RIGHTS. All three run the same
 * binary; the version is checked once, in HELLO.
 */
#ifndef CROWN_PROCESS_WIRE_H
#define CROWN_PROCESS_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define WIRE_VERSION 1u
#define WIRE_MAX_FDS 16
#define WIRE_TEXT 256

#define WIRE_MESSAGES(X)                                                                           \
    /* runtime -> supervisor */                                                                    \
    X(HEARTBEAT, "heartbeat") /* work was done; stop_at: until then there is none, 0 else */       \
    X(ARM, "arm")       /* from now on a death, or a silence of stop_at, means: restart me */      \
    X(ONCE, "once")     /* status, text: instead of a restart, say this and exit so */             \
    X(DISARM, "disarm") /* no election is left: my exit is yours */                                \
    X(START_KEEPER, "start_keeper") /* fds: keeper's end, spec, then what the spec names */        \
    X(TITLE, "title")               /* text: what `ps` shows after the process name */             \
    X(LOG, "log")                   /* log_format, log_level: of the supervisor's own lines */     \
    X(END_KEEPER, "end_keeper")     /* id: it should have killed its tree by now */                \
    X(PREPARE, "prepare")           /* a child may start soon: have a keeper ready for it */       \
    X(KEEP, "keep")                 /* the loss of the terminal ends nothing */                    \
    X(WILL, "will") /* id; fds: socket and paper, or none: it is revoked. See process/will.h */    \
    X(HELD, "held") /* text: what the runtime was doing when it was asked. To the next runtime,    \
                       before HELLO: what the last one was silent over */                          \
    /* supervisor -> runtime */                                                                    \
    X(HELLO, "hello")          /* version, token, restarts, how the last runtime ended */          \
    X(STOP, "stop")            /* signal: shut down in order */                                    \
    X(KEEPER_FAILED, "failed") /* id: its tree is gone; or error: it could not be forked */        \
    /* runtime -> keeper */                                                                        \
    X(SET_DEADLINE, "deadline") /* stop_at, kill_at, deadline; TIME_NEVER: none. To a warden: it   \
                                   is in the note that it shares */                                \
    X(STOP_CHILD, "stop_child") /* kill_at: stop signal now */                                     \
    X(SIGNAL, "signal")         /* signal: to the child alone */                                   \
    /* keeper -> warden */                                                                         \
    X(START_CHILD, "start_child") /* fds: spec, then what the spec names */                        \
    /* keeper -> runtime */                                                                        \
    X(STARTED, "started")           /* pid */                                                      \
    X(START_FAILED, "start_failed") /* error, text: what could not be done */                      \
    X(EXITED, "exited")             /* status: of the child itself; its tree is being killed */    \
    X(SIGNALLED, "signalled")       /* signal: sent to the child's group, since it is to end */    \
    X(INTERRUPTED, "interrupted")   /* Ctrl-C at its terminal, meant for the whole program */      \
    X(KILLED, "killed")             /* the deadline or kill_at came: SIGKILL was sent */           \
    X(UNKILLABLE, "unkillable")     /* pid, error: SIGKILL was refused; the tree lives on */       \
    X(GONE, "gone")                 /* status: no process of the tree is left; the keeper ends */

#define WIRE_ENUM(name, text) WIRE_##name,
enum wire_type { WIRE_MESSAGES(WIRE_ENUM) WIRE_TYPE_COUNT };

struct wire_message {
    uint32_t version;
    uint32_t type;
    uint64_t id; /* of the keeper, chosen by the runtime, never reused */
    int64_t stop_at_ns, kill_at_ns, deadline_ns;
    int32_t pid;
    int32_t status; /* as waitpid(2) gives it */
    int32_t signal;
    int32_t error; /* an errno */
    uint32_t restarts;
    uint32_t real_time; /* HELLO: keepers run at real-time priority */
    uint32_t holds;     /* START_KEEPER: how many of the descriptors, the last ones, hold a lock */
    uint32_t log_format, log_level; /* as base/log.h has them */
    char text[WIRE_TEXT];           /* NUL-terminated */
};

/** A SOCK_SEQPACKET pair, CLOEXEC, non-blocking. @return 0, or -1 with `err`. */
int wire_pair(int ends[2], struct crown_error *err);

/** Sends one message with `nfds` descriptors (still the caller's). @return 0; -1 with ERROR_CLOSED
 * or ERROR_SYSTEM. */
int wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
              struct crown_error *err);

/**
 * Receives one message. Received descriptors are CLOEXEC and the caller's. Where there is no room
 * for all of them (EMFILE), none is received.
 * @return 1 a message; 0 none now; -1 with ERROR_CLOSED (end of file) or ERROR_PROTOCOL (wrong size
 * or version).
 */
int wire_receive(int fd, struct wire_message *message, int *fds, unsigned *nfds,
                 struct crown_error *err);

const char *wire_type_name(enum wire_type type);

#endif
