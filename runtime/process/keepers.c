#include "process/keepers.h"

#include <assert.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct keeper_entry {
    uint64_t id;
    pid_t pid; /* 0: died before its time */
};

int keepers_init(struct keepers *keepers)
{
    void *entries = mmap(NULL, KEEPERS_MAX * sizeof(struct keeper_entry), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (entries == MAP_FAILED)
        return -1;
    *keepers = (struct keepers){.entries = entries};
    return 0;
}

bool keepers_room(const struct keepers *keepers)
{
    return keepers->used < KEEPERS_MAX;
}

void keepers_add(struct keepers *keepers, pid_t pid, uint64_t id)
{
    assert(keepers->used < KEEPERS_MAX);
    keepers->entries[keepers->used++] = (struct keeper_entry){.id = id, .pid = pid};
    keepers->count++;
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

bool keepers_take_failed(struct keepers *keepers, uint64_t *id)
{
    for (unsigned i = 0; i < keepers->used; i++) {
        if (keepers->entries[i].pid != 0)
            continue;
        *id = keepers->entries[i].id;
        take(keepers, i);
        return true;
    }
    return false;
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
