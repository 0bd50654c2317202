#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST 256u

int buffer_append(struct buffer *buffer, const char *bytes, size_t size)
{
    if (buffer->size + size > buffer->room) {
        size_t room = buffer->room < ROOM_LEAST ? ROOM_LEAST : buffer->room;
        while (room < buffer->size + size)
            room *= 2;
        char *grown = realloc(buffer->bytes, room);
        if (grown == NULL)
            return -1;
        buffer->bytes = grown;
        buffer->room = room;
    }
    if (size > 0)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    return 0;
}

void buffer_drop(struct buffer *buffer, size_t size)
{
    if (size == 0)
        return;
    buffer->size -= size;
    memmove(buffer->bytes, buffer->bytes + size, buffer->size);
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
