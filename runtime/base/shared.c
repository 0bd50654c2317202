#include "base/shared.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"

struct shared {
    const void *bytes; /* the copy below; in a key, those that are looked for */
    size_t size;
    size_t users;
    max_align_t copy[];
};

static void *everything; /* tsearch(3) tree: of this process */

static int compare(const void *a, const void *b)
{
    const struct shared *one = a, *other = b;
    if (one->size != other->size)
        return one->size < other->size ? -1 : 1;
    return memcmp(one->bytes, other->bytes, one->size);
}

static struct shared *copy_of(const void *bytes, size_t size)
{
    struct shared *shared = malloc(sizeof(*shared) + size);
    if (shared == NULL)
        return NULL;
    *shared = (struct shared){.bytes = shared->copy, .size = size};
    memcpy(shared->copy, bytes, size);
    if (tsearch(shared, &everything, compare) != NULL)
        return shared;
    free(shared);
    return NULL;
}

const void *shared_hold(const void *bytes, size_t size)
{
    const struct shared key = {.bytes = bytes, .size = size};
    struct shared **found = tfind(&key, &everything, compare);
    struct shared *shared = found != NULL ? *found : copy_of(bytes, size);
    if (shared == NULL)
        return NULL;
    shared->users++;
    return shared->copy;
}

const char *shared_text(const char *text)
{
    return text != NULL ? shared_hold(text, strlen(text) + 1) : NULL;
}

void shared_release(const void *bytes)
{
    if (bytes == NULL)
        return;
    struct shared *shared = container_of(bytes, struct shared, copy);
    if (--shared->users > 0)
        return;
    (void)tdelete(shared, &everything, compare); /* it is there: copy_of */
    free(shared);
}
