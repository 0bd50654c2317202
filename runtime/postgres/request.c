#include "postgres/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "postgres/blotted.h"
#include "postgres/explain.h"
#include "postgres/session.h"

/* SQLSTATEs */
#define LOCK_NOT_AVAILABLE "55P03"
#define DISK_FULL "53100"

static void cancel(struct op *op)
{
    struct postgres_request *request = container_of(op, struct postgres_request, op);
    list_remove(&request->link);
    if (request->slot != NULL)
        postgres_slot_abandon(request->slot);
    request->slot = NULL;
}

struct postgres_request *postgres_request_new(struct loop *loop, const char *sql,
                                              const char *const *values, int count)
{
    struct postgres_request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    op_init(&request->op, loop, cancel);
    request->sql = sql != NULL ? strdup(sql) : NULL;
    request->values = calloc((size_t)count + 1, sizeof(*request->values));
    if (request->values == NULL || (sql != NULL && request->sql == NULL))
        goto fail;
    request->value_count = count;
    for (int i = 0; i < count; i++) {
        request->values[i] = values[i] != NULL ? strdup(values[i]) : NULL;
        if (values[i] != NULL && request->values[i] == NULL)
            goto fail;
    }
    return request;
fail:
    postgres_request_free(request);
    return NULL;
}

void postgres_request_free(struct postgres_request *request)
{
    if (request == NULL)
        return;
    op_cancel(&request->op);
    for (int i = 0; request->values != NULL && i < request->value_count; i++)
        free(request->values[i]);
    free(request->values);
    free(request->sql);
    postgres_result_free(request->result);
    free(request);
}

void postgres_request_fail(struct postgres_request *request, const struct crown_error *err)
{
    list_remove(&request->link);
    request->slot = NULL;
    request->error = *err;
    op_complete(&request->op);
}

static char *field(const PGconn *conn, const PGresult *result, int code)
{
    return postgres_blotted(conn, libpq.PQresultErrorField(result, code));
}

/* Whether a user's statement is told what to do: else only the user knows what it needs. */
static bool needs_a_step(const char *state)
{
    return strcmp(state, LOCK_NOT_AVAILABLE) == 0 || strcmp(state, DISK_FULL) == 0;
}

void postgres_request_refused(struct postgres_request *request, const PGconn *conn, bool is_ours,
                              const PGresult *result)
{
    const char *state = libpq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
    char *primary = field(conn, result, PG_DIAG_MESSAGE_PRIMARY);
    char *detail = field(conn, result, PG_DIAG_MESSAGE_DETAIL);
    (void)error_set(&request->error, ERROR_STORE, "%s%s%s%s", primary != NULL ? primary : "failed",
                    detail != NULL ? " (" : "", detail != NULL ? detail : "",
                    detail != NULL ? ")" : "");
    if (is_ours || (state != NULL && needs_a_step(state)))
        postgres_explain(libpq.PQhost(conn), libpq.PQport(conn), POSTGRES_REFUSED, &request->error);
    free(primary);
    free(detail);
    if (state != NULL)
        (void)memcpy(request->sqlstate, state, strnlen(state, sizeof(request->sqlstate) - 1));
}
