/**
 * The supervisor's table of keepers: pids, the runtime's ids for them (0: no child yet), and which
 * failed: died before their time, or could not be forked. A failed one stays in the table until the
 * runtime has been told, however full the line to it is. Until then the table also has copies of
 * the descriptors that hold a lock for the keeper's tree: whoever dies, the lock is not free before
 * the tree is gone. Mapped once, touched as it fills: the supervisor allocates nothing after its
 * start.
 */
#ifndef CROWN_PROCESS_KEEPERS_H
#define CROWN_PROCESS_KEEPERS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/pid_index.h"
#include "process/warden.h"

#define KEEPERS_MAX 65536u              /* that live */
#define KEEPERS_ERROR_MANY EUSERS       /* one more than KEEPERS_MAX */
#define KEEPERS_ROOM (2u * KEEPERS_MAX) /* with those that failed, and nobody has been told */

struct keeper_entry;

struct keepers {
    struct keeper_entry *entries; /* the first `used` are in use, in no order */
    unsigned used;
    unsigned most;               /* so many have been used at a time */
    unsigned count;              /* how many live; the others have failed */
    struct warden_note *wardens; /* one for each entry. Shared with the keepers */
    struct pid_index pids;       /* of those that live: where their entries are */
};

/** @return 0, or -1 with errno. */
int keepers_init(struct keepers *keepers);
/** @return whether another one may live. */
bool keepers_room(const struct keepers *keepers);
/** @return whether there is no room even for the news that one failed. */
bool keepers_full(const struct keepers *keepers);
/** Call keepers_room first. @return where the keeper that is added next notes its warden, as
 * warden_start says. */
struct warden_note *keepers_next_warden(struct keepers *keepers);
/** One that has no child yet. Call keepers_room first. */
void keepers_add(struct keepers *keepers, pid_t pid);
/**
 * A keeper gets its child.
 * @param id the runtime's for it.
 * @param holds descriptors that hold a lock for its tree: the table's from now on. At most
 * CHILD_MAX_HOLD.
 */
void keepers_assign(struct keepers *keepers, pid_t pid, uint64_t id, const int *holds,
                    unsigned count);
/** One that could not be forked. @param error an errno. Call keepers_full first. */
void keepers_add_failed(struct keepers *keepers, uint64_t id, int error);

/** @return in words why one could not be forked. */
const char *keepers_why(int error);

/** A child ended. @return true when it was a keeper that died before it could kill its tree. */
bool keepers_ended(struct keepers *keepers, pid_t pid, int status);

/**
 * Tells of the failed ones, each until `tell` says that it was told; then it is off the table.
 * @param gone also of those that died, since what they left behind is gone. Those that were never
 * forked have left nothing.
 * @param tell gets 0 for `error` when the keeper died; returns false when it cannot be told now.
 */
void keepers_tell_failed(struct keepers *keepers, bool gone,
                         bool (*tell)(void *context, uint64_t id, int error), void *context);
/** @return whether there is one that keepers_tell_failed would tell of. */
bool keepers_owed(const struct keepers *keepers, bool gone);
/** Forgets the failed ones: whom they were to be told is dead. */
void keepers_forget_failed(struct keepers *keepers);

bool keepers_has(const struct keepers *keepers, pid_t pid);
/** Kills one; nothing where it is gone. */
void keepers_kill(const struct keepers *keepers, uint64_t id);

/** @return whether it is the warden of a keeper on the table, dead or alive. */
bool keepers_has_warden(const struct keepers *keepers, pid_t pid);
void keepers_signal(const struct keepers *keepers, int signal);

#endif
