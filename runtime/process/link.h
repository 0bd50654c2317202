/**
 * The runtime's end of the wire: to the supervisor, and to each keeper it asked for. No libev here:
 * the host watches `link_fd` and the keepers' descriptors and calls back in when they are readable.
 */
#ifndef CROWN_PROCESS_LINK_H
#define CROWN_PROCESS_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "process/child_spec.h"
#include "process/wire.h"

struct link;

/** Takes over the descriptor; -1: there is no supervisor, and no child can be started. @return NULL
 * with `err`. */
struct link *link_new(int supervisor_fd, struct crown_error *err);
void link_free(struct link *link);
int link_fd(const struct link *link);

/** Next message of the supervisor: as wire_receive. */
int link_receive(struct link *link, struct wire_message *message, struct crown_error *err);

/** A sign of life. @param idle_until_ns nothing is to be done until then, so none follows before
 * it; 0: not known. */
int link_heartbeat(struct link *link, int64_t idle_until_ns, struct crown_error *err);

/** From now on (or no longer) a death of the runtime, or a silence of `silence_ns`, means: restart
 * it. */
int link_arm(struct link *link, bool armed, int64_t silence_ns, struct crown_error *err);
/** From now on nothing is begun a second time: where the runtime would be restarted, the supervisor
 * says `text` and exits with `code`, as soon as nothing of its trees is left. */
int link_once(struct link *link, int code, const char *text, struct crown_error *err);
/** Asks the supervisor to kill a keeper that is late, as one that is stopped. Its warden then kills
 * the tree, and KEEPER_FAILED follows. */
int link_end_keeper(struct link *link, uint64_t id, struct crown_error *err);
/** Has the supervisor make a keeper ready, since a child may start soon. Said once for each child
 * that is started; may be lost. */
void link_prepare(struct link *link);
/** The loss of the terminal that this program was started from ends nothing. */
int link_keep(struct link *link, struct crown_error *err);
/** What `ps` shows for the supervisor; may be lost. */
void link_title(struct link *link, const char *text);
/** How the supervisor, and what it forks, write what they have to say; may be lost. */
void link_log(struct link *link, enum log_format format, enum log_level level);

/** @return a number for one more last will (process/will.h). */
uint64_t link_next_will(struct link *link);
/** Hands over a last will, its socket and its paper; or, without descriptors, revokes it. @return
 * 0, or -1: it did not go out. */
int link_will(struct link *link, uint64_t id, const int *fds, unsigned nfds);

/** Answers SIGNAL_ASK: what this runtime is doing. May be called from a signal handler. */
int link_held(struct link *link, const char *text);

/** One child under one keeper. */
struct keeper_link {
    uint64_t id;
    int fd; /* watch for reading; -1 after GONE or end of file */
};

/**
 * Asks the supervisor for a keeper with this child. Answers come on `keeper->fd`: STARTED or
 * START_FAILED, then EXITED, KILLED, GONE. The spec may be freed after the call; its descriptors
 * stay the caller's. End of file without GONE means the keeper was killed: the supervisor then
 * kills what is left of the tree before it answers KEEPER_FAILED on its own line.
 */
int link_start_child(struct link *link, const struct child_spec *spec, struct keeper_link *keeper,
                     struct crown_error *err);

int keeper_link_receive(struct keeper_link *keeper, struct wire_message *message,
                        struct crown_error *err);
int keeper_link_set_deadline(struct keeper_link *keeper, int64_t stop_at_ns, int64_t kill_at_ns,
                             int64_t deadline_ns, struct crown_error *err);
int keeper_link_stop(struct keeper_link *keeper, int64_t kill_at_ns, struct crown_error *err);
int keeper_link_signal(struct keeper_link *keeper, int signal, struct crown_error *err);
void keeper_link_close(struct keeper_link *keeper);

#endif
