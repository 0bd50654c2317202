#include "postgres/channels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LISTEN_TIMEOUT_NS (5 * NS_PER_S)

struct channel {
    struct list_node link;
    struct postgres_request *request; /* LISTEN under way, or its outcome; replaced each time */
    const struct postgres_channels *channels;
    char name[];
};

void postgres_channels_init(struct postgres_channels *channels, struct loop *loop,
                            void (*listens)(void *context, const char *name), void *context)
{
    *channels = (struct postgres_channels){.loop = loop, .listens = listens, .context = context};
    list_init(&channels->list);
}

static void channel_free(struct channel *channel)
{
    list_remove(&channel->link);
    postgres_request_free(channel->request);
    free(channel);
}

void postgres_channels_free(struct postgres_channels *channels)
{
    while (!list_empty(&channels->list))
        channel_free((struct channel *)list_first(&channels->list));
}

bool postgres_channels_empty(const struct postgres_channels *channels)
{
    return list_empty(&channels->list);
}

static struct channel *find(const struct postgres_channels *channels, const char *name)
{
    list_each(node, &channels->list) if (strcmp(((struct channel *)node)->name, name) ==
                                         0) return (struct channel *)node;
    return NULL;
}

int postgres_channels_add(struct postgres_channels *channels, const char *name,
                          struct crown_error *err)
{
    if (find(channels, name) != NULL)
        return 0;
    size_t size = strlen(name) + 1;
    struct channel *added = calloc(1, sizeof(*added) + size);
    if (added == NULL)
        return error_set(err, ERROR_MEMORY, "postgres: out of memory");
    added->channels = channels;
    (void)memcpy(added->name, name, size);
    list_append(&channels->list, &added->link);
    return 1;
}

/* From now on nothing is missed: whoever looks now what he has missed, looks late enough. What went
 * wrong shows as no notification; a broken connection is told elsewhere. */
static void said(struct op *op)
{
    const struct channel *channel = op->waiter;
    if (channel->request->error.code == ERROR_NONE)
        channel->channels->listens(channel->channels->context, channel->name);
}

static void say(struct channel *channel, const char *verb, struct postgres_session *session)
{
    PGconn *conn = postgres_session_conn(session);
    char *name = libpq.PQescapeIdentifier(conn, channel->name, strlen(channel->name));
    char sql[512];
    int length = snprintf(sql, sizeof(sql), "%s %s", verb, name != NULL ? name : "\"\"");
    libpq.PQfreemem(name);
    if (length < 0 || (size_t)length >= sizeof(sql))
        return;
    postgres_request_free(channel->request);
    channel->request = postgres_request_new(channel->channels->loop, sql, NULL, 0);
    if (channel->request == NULL)
        return;
    channel->request->op.wake = said;
    channel->request->op.waiter = channel;
    channel->request->timeout_ns = LISTEN_TIMEOUT_NS;
    postgres_session_send(session, channel->request);
}

void postgres_channels_listen(struct postgres_channels *channels, const char *name,
                              struct postgres_session *session)
{
    list_each(node, &channels->list)
    {
        struct channel *channel = (struct channel *)node;
        if (name == NULL || strcmp(name, channel->name) == 0)
            say(channel, "LISTEN", session);
    }
}

void postgres_channels_remove(struct postgres_channels *channels, const char *name,
                              struct postgres_session *session)
{
    struct channel *found = find(channels, name);
    if (found == NULL)
        return;
    if (session != NULL)
        say(found, "UNLISTEN", session);
    channel_free(found);
}
