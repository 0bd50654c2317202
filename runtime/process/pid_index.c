#include "process/pid_index.h"

#include <stddef.h>
#include <sys/mman.h>

#define SLOTS (2u * PID_INDEX_MOST)
#define SIZE (SLOTS * sizeof(struct pid_index_slot))

struct pid_index_slot {
    pid_t pid; /* 0: free */
    unsigned value;
};

int pid_index_init(struct pid_index *index)
{
    index->slots = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return index->slots == MAP_FAILED ? -1 : madvise(index->slots, SIZE, MADV_DONTFORK);
}

/* The kernel counts process ids up: by their low bits neighbours stand side by side, in few pages.
 */
static unsigned home(pid_t pid)
{
    return (unsigned)pid % SLOTS;
}

static unsigned next(unsigned at)
{
    return (at + 1) % SLOTS;
}

/* @return where it stands, or where it would. */
static unsigned place(const struct pid_index *index, pid_t pid)
{
    unsigned at = home(pid);
    while (index->slots[at].pid != 0 && index->slots[at].pid != pid)
        at = next(at);
    return at;
}

void pid_index_set(struct pid_index *index, pid_t pid, unsigned value)
{
    index->slots[place(index, pid)] = (struct pid_index_slot){.pid = pid, .value = value};
}

unsigned pid_index_find(const struct pid_index *index, pid_t pid)
{
    const struct pid_index_slot *slot = &index->slots[place(index, pid)];
    return slot->pid != 0 ? slot->value : PID_INDEX_NONE;
}

/* Those behind it move up, each where its home is no later than the gap. */
void pid_index_remove(struct pid_index *index, pid_t pid)
{
    unsigned gap = place(index, pid);
    if (index->slots[gap].pid == 0)
        return;
    for (unsigned at = next(gap); index->slots[at].pid != 0; at = next(at)) {
        unsigned from_home = (at - home(index->slots[at].pid)) % SLOTS;
        if (from_home < (at - gap) % SLOTS)
            continue;
        index->slots[gap] = index->slots[at];
        gap = at;
    }
    index->slots[gap].pid = 0;
}
