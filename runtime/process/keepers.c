#include "process/keepers.h"

#include <assert.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "process/child_spec.h"
#include "process/keeper.h"

struct keeper_entry {
    uint64_t id;
    pid_t pid;      /* 0: failed */
    bool over;      /* its tree is known to be gone */
    int error;      /* why it could not be forked; 0: it was */
    unsigned place; /* of its warden's pid, which stays when the entry moves */
    unsigned hold_count;
    int holds[CHILD_MAX_HOLD];
};

static void *map(size_t size, int sharing)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int keepers_init(struct keepers *keepers)
{
    void *entries = map(KEEPERS_ROOM * sizeof(struct keeper_entry), MAP_PRIVATE);
    void *wardens = map(KEEPERS_ROOM * sizeof(struct warden_note), MAP_SHARED);
    if (entries == MAP_FAILED || wardens == MAP_FAILED)
        return -1;
    /* No keeper needs it, and this process goes on writing to it: each would get copies. */
    if (madvise(entries, KEEPERS_ROOM * sizeof(struct keeper_entry), MADV_DONTFORK) < 0)
        return -1;
    *keepers = (struct keepers){.entries = entries, .wardens = wardens};
    return pid_index_init(&keepers->pids);
}

bool keepers_room(const struct keepers *keepers)
{
    return keepers->count < KEEPERS_MAX && !keepers_full(keepers);
}

bool keepers_full(const struct keepers *keepers)
{
    return keepers->used == KEEPERS_ROOM;
}

/* The next free entry. Those behind the used ones have the places that are free. */
static struct keeper_entry *next_entry(struct keepers *keepers)
{
    assert(keepers->used < KEEPERS_ROOM);
    struct keeper_entry *entry = &keepers->entries[keepers->used];
    if (keepers->used == keepers->most)
        entry->place = keepers->most++;
    return entry;
}

struct warden_note *keepers_next_warden(struct keepers *keepers)
{
    return &keepers->wardens[next_entry(keepers)->place];
}

static struct keeper_entry *add(struct keepers *keepers, uint64_t id)
{
    struct keeper_entry *entry = next_entry(keepers);
    *entry = (struct keeper_entry){.id = id, .place = entry->place};
    keepers->used++;
    return entry;
}

void keepers_add(struct keepers *keepers, pid_t pid)
{
    pid_index_set(&keepers->pids, pid, keepers->used);
    add(keepers, 0)->pid = pid;
    keepers->count++;
}

static struct keeper_entry *find(const struct keepers *keepers, pid_t pid)
{
    unsigned at = pid_index_find(&keepers->pids, pid);
    return at != PID_INDEX_NONE ? &keepers->entries[at] : NULL;
}

void keepers_assign(struct keepers *keepers, pid_t pid, uint64_t id, const int *holds,
                    unsigned count)
{
    struct keeper_entry *entry = find(keepers, pid);
    assert(entry != NULL && count <= CHILD_MAX_HOLD);
    entry->id = id;
    entry->hold_count = count;
    for (unsigned i = 0; i < count; i++)
        entry->holds[i] = holds[i];
}

void keepers_add_failed(struct keepers *keepers, uint64_t id, int error)
{
    add(keepers, id)->error = error;
}

const char *keepers_why(int error)
{
    return error == KEEPERS_ERROR_MANY ? "a runtime has 65536 of them at most"
                                       : error_of_start(error);
}

static void take(struct keepers *keepers, unsigned at)
{
    struct keeper_entry *entry = &keepers->entries[at];
    unsigned place = entry->place;
    for (unsigned i = 0; i < entry->hold_count; i++)
        (void)close(entry->holds[i]); /* nothing of the tree is left: its lock may be free */
    keepers->wardens[place].pid = 0;
    *entry = keepers->entries[--keepers->used];
    keepers->entries[keepers->used].place = place;
    if (entry->pid > 0 && at < keepers->used)
        pid_index_set(&keepers->pids, entry->pid, at);
}

bool keepers_ended(struct keepers *keepers, pid_t pid, int status)
{
    struct keeper_entry *entry = find(keepers, pid);
    if (entry == NULL)
        return false;
    keepers->count--;
    pid_index_remove(&keepers->pids, pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == KEEPER_TOLD) {
        take(keepers, (unsigned)(entry - keepers->entries)); /* it said GONE itself */
        return false;
    }
    entry->pid = 0;
    entry->over = WIFEXITED(status) && WEXITSTATUS(status) == KEEPER_UNTOLD;
    return !entry->over;
}

static bool is_owed(const struct keeper_entry *entry, bool gone)
{
    return entry->pid == 0 && (gone || entry->over || entry->error != 0);
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
    return find(keepers, pid) != NULL;
}

bool keepers_has_warden(const struct keepers *keepers, pid_t pid)
{
    for (unsigned i = 0; i < keepers->most; i++)
        if (keepers->wardens[i].pid == pid)
            return true;
    return false;
}

void keepers_kill(const struct keepers *keepers, uint64_t id)
{
    for (unsigned i = 0; i < keepers->used; i++)
        if (keepers->entries[i].id == id && keepers->entries[i].pid > 0)
            (void)kill(keepers->entries[i].pid, SIGKILL); /* not reaped yet: it is itself */
}

void keepers_signal(const struct keepers *keepers, int signal)
{
    for (unsigned i = 0; i < keepers->used; i++)
        if (keepers->entries[i].pid > 0)
            (void)kill(keepers->entries[i].pid, signal); /* gone already: the better */
}
