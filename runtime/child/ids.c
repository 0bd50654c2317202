#include "child/ids.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_number(const char *text, unsigned long *number)
{
    char *end = NULL;
    *number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0';
}

static int lookup_user(const char *user, struct ids *ids, struct crown_error *err)
{
    unsigned long number;
    /* One thread, at start: the static result is ours. */
    const struct passwd *entry = getpwnam(user); // NOLINT(concurrency-mt-unsafe)
    if (entry == NULL && is_number(user, &number)) {
        ids->uid = (uid_t)number;
        entry = getpwuid(ids->uid); // NOLINT(concurrency-mt-unsafe)
        if (entry == NULL) {
            ids->gid = (gid_t)number; /* a number without an account: its own group */
            return 0;
        }
    }
    if (entry == NULL)
        return error_set(err, ERROR_USAGE, "user: there is no user '%s' on this host", user);
    ids->uid = entry->pw_uid;
    ids->gid = entry->pw_gid;
    ids->group_count = IDS_MAX_GROUPS;
    if (getgrouplist(entry->pw_name, entry->pw_gid, ids->groups, &ids->group_count) < 0)
        ids->group_count = IDS_MAX_GROUPS; /* the first ones */
    return 0;
}

int ids_lookup(const char *user, const char *group, struct ids *ids, struct crown_error *err)
{
    unsigned long number;
    *ids = (struct ids){.uid = getuid(), .gid = getgid()};
    if (user != NULL && lookup_user(user, ids, err) < 0)
        return -1;
    if (group == NULL)
        return 0;
    const struct group *entry = getgrnam(group); // NOLINT(concurrency-mt-unsafe)
    if (entry == NULL && !is_number(group, &number))
        return error_set(err, ERROR_USAGE, "group: there is no group '%s' on this host", group);
    ids->gid = entry != NULL ? entry->gr_gid : (gid_t)number;
    return 0;
}

const char *ids_home(void)
{
    const struct passwd *entry = getpwuid(geteuid()); // NOLINT(concurrency-mt-unsafe)
    return entry != NULL ? entry->pw_dir : NULL;
}
