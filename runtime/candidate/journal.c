#include "candidate/journal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define JOURNAL_SLOTS 65536u

struct journal_slot {
    uint64_t hash; /* 0: free */
    uint64_t epoch;
};

struct journal {
    struct journal_slot *slots;
};

#define JOURNAL_SIZE (JOURNAL_SLOTS * sizeof(struct journal_slot))

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/): names are the user's own, so nobody has a
 * reason to make two of them collide in 64 bits. */
static uint64_t name_hash(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return hash == 0 ? 1 : hash;
}

/* The slot of `name`, or the free one where it belongs; NULL when the table is full. */
static struct journal_slot *slot_find(const struct journal *journal, const char *name)
{
    uint64_t hash = name_hash(name);
    for (uint64_t i = 0; i < JOURNAL_SLOTS; i++) {
        struct journal_slot *slot = &journal->slots[(hash + i) % JOURNAL_SLOTS];
        if (slot->hash == hash || slot->hash == 0)
            return slot;
    }
    return NULL;
}

struct journal *journal_open(int fd, struct crown_error *err)
{
    if (ftruncate(fd, (off_t)JOURNAL_SIZE) < 0) {
        error_set_errno(err, errno, "size the journal");
        return NULL;
    }
    struct journal *journal = calloc(1, sizeof(*journal));
    if (journal == NULL) {
        error_set(err, ERROR_MEMORY, "map the journal: out of memory");
        return NULL;
    }
    void *slots = mmap(NULL, JOURNAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (slots == MAP_FAILED) {
        error_set_errno(err, errno, "map the journal");
        free(journal);
        return NULL;
    }
    journal->slots = slots;
    return journal;
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    (void)munmap(journal->slots, JOURNAL_SIZE); /* fails for wrong arguments only */
    free(journal);
}

void journal_set(struct journal *journal, const char *name, uint64_t epoch)
{
    struct journal_slot *slot = slot_find(journal, name);
    if (slot == NULL || (slot->hash == 0 && epoch == 0))
        return;
    slot->hash = name_hash(name);
    slot->epoch = epoch;
}

uint64_t journal_get(const struct journal *journal, const char *name)
{
    const struct journal_slot *slot = slot_find(journal, name);
    return slot != NULL && slot->hash != 0 ? slot->epoch : 0;
}
