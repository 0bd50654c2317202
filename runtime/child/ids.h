/**
 * Users and groups by name. Looked up when an app is validated, never when a child starts: a lookup
 * may wait.
 */
#ifndef CROWN_CHILD_IDS_H
#define CROWN_CHILD_IDS_H

#include <sys/types.h>

#include "base/error.h"

#define IDS_MAX_GROUPS 256

struct ids {
    uid_t uid;
    gid_t gid;
    gid_t groups[IDS_MAX_GROUPS];
    int group_count;
};

/**
 * @param user a name or a number; NULL: this process's own.
 * @param group a name or a number; NULL: the user's.
 * @return 0, or -1 with ERROR_USAGE where there is none of that name.
 */
int ids_lookup(const char *user, const char *group, struct ids *ids, struct crown_error *err);

/** @return the home directory of this process's user as the accounts have it, whatever $HOME says;
 * NULL where there is no such account. Valid until the next look-up. */
const char *ids_home(void);

#endif
