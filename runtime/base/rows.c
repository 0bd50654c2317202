#include "base/rows.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT 1024u                /* pointers */
#define MUCH ((size_t)1024u * 1024u) /* bytes that are worth giving back to the system */

struct entry {
    struct entry *next;
    uint32_t hash;
    uint32_t place;
    uint32_t number;
    uint32_t value_size;
    uint16_t name_size;
    char bytes[]; /* the name, then the value */
};

/* An array that is never copied as a whole. */
struct pointers {
    struct entry ***segments;
    size_t count, room;
};

/* Linear hashing: buckets [0, bucket_count) with half <= bucket_count <= 2 * half. */
struct rows {
    struct pointers buckets, places;
    uint32_t count, bucket_count, half;
    size_t dropped; /* bytes, by rows_shrink */
};

static struct entry **pointer(const struct pointers *pointers, uint32_t at)
{
    return &pointers->segments[at / SEGMENT][at % SEGMENT];
}

/* Makes room for so many. */
static int reserve(struct pointers *pointers, uint32_t count)
{
    if (count <= pointers->count * SEGMENT)
        return 0;
    if (pointers->count == pointers->room) {
        size_t room = pointers->room == 0 ? 4 : 2 * pointers->room;
        struct entry ***segments = realloc(pointers->segments, room * sizeof(*segments));
        if (segments == NULL)
            return -1;
        pointers->segments = segments;
        pointers->room = room;
    }
    struct entry **segment = calloc(SEGMENT, sizeof(struct entry *));
    if (segment == NULL)
        return -1;
    pointers->segments[pointers->count++] = segment;
    return 0;
}

/* Gives back what so many do not need; one segment is kept, so that a count that goes up and down
 * by one does not allocate each time. */
static void trim(struct pointers *pointers, uint32_t count)
{
    while (pointers->count * SEGMENT >= (size_t)count + 2 * SEGMENT)
        free(pointers->segments[--pointers->count]);
}

static void drop(struct pointers *pointers)
{
    for (size_t i = 0; i < pointers->count; i++)
        free(pointers->segments[i]);
    free(pointers->segments);
}

/* Names are chosen by members, who are trusted. */
static uint32_t hash_of(const char *name, size_t size)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t hash = size * factor;
    while (size > 0) {
        uint64_t word = 0;
        size_t part = size < sizeof(word) ? size : sizeof(word);
        memcpy(&word, name, part);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 32;
        name += part;
        size -= part;
    }
    return (uint32_t)hash;
}

static uint32_t bucket_of(const struct rows *rows, uint32_t hash)
{
    uint32_t bucket = hash & (2 * rows->half - 1);
    return bucket < rows->bucket_count ? bucket : bucket - rows->half;
}

/* Where the pointer to a name's entry stands; it points to NULL where the name is not there. */
static struct entry **find(const struct rows *rows, const char *name, size_t size, uint32_t hash)
{
    struct entry **link = pointer(&rows->buckets, bucket_of(rows, hash));
    while (*link != NULL && !((*link)->hash == hash && (*link)->name_size == size &&
                              memcmp((*link)->bytes, name, size) == 0))
        link = &(*link)->next;
    return link;
}

/* One bucket more: some of another one's entries move there. Without the memory the chains grow. */
static void split(struct rows *rows)
{
    uint32_t fresh = rows->bucket_count;
    if (fresh == UINT32_MAX / 4 || reserve(&rows->buckets, fresh + 1) < 0)
        return;
    if (fresh == 2 * rows->half)
        rows->half = fresh;
    rows->bucket_count = fresh + 1;
    struct entry **link = pointer(&rows->buckets, fresh - rows->half);
    struct entry **to = pointer(&rows->buckets, fresh);
    *to = NULL;
    while (*link != NULL) {
        struct entry *entry = *link;
        if (bucket_of(rows, entry->hash) == fresh) {
            *link = entry->next;
            entry->next = *to;
            *to = entry;
        } else
            link = &entry->next;
    }
}

/* One bucket less. */
static void merge(struct rows *rows)
{
    if (rows->bucket_count == 1)
        return;
    uint32_t last = rows->bucket_count - 1;
    struct entry **link = pointer(&rows->buckets, last - rows->half);
    while (*link != NULL)
        link = &(*link)->next;
    *link = *pointer(&rows->buckets, last);
    *pointer(&rows->buckets, last) = NULL;
    rows->bucket_count = last;
    if (last == rows->half && rows->half > 1)
        rows->half /= 2;
    trim(&rows->buckets, last);
}

