#include "bind/redis_codec.h"

#include <stdio.h>

#define ELEMENTS_MAX 100000 /* of one reply, whatever arrays they are in */

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static redisReplyObjectFunctions reply_makers; /* hiredis's own, but for createArray */
static void *(*create_any_array)(const redisReadTask *task, element_count elements);

/* hiredis allots what is only promised, and looks at each place of it when it lets go: a few bytes
 * would cost seconds. And Lua tables of a million elements cost one. */
static void *create_array(const redisReadTask *task, element_count elements)
{
    size_t *promised = task->privdata;
    *promised += (size_t)elements;
    return *promised <= ELEMENTS_MAX ? create_any_array(task, elements) : NULL;
}

void redis_library(char *text, size_t size)
{
    (void)snprintf(text, size, "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

redisReader *redis_reader_new(size_t *elements)
{
    redisReader *reader = redisReaderCreate();
    if (reader == NULL)
        return NULL;
    if (create_any_array == NULL) {
        reply_makers = *reader->fn;
        create_any_array = reply_makers.createArray;
        reply_makers.createArray = create_array;
    }
    reader->fn = &reply_makers;
    reader->privdata = elements;
    return reader;
}

enum redis_kind redis_kind_of(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
#if HIREDIS_MAJOR >= 1
    case REDIS_REPLY_BOOL:
#endif
        return REDIS_NUMBER;
    case REDIS_REPLY_ARRAY:
#if HIREDIS_MAJOR >= 1
    case REDIS_REPLY_MAP:
    case REDIS_REPLY_SET:
    case REDIS_REPLY_ATTR:
    case REDIS_REPLY_PUSH:
#endif
        return REDIS_LIST;
    case REDIS_REPLY_NIL:
        return REDIS_NOTHING;
    case REDIS_REPLY_ERROR:
        return REDIS_FAILURE;
    default: /* strings and states; of RESP3 doubles, big numbers and verbatim strings */
        return REDIS_TEXT;
    }
}
