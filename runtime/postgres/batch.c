#include "postgres/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/list.h"

/* Calls that go out, or went out, together; it lives until its last call was freed. */
struct postgres_group {
    struct list_node link;        /* in the batch's `open` or `sent` */
    struct postgres_batch *batch; /* NULL once the batch is gone */
    struct list calls;
    struct buffer columns[POSTGRES_BATCH_COLUMNS];
    uint64_t keys[POSTGRES_BATCH_MOST];
    int count, references;
    int64_t timeout_ns;
    struct postgres_request *request;
};

struct postgres_batch {
    struct postgres_client *client;
    struct loop *loop;
    char *sql;
    int columns;
    struct postgres_group *open;
    struct list sent;
    struct loop_deadline due;
};

/* FNV-1a: enough to tell the texts of one statement apart; a clash only sends a statement early. */
static uint64_t hash(const char *text)
{
    uint64_t value = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return value;
}

static void group_release(struct postgres_group *group)
{
    if (--group->references > 0)
        return;
    list_remove(&group->link);
    postgres_request_free(group->request);
    for (int i = 0; i < POSTGRES_BATCH_COLUMNS; i++)
        buffer_free(&group->columns[i]);
    free(group);
}

static void complete(struct postgres_call *call, int row, const struct crown_error *err)
{
    list_remove(&call->link);
    call->row = row;
    if (err != NULL)
        call->error = *err;
    else
        call->result = call->group->request->result;
    op_complete(&call->op);
}

static void fail(struct postgres_group *group, const struct crown_error *err)
{
    while (!list_empty(&group->calls)) {
        struct list_node *node = list_first(&group->calls);
        complete(container_of(node, struct postgres_call, link), -1, err);
    }
}

/* The first column of a row tells whose it is. */
static int place_of(const struct pg_result *result, int row)
{
    size_t size;
    const char *text = postgres_result_text(result, row, 0, &size);
    return text != NULL ? (int)strtol(text, NULL, 10) : 0;
}

static void hand_out(struct postgres_group *group)
{
    const struct pg_result *result = group->request->result;
    int rows[POSTGRES_BATCH_MOST + 1];
    for (int i = 0; i <= POSTGRES_BATCH_MOST; i++)
        rows[i] = -1;
    for (int row = 0; row < postgres_result_rows(result); row++) {
        int place = place_of(result, row);
        if (place >= 1 && place <= POSTGRES_BATCH_MOST)
            rows[place] = row;
    }
    while (!list_empty(&group->calls)) {
        struct list_node *node = list_first(&group->calls);
        struct postgres_call *call = container_of(node, struct postgres_call, link);
        complete(call, rows[call->place], NULL);
    }
}

static void answered(struct op *op)
{
    struct postgres_group *group = op->waiter;
    list_remove(&group->link); /* from now on only its calls hold it */
    if (group->request->error.code != ERROR_NONE)
        fail(group, &group->request->error);
    else
        hand_out(group);
    group_release(group); /* the statement's own reference */
}

static int close_arrays(struct postgres_group *group)
{
    int result = 0;
    for (int i = 0; i < group->batch->columns; i++)
        if (buffer_append(&group->columns[i], "}", 2) < 0)
            result = -1;
    return result;
}

static void send(struct postgres_batch *batch)
{
    struct postgres_group *group = batch->open;
    const char *values[POSTGRES_BATCH_COLUMNS];
    if (group == NULL)
        return;
    batch->open = NULL;
    loop_at_cancel(batch->loop, &batch->due);
    list_append(&batch->sent, &group->link);
    if (close_arrays(group) == 0) {
        for (int i = 0; i < batch->columns; i++)
            values[i] = group->columns[i].bytes;
        group->request = postgres_request_new(batch->loop, batch->sql, values, batch->columns);
    }
    for (int i = 0; i < batch->columns; i++)
        buffer_free(&group->columns[i]);
    if (group->request == NULL) {
        struct crown_error err;
        (void)error_set(&err, ERROR_MEMORY, "postgres: out of memory");
        fail(group, &err);
        group_release(group);
        return;
    }
    group->request->op.wake = answered;
    group->request->op.waiter = group;
    group->request->timeout_ns = group->timeout_ns;
    postgres_client_send(batch->client, group->request);
}