static void describe(const struct entry *entry, struct row *row)
{
    row->name = entry->bytes;
    row->name_size = entry->name_size;
    row->value = entry->bytes + entry->name_size;
    row->value_size = entry->value_size;
    row->number = entry->number;
}

static void set_value(struct entry *entry, const struct row *row)
{
    entry->number = row->number;
    if (row->value_size > 0)
        memcpy(entry->bytes + entry->name_size, row->value, row->value_size);
}

static struct entry *entry_new(const struct row *row, uint32_t hash)
{
    struct entry *entry = malloc(sizeof(*entry) + row->name_size + row->value_size);
    if (entry == NULL)
        return NULL;
    entry->hash = hash;
    entry->name_size = (uint16_t)row->name_size;
    entry->value_size = (uint32_t)row->value_size;
    memcpy(entry->bytes, row->name, row->name_size);
    set_value(entry, row);
    return entry;
}

static int insert(struct rows *rows, struct entry **link, const struct row *row, uint32_t hash)
{
    if (rows->count == UINT32_MAX / 4 || reserve(&rows->places, rows->count + 1) < 0)
        return -1;
    struct entry *entry = entry_new(row, hash);
    if (entry == NULL)
        return -1;
    entry->next = NULL;
    entry->place = ++rows->count;
    *pointer(&rows->places, entry->place - 1) = entry;
    *link = entry;
    if (rows->count > rows->bucket_count)
        split(rows);
    return 0;
}

static int replace(struct rows *rows, struct entry **link, const struct row *row)
{
    struct entry *old = *link;
    if (old->value_size == row->value_size) {
        set_value(old, row);
        return 0;
    }
    struct entry *entry = entry_new(row, old->hash);
    if (entry == NULL)
        return -1;
    entry->next = old->next;
    entry->place = old->place;
    *pointer(&rows->places, entry->place - 1) = entry;
    *link = entry;
    free(old);
    return 0;
}

struct rows *rows_new(void)
{
    struct rows *rows = calloc(1, sizeof(*rows));
    if (rows == NULL || reserve(&rows->buckets, 1) < 0) {
        rows_free(rows);
        return NULL;
    }
    rows->bucket_count = 1;
    rows->half = 1;
    return rows;
}

void rows_free(struct rows *rows)
{
    if (rows == NULL)
        return;
    for (uint32_t i = 0; i < rows->count; i++)
        free(*pointer(&rows->places, i));
    drop(&rows->buckets);
    drop(&rows->places);
    free(rows);
}

uint32_t rows_count(const struct rows *rows)
{
    return rows->count;
}

int rows_put(struct rows *rows, const struct row *row)
{
    uint32_t hash = hash_of(row->name, row->name_size);
    struct entry **link = find(rows, row->name, row->name_size, hash);
    return *link == NULL ? insert(rows, link, row, hash) : replace(rows, link, row);
}

bool rows_remove(struct rows *rows, const char *name, size_t size)
{
    struct entry **link = find(rows, name, size, hash_of(name, size));
    struct entry *entry = *link;
    if (entry == NULL)
        return false;
    *link = entry->next;
    struct entry **last = pointer(&rows->places, rows->count - 1);
    (*last)->place = entry->place;
    *pointer(&rows->places, entry->place - 1) = *last;
    *last = NULL;
    rows->count--;
    trim(&rows->places, rows->count);
    if (rows->count < rows->bucket_count / 2)
        merge(rows);
    free(entry);
    return true;
}

bool rows_get(const struct rows *rows, const char *name, size_t size, struct row *found)
{
    const struct entry *entry = *find(rows, name, size, hash_of(name, size));
    if (entry != NULL)
        describe(entry, found);
    return entry != NULL;
}

bool rows_at(const struct rows *rows, uint32_t place, struct row *found)
{
    if (place == 0 || place > rows->count)
        return false;
    describe(*pointer(&rows->places, place - 1), found);
    return true;
}

static void give_back(void)
{
/* Other C libraries give memory back by themselves. */
#ifdef __GLIBC__
    (void)malloc_trim(0); /* whether there was anything to give back does not matter */
#endif
}

bool rows_shrink(struct rows *rows, uint32_t most)
{
    struct row row;
    for (; most > 0 && rows_at(rows, rows->count, &row); most--) {
        rows->dropped += row.name_size + row.value_size;
        (void)rows_remove(rows, row.name, row.name_size);
    }
    if (rows->count > 0)
        return true;
    /* Once, at the end: while there are holes all over it takes long. */
    if (rows->dropped >= MUCH)
        give_back();
    rows->dropped = 0;
    return false;
}
