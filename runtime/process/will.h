/**
 * A runtime's last will: a message to a store, written while the runtime lives, that its supervisor
 * sends when the runtime is dead and no process of its trees exists any more. So what it led is
 * released then, and does not have to run out. It goes out on the runtime's own connection, whose
 * socket the supervisor has too: nobody connects or logs in, and the store reads it behind all that
 * the runtime itself has sent there.
 */
#ifndef CROWN_PROCESS_WILL_H
#define CROWN_PROCESS_WILL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "process/link.h"

#define WILLS_MOST 4 /* of one runtime */
#define WILL_MOST 16000

/** What runtime and supervisor share: a memfd of the runtime's. */
struct will_paper {
    /* The runtime may have sent a part of a message on the connection: what follows would be read
     * as the rest of it. */
    _Atomic uint32_t midway;
    _Atomic uint32_t length; /* 0: there is no will, or it is being written */
    char message[WILL_MOST];
};

/* --- the runtime's */

struct will {
    struct link *link;
    uint64_t id;
    int fd;
    int socket; /* that the supervisor has; -1: none */
    struct will_paper *paper;
};

/** @return 0, or -1 with `err`. */
int will_open(struct will *will, struct link *link, struct crown_error *err);
/** Nothing is sent any more; the connection is the runtime's alone. */
void will_revoke(struct will *will);
void will_close(struct will *will);
/**
 * In place of the last one. The supervisor is told once for each connection.
 * @param socket of a connection without encryption, which the runtime keeps; when it is closed the
 *   will has to be revoked.
 * @return 0, or -1 with `err`: ERROR_USAGE where the message is too long.
 */
int will_leave(struct will *will, int socket, const char *message, size_t length,
               struct crown_error *err);

/* --- the supervisor's */

struct wills {
    int sockets[WILLS_MOST], papers[WILLS_MOST]; /* -1: none */
    int sent[WILLS_MOST]; /* over which one was sent, until the store is done with it */
    int64_t close_ns;     /* when those close in any case; TIME_NEVER: there are none */
};

void wills_init(struct wills *wills);
/** Takes what came with a WIRE_WILL: a socket and a paper, or nothing where it is revoked. @return
 * how many of the descriptors are the caller's still, the first ones. */
unsigned wills_take(struct wills *wills, uint64_t id, const int *fds, unsigned nfds);
/** Sends all of them, once. Does not wait: what a store does not take is lost. */
void wills_execute(struct wills *wills);
/** Closes sockets over which a will was sent: when the store closes, or a moment later. Until then
 * what it answers is read, and thrown away: a store that cannot answer what the dead runtime asked
 * for last might not read any further. */
void wills_close(struct wills *wills);
/** Closes all that there is; nothing is sent. */
void wills_drop(struct wills *wills);
/** @return when wills_close has to be called, on CLOCK_MONOTONIC, though nothing has come over a
 * socket in `sent`; TIME_NEVER: no store has anything to read. */
int64_t wills_close_ns(const struct wills *wills);

#endif
