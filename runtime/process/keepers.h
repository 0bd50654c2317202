/**
 * The supervisor's table of keepers: pids, the runtime's ids for them, and which died before their
 * time. Mapped once, touched as it fills: the supervisor allocates nothing after its start.
 */
#ifndef CROWN_PROCESS_KEEPERS_H
#define CROWN_PROCESS_KEEPERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KEEPERS_MAX 65536u

struct keeper_entry;

struct keepers {
    struct keeper_entry *entries; /* the first `used` are in use, in no order */
    unsigned used;
    unsigned count; /* how many live */
};

/** @return 0, or -1 with errno. */
int keepers_init(struct keepers *keepers);
bool keepers_room(const struct keepers *keepers);
/** Call keepers_room first. */
void keepers_add(struct keepers *keepers, pid_t pid, uint64_t id);

/** A child ended. @return true when it was a keeper that died before it could kill its tree. */
bool keepers_ended(struct keepers *keepers, pid_t pid, int status);

/** Takes one that died before its time off the table. @return false when there is none. */
bool keepers_take_failed(struct keepers *keepers, uint64_t *id);

bool keepers_has(const struct keepers *keepers, pid_t pid);
void keepers_signal(const struct keepers *keepers, int signal);

#endif
