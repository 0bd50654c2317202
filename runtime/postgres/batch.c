#include "postgres/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/hash.h"
#include "base/list.h"
#include "postgres/distinct.h"

/* So many statements of a batch are under way at once: one that the server works on, and one that
 * is there when it has done that. What comes meanwhile waits here, where it finds company, and can
 * still be given up; in the server's line it would wait in front of what is in more of a hurry. */
#define UNDER_WAY_MOST 2
#define TIME_SIZE 32 /* seconds and microseconds as text */

/* Calls that went out together; it lives until its last call was freed. */
struct postgres_group {
    struct list_node link; /* in the batch's `sent` */
    struct postgres_batch *batch;
    struct list calls;
    int count, references;
    struct postgres_request *request;
    uint64_t number;
    int64_t sent_ns;
    struct crown_error error; /* why none of the calls was answered */
};

struct postgres_batch {
    struct postgres_client *client;
    struct loop *loop;
    char *sql;
    int columns;
    bool prepared, timed;
    double due_base, due_rate;
    struct list waiting; /* calls, in the order in which they came */
    int waiting_count;
    bool is_due; /* all that waits goes out as soon as there is room */
    struct list sent;
    int under_way;
    uint64_t statements; /* so far */
    struct loop_deadline due;
};

static void group_release(struct postgres_group *group)
{
    if (--group->references > 0)
        return;
    list_remove(&group->link);
    postgres_request_free(group->request);
    free(group);
}

/* The result is NULL where the group failed. */
static void complete(struct postgres_call *call, const struct pg_result *result, int row)
{
    list_remove(&call->link);
    call->row = row;
    call->result = result;
    if (result == NULL)
        call->error = &call->group->error;
    op_complete(&call->op);
}

static void fail(struct postgres_group *group, const struct crown_error *err)
{
    group->error = *err;
    while (!list_empty(&group->calls)) {
        struct list_node *node = list_first(&group->calls);
        complete(container_of(node, struct postgres_call, link), NULL, -1);
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
        complete(call, result, rows[call->place]);
    }
}

static struct postgres_call *first_waiting(const struct postgres_batch *batch)
{
    struct list_node *node = list_first(&batch->waiting);
    return node != NULL ? container_of(node, struct postgres_call, link) : NULL;
}

static void take_from_line(struct postgres_batch *batch, struct postgres_call *call)
{
    list_remove(&call->link);
    batch->waiting_count--;
    call->batch = NULL;
}

/* Gives the call to a group. */
static void take_into(struct postgres_group *group, struct postgres_call *call)
{
    take_from_line(group->batch, call);
    call->group = group;
    call->place = ++group->count;
    group->references++;
    list_append(&group->calls, &call->link);
}

/* As many of the first that wait as fit into one statement. @return how long the most patient of
 * them waits for an answer. */
static int64_t fill(struct postgres_group *group)
{
    struct distinct keys = {.hashes = {0}};
    struct postgres_call *call;
    int64_t timeout_ns = 0;
    while (group->count < POSTGRES_BATCH_MOST && (call = first_waiting(group->batch)) != NULL &&
           distinct_add(&keys, call->key)) {
        if (call->timeout_ns > timeout_ns)
            timeout_ns = call->timeout_ns;
        take_into(group, call);
    }
    return timeout_ns;
}

/* An array literal of one column: the calls have their elements ready. */
static int write_array(const struct postgres_group *group, int column, struct buffer *array)
{
    char before = '{';
    list_each(node, &group->calls)
    {
        const struct postgres_call *call = container_of(node, struct postgres_call, link);
        size_t from = column > 0 ? call->ends[column - 1] : 0;
        if (buffer_append(array, &before, 1) < 0 ||
            buffer_append(array, call->elements + from, call->ends[column] - from) < 0)
            return -1;
        before = ',';
    }
    return buffer_append(array, "}", 2);
}

static struct postgres_request *write_request(const struct postgres_group *group)
{
    const struct postgres_batch *batch = group->batch;
    struct buffer arrays[POSTGRES_BATCH_COLUMNS] = {{.bytes = NULL}};
    const char *values[POSTGRES_BATCH_COLUMNS + 1];
    char due[TIME_SIZE];
    struct postgres_request *request = NULL;
    double due_at = batch->due_base + batch->due_rate * clock_seconds_from_ns(group->sent_ns);
    int size = snprintf(due, sizeof(due), "%.6f", due_at);
    bool written = size > 0 && size < TIME_SIZE;
    for (int i = 0; i < batch->columns; i++) {
        written = written && write_array(group, i, &arrays[i]) == 0;
        values[i] = arrays[i].bytes;
    }
    values[batch->columns] = due;
    if (written)
        request = postgres_request_new(batch->loop, batch->sql, values,
                                       batch->columns + (batch->timed ? 1 : 0));
    for (int i = 0; i < batch->columns; i++)
        buffer_free(&arrays[i]);
    return request;
}

static struct postgres_group *new_group(struct postgres_batch *batch)
{
    struct postgres_group *group = calloc(1, sizeof(*group));
    if (group == NULL)
        abort(); /* crash-only, as every allocation of a few bytes */
    group->batch = batch;
    group->number = ++batch->statements;
    group->sent_ns = loop_now(batch->loop);
    group->references = 1;
    list_init(&group->calls);
    return group;
}

static void answered(struct op *op);

static void send(struct postgres_batch *batch)
{
    struct crown_error err;
    struct postgres_group *group = new_group(batch);
    int64_t timeout_ns = fill(group);
    group->request = write_request(group);
    if (group->request == NULL) {
        (void)error_set(&err, ERROR_MEMORY, "postgres: out of memory");
        fail(group, &err);
        group_release(group);
        return;
    }
    list_append(&batch->sent, &group->link);
    batch->under_way++;
    group->request->op.wake = answered;
    group->request->op.waiter = group;
    group->request->timeout_ns = timeout_ns;
    group->request->brief = true;
    group->request->repeated = batch->prepared;
    postgres_client_send(batch->client, group->request);
}

