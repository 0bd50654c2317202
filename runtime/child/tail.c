#include "child/tail.h"

#include <stdlib.h>
#include <string.h>

void tail_begin(struct tail *tail, size_t room)
{
    if (tail->room != room)
        tail_free(tail);
    if (tail->bytes == NULL && room > 0)
        tail->bytes = malloc(room);
    tail->room = tail->bytes != NULL ? room : 0;
    tail->size = 0;
    tail->first = 0;
    tail->total = 0;
}

static void put(struct tail *tail, const char *bytes, size_t size)
{
    size_t at = (tail->first + tail->size) % tail->room;
    size_t straight = size < tail->room - at ? size : tail->room - at;
    memcpy(tail->bytes + at, bytes, straight);
    memcpy(tail->bytes, bytes + straight, size - straight);
    tail->size += size;
}

void tail_add(struct tail *tail, const char *bytes, size_t size)
{
    tail->total += size;
    size_t skipped = size > tail->room ? size - tail->room : 0;
    size -= skipped;
    if (size == 0)
        return;
    size_t gone = tail->size + size > tail->room ? tail->size + size - tail->room : 0;
    tail->first = (tail->first + gone) % tail->room;
    tail->size -= gone;
    put(tail, bytes + skipped, size);
}

void tail_copy(const struct tail *tail, char *out)
{
    if (tail->size == 0)
        return;
    size_t straight = tail->room - tail->first < tail->size ? tail->room - tail->first : tail->size;
    memcpy(out, tail->bytes + tail->first, straight);
    memcpy(out + straight, tail->bytes, tail->size - straight);
}

void tail_free(struct tail *tail)
{
    free(tail->bytes);
    *tail = (struct tail){0};
}