static void due(struct loop_deadline *deadline)
{
    send(container_of(deadline, struct postgres_batch, due));
}

/* An element of an array literal: quoted, with quotes and backslashes escaped (Postgres manual,
 * "Array Value Input"). */
static int append_element(struct buffer *column, bool first, const char *text)
{
    if (buffer_append(column, first ? "{\"" : ",\"", 2) < 0)
        return -1;
    for (;;) {
        size_t plain = strcspn(text, "\"\\");
        if (buffer_append(column, text, plain) < 0)
            return -1;
        text += plain;
        if (*text == '\0')
            return buffer_append(column, "\"", 1);
        if (buffer_append(column, "\\", 1) < 0 || buffer_append(column, text++, 1) < 0)
            return -1;
    }
}

static bool fits(const struct postgres_group *group, uint64_t key)
{
    for (int i = 0; i < group->count; i++)
        if (group->keys[i] == key)
            return false;
    return true;
}

static struct postgres_group *open_group(struct postgres_batch *batch, uint64_t key,
                                         int64_t timeout_ns)
{
    if (batch->open != NULL && !fits(batch->open, key))
        send(batch);
    if (batch->open != NULL) {
        if (timeout_ns > batch->open->timeout_ns)
            batch->open->timeout_ns = timeout_ns;
        return batch->open;
    }
    struct postgres_group *group = calloc(1, sizeof(*group));
    if (group == NULL)
        return NULL;
    group->batch = batch;
    group->timeout_ns = timeout_ns;
    group->references = 1;
    list_init(&group->calls);
    batch->open = group;
    return group;
}

static void cancel(struct op *op)
{
    list_remove(&(container_of(op, struct postgres_call, op))->link);
}

struct postgres_call *postgres_batch_call(struct postgres_batch *batch, const char *const *values,
                                          int64_t window_ns, int64_t timeout_ns)
{
    struct loop *loop = batch->loop;
    uint64_t key = hash(values[0]);
    struct postgres_call *call = calloc(1, sizeof(*call));
    struct postgres_group *group = call != NULL ? open_group(batch, key, timeout_ns) : NULL;
    if (group == NULL) {
        free(call);
        return NULL;
    }
    for (int i = 0; i < batch->columns; i++)
        if (append_element(&group->columns[i], group->count == 0, values[i]) < 0) {
            free(call); /* the half-written group fails as a whole when it is read */
            return NULL;
        }
    op_init(&call->op, loop, cancel);
    call->group = group;
    call->row = -1;
    group->keys[group->count] = key;
    call->place = ++group->count;
    group->references++;
    list_append(&group->calls, &call->link);
    int64_t at = clock_add_ns(loop_now(loop), window_ns);
    if (group->count == POSTGRES_BATCH_MOST)
        send(batch);
    else if (!loop_at_armed(&batch->due) || at < batch->due.node.key)
        loop_at(loop, &batch->due, at);
    return call;
}

void postgres_call_free(struct postgres_call *call)
{
    if (call == NULL)
        return;
    op_cancel(&call->op);
    list_remove(&call->link);
    group_release(call->group);
    free(call);
}

struct postgres_batch *postgres_batch_new(struct postgres_client *client, const char *sql,
                                          int columns)
{
    struct postgres_batch *batch = calloc(1, sizeof(*batch));
    if (batch == NULL || (batch->sql = strdup(sql)) == NULL) {
        free(batch);
        return NULL;
    }
    batch->client = client;
    batch->loop = postgres_client_loop(client);
    batch->columns = columns;
    batch->due.fire = due;
    list_init(&batch->sent);
    return batch;
}

static void abandon(struct postgres_group *group)
{
    struct crown_error err;
    (void)error_set(&err, ERROR_CLOSED, "closed");
    list_remove(&group->link);
    group->batch = NULL;
    fail(group, &err);
    postgres_request_free(group->request);
    group->request = NULL;
    group_release(group);
}

void postgres_batch_free(struct postgres_batch *batch)
{
    if (batch == NULL)
        return;
    loop_at_cancel(batch->loop, &batch->due);
    if (batch->open != NULL)
        abandon(batch->open);
    while (!list_empty(&batch->sent))
        abandon((struct postgres_group *)list_first(&batch->sent));
    free(batch->sql);
    free(batch);
}