/* Sends what is to go, as far as there is room for it. */
static void pump(struct postgres_batch *batch)
{
    while (batch->under_way < UNDER_WAY_MOST && batch->waiting_count > 0 &&
           (batch->is_due || batch->waiting_count >= POSTGRES_BATCH_MOST))
        send(batch);
    if (batch->waiting_count > 0)
        return;
    batch->is_due = false;
    loop_at_cancel(batch->loop, &batch->due);
}

/* What waits here waits for the same connection as what the client has given up. */
static void fail_waiting(struct postgres_batch *batch, const struct crown_error *err)
{
    struct postgres_group *group = new_group(batch);
    while (batch->waiting_count > 0)
        take_into(group, first_waiting(batch));
    fail(group, err);
    group_release(group);
}

static void answered(struct op *op)
{
    struct postgres_group *group = op->waiter;
    struct postgres_batch *batch = group->batch;
    const struct postgres_request *request = group->request;
    list_remove(&group->link); /* from now on only its calls hold it */
    batch->under_way--;
    if (request->error.code == ERROR_NONE) {
        hand_out(group);
    } else {
        fail(group, &request->error);
        if (request->generation_used == 0)
            fail_waiting(batch, &request->error);
    }
    group_release(group); /* the statement's own reference */
    pump(batch);
}

static void due(struct loop_deadline *deadline)
{
    struct postgres_batch *batch = container_of(deadline, struct postgres_batch, due);
    batch->is_due = true;
    pump(batch);
}

/* An element of an array literal: quoted, with quotes and backslashes escaped (Postgres manual,
 * "Array Value Input"). @return where it ends. */
static char *write_element(char *at, const char *text)
{
    *at++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    *at++ = '"';
    return at;
}

const char *postgres_call_sqlstate(const struct postgres_call *call)
{
    const struct postgres_group *group = call->group;
    return group != NULL && group->request != NULL ? group->request->sqlstate : "";
}

uint64_t postgres_call_statement(const struct postgres_call *call, int64_t *sent_ns)
{
    *sent_ns = call->group->sent_ns;
    return call->group->number;
}

void postgres_call_free(struct postgres_call *call)
{
    if (call->batch != NULL)
        take_from_line(call->batch, call);
    list_remove(&call->link);
    if (call->group != NULL)
        group_release(call->group);
    free(call);
}

static void cancel(struct op *op)
{
    postgres_call_free(container_of(op, struct postgres_call, op));
}

/* One piece of memory: there are thousands a second. */
static struct postgres_call *new_call(const struct postgres_batch *batch, const char *const *values)
{
    size_t most = 0;
    for (int i = 0; i < batch->columns; i++)
        most += 2 * strlen(values[i]) + 2;
    struct postgres_call *call = malloc(sizeof(*call) + most);
    if (call == NULL)
        return NULL;
    *call = (struct postgres_call){.row = -1};
    char *at = call->elements;
    for (int i = 0; i < batch->columns; i++) {
        at = write_element(at, values[i]);
        call->ends[i] = (size_t)(at - call->elements);
    }
    return call;
}

struct postgres_call *postgres_batch_call(struct postgres_batch *batch, const char *const *values,
                                          int64_t window_ns, int64_t timeout_ns)
{
    struct loop *loop = batch->loop;
    struct postgres_call *call = new_call(batch, values);
    if (call == NULL)
        return NULL;
    op_init(&call->op, loop, cancel);
    call->batch = batch;
    call->key = hash_text(values[0]) | 1; /* a clash only sends a statement early */
    call->timeout_ns = timeout_ns;
    list_append(&batch->waiting, &call->link);
    batch->waiting_count++;
    int64_t at = clock_add_ns(loop_now(loop), window_ns);
    if (!batch->is_due && (!loop_at_armed(&batch->due) || at < batch->due.node.key))
        loop_at(loop, &batch->due, at);
    pump(batch);
    return call;
}

struct postgres_batch *postgres_batch_new(struct postgres_client *client, const char *sql,
                                          int columns, bool timed)
{
    struct postgres_batch *batch = calloc(1, sizeof(*batch));
    if (batch == NULL || (batch->sql = strdup(sql)) == NULL) {
        free(batch);
        return NULL;
    }
    batch->client = client;
    batch->loop = postgres_client_loop(client);
    batch->columns = columns;
    batch->timed = timed;
    batch->due.fire = due;
    list_init(&batch->waiting);
    list_init(&batch->sent);
    return batch;
}

void postgres_batch_due(struct postgres_batch *batch, double base, double rate)
{
    batch->due_base = base;
    batch->due_rate = rate;
}

void postgres_batch_prepare(struct postgres_batch *batch, bool on)
{
    batch->prepared = on;
}

static void abandon(struct postgres_group *group, const struct crown_error *err)
{
    list_remove(&group->link);
    fail(group, err);
    postgres_request_free(group->request);
    group->request = NULL;
    group_release(group);
}

void postgres_batch_free(struct postgres_batch *batch)
{
    if (batch == NULL)
        return;
    struct crown_error err;
    (void)error_set(&err, ERROR_CLOSED, "closed");
    loop_at_cancel(batch->loop, &batch->due);
    fail_waiting(batch, &err);
    while (!list_empty(&batch->sent))
        abandon((struct postgres_group *)list_first(&batch->sent), &err);
    free(batch->sql);
    free(batch);
}
