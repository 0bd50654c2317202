#include "candidate/journal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

/* Tables one behind the other, each twice as large as the one before: a name stands in the first
 * that had a place for it, and never moves, so that whoever dies in the middle leaves it readable.
 */
#define FIRST_SLOTS 4096u
#define TABLES_MOST 16 /* 268 million names */
#define PROBES 32      /* places of a name in one table */

struct journal_slot {
    uint64_t hash; /* 0: free, and so are the name's places behind it */
    uint64_t epoch;
};

struct journal {
    int fd;
    unsigned count;
    struct journal_slot *tables[TABLES_MOST];
};

static size_t slots_in(unsigned table)
{
    return (size_t)FIRST_SLOTS << table;
}

static size_t table_size(unsigned table)
{
    return slots_in(table) * sizeof(struct journal_slot);
}

/* How large the file is that has so many tables: each begins where the ones before it end. */
static size_t file_size(unsigned tables)
{
    return table_size(tables) - table_size(0);
}

static uint64_t name_hash(const char *name)
{
    uint64_t hash = hash_text(name);
    return hash == 0 ? 1 : hash;
}

static struct journal_slot *find_in(struct journal_slot *slots, size_t count, uint64_t hash)
{
    for (uint64_t i = 0; i < PROBES; i++) {
        struct journal_slot *slot = &slots[(hash + i) % count];
        if (slot->hash == hash || slot->hash == 0)
            return slot;
    }
    return NULL;
}

/* The slot of a name, or the free one where it belongs; NULL when no table has room for it. */
static struct journal_slot *slot_find(const struct journal *journal, uint64_t hash)
{
    for (unsigned i = 0; i < journal->count; i++) {
        struct journal_slot *slot = find_in(journal->tables[i], slots_in(i), hash);
        if (slot != NULL)
            return slot;
    }
    return NULL;
}

static int map_next(struct journal *journal)
{
    const unsigned next = journal->count;
    void *slots = mmap(NULL, table_size(next), PROT_READ | PROT_WRITE, MAP_SHARED, journal->fd,
                       (off_t)file_size(next));
    if (slots == MAP_FAILED)
        return -1;
    journal->tables[journal->count++] = slots;
    return 0;
}

static int grow(struct journal *journal)
{
    if (journal->count == TABLES_MOST ||
        ftruncate(journal->fd, (off_t)file_size(journal->count + 1)) < 0)
        return -1;
    return map_next(journal);
}

/* What the runtimes before have made, and at least one. */
static int map_all(struct journal *journal)
{
    struct stat found;
    if (fstat(journal->fd, &found) < 0)
        return -1;
    while (journal->count < TABLES_MOST && file_size(journal->count + 1) <= (size_t)found.st_size) {
        if (map_next(journal) < 0)
            return -1;
    }
    return journal->count > 0 ? 0 : grow(journal);
}

struct journal *journal_open(int fd, struct crown_error *err)
{
    struct journal *journal = calloc(1, sizeof(*journal));
    if (journal == NULL) {
        error_set(err, ERROR_MEMORY, "map the journal: out of memory");
        (void)close(fd);
        return NULL;
    }
    journal->fd = fd;
    if (map_all(journal) < 0) {
        error_set_errno(err, errno, "map the journal");
        journal_close(journal);
        return NULL;
    }
    return journal;
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    for (unsigned i = 0; i < journal->count; i++)
        (void)munmap(journal->tables[i], table_size(i)); /* fails for wrong arguments only */
    (void)close(journal->fd);
    free(journal);
}

void journal_set(struct journal *journal, const char *name, uint64_t epoch)
{
    const uint64_t hash = name_hash(name);
    struct journal_slot *slot = slot_find(journal, hash);
    if (slot == NULL && epoch != 0 && grow(journal) == 0)
        slot = slot_find(journal, hash);
    if (slot == NULL || (slot->hash == 0 && epoch == 0))
        return;
    slot->epoch = epoch;
    slot->hash = hash;
}

uint64_t journal_get(const struct journal *journal, const char *name)
{
    const struct journal_slot *slot = slot_find(journal, name_hash(name));
    return slot != NULL && slot->hash != 0 ? slot->epoch : 0;
}
