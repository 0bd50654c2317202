#include "net/intake.h"

#include <string.h>

static void drop_taken(struct intake *intake)
{
    buffer_drop(&intake->bytes, intake->taken);
    intake->taken = 0;
}

void intake_want(struct intake *intake, enum stream_read kind, size_t size)
{
    drop_taken(intake);
    intake->kind = kind;
    intake->wanted = size;
}

bool intake_is_enough(const struct intake *intake)
{
    size_t have = intake->bytes.size - intake->taken;
    const char *bytes = intake->bytes.bytes + intake->taken;
    switch (intake->kind) {
    case STREAM_LINE:
        return have > STREAM_READ_MAX || (have > 0 && memchr(bytes, '\n', have) != NULL);
    case STREAM_EXACT:
        return have >= intake->wanted;
    case STREAM_SOME:
        return have > 0;
    default:
        return have > STREAM_READ_MAX;
    }
}

int intake_add(struct intake *intake, const char *bytes, size_t size)
{
    return buffer_append(&intake->bytes, bytes, size);
}

ptrdiff_t intake_take(struct intake *intake, const char **bytes, const char *peer,
                      struct crown_error *err)
{
    size_t have = intake->bytes.size;
    size_t size = have;
    *bytes = intake->bytes.bytes;
    if (intake->kind == STREAM_LINE && have > 0) {
        const char *end = memchr(*bytes, '\n', have);
        if (end == NULL && have > STREAM_READ_MAX)
            return error_set(err, ERROR_PROTOCOL, "a line of more than %u bytes from %s",
                             STREAM_READ_MAX, peer);
        size = end != NULL ? (size_t)(end - *bytes) + 1 : have;
    } else if (intake->kind == STREAM_EXACT && have > intake->wanted) {
        size = intake->wanted;
    } else if (intake->kind == STREAM_ALL && have > STREAM_READ_MAX) {
        return error_set(err, ERROR_PROTOCOL, "more than %u bytes from %s", STREAM_READ_MAX, peer);
    }
    intake->taken = size;
    return (ptrdiff_t)size;
}

bool intake_is_left(const struct intake *intake)
{
    return intake->bytes.size > intake->taken;
}

void intake_forget(struct intake *intake)
{
    intake->taken = intake->bytes.size;
    drop_taken(intake);
}

void intake_free(struct intake *intake)
{
    buffer_free(&intake->bytes);
}
