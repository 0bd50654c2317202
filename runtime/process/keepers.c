#include "process/keepers.h"

#include <assert.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct keeper_entry {
    uint64_t id;
    pid_t pid; /* 0: failed */
    int error; /* why it could not be forked; 0: it was */
};

int keepers_init(struct keepers *keepers)
{
    void *entries = mmap(NULL, KEEPERS_ROOM * sizeof(struct keeper_entry), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (entries == MAP_FAILED)
        return -1;
    *keepers = (struct keepers){.entries = entries};
    return 0;
}

bool keepers_room(const struct keepers *keepers)
{
    return keepers->count < KEEPERS_MAX && !keepers_full(keepers);
}

bool keepers_full(const struct keepers *keepers)
{
    return keepers->used == KEEPERS_ROOM;
}

void keepers_add(struct keepers *keepers, pid_t pid, uint64_t id)
{
    assert(keepers->used < KEEPERS_ROOM);
    keepers->entries[keepers->used++] = (struct keeper_entry){.id = id, .pid = pid};
    keepers->count++;
}

void keepers_add_failed(struct keepers *keepers, uint64_t id, int error)
{
    assert(keepers->used < KEEPERS_ROOM);
    keepers->entries[keepers->used++] = (struct keeper_entry){.id = id, .error = error};
}

static void take(struct keepers *keepers, unsigned place)
{
    keepers->entries[place] = keepers->entries[--keepers->used];
}

bool keepers_ended(struct keepers *keepers, pid_t pid, int status)
{
    for (unsigned i = 0; i < keepers->used; i++) {
        if (keepers->entries[i].pid != pid)
            continue;
        keepers->count--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            take(keepers, i); /* it said GONE itself */
            return false;
        }
        keepers->entries[i].pid = 0;
        return true;
    }
    return false;
}

static bool is_owed(const struct keeper_entry *entry, bool gone)
{
    return entry->pid == 0 && (gone || entry->error != 0);
}

void keepers_tell_failed(struct keepers *keepers, bool gone,
                         bool (*tell)(void *context, uint64_t id, int error), void *context)
{
    if (keepers->used == keepers->count)
        return;
    /* From the end, since the last one takes the place of one that is taken off. */
    for (unsigned i = keepers->used; i-- > 0;) {
        const struct keeper_entry *entry = &keepers->entries[i];
        if (!is_owed(entry, gone))
            continue;
        if (!tell(context, entry->id, entry->error))
            return;
        take(keepers, i);
    }
}

bool keepers_owed(const struct keepers *keepers, bool gone)
{
    for (unsigned i = 0; keepers->used > keepers->count && i < keepers->used; i++)
        if (is_owed(&keepers->entries[i], gone))
            return true;
    return false;
}

static bool drop(void *context, uint64_t id, int error)
{
    (void)context;
    (void)id;
    (void)error;
    return true;
}

void keepers_forget_failed(struct keepers *keepers)
{
    keepers_tell_failed(keepers, true, drop, NULL);
}

bool keepers_has(const struct keepers *keepers, pid_t pid)
{
    for (unsigned i = 0; i < keepers->used; i++)
        if (keepers->entries[i].pid == pid)
            return true;
    return false;
}

void keepers_signal(const struct keepers *keepers, int signal)
{
    for (unsigned i = 0; i < keepers->used; i++)
        if (keepers->entries[i].pid > 0)
            (void)kill(keepers->entries[i].pid, signal); /* gone already: the better */
}
