#include "postgres/request.h"

#include "postgres/libpq.h"
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "postgres/session.h"

/* The types' own numbers, the same in every server: pg_type.dat of the Postgres sources. */
enum { OID_BOOL = 16, OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_FLOAT4 = 700, OID_FLOAT8 };

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
    libpq.PQclear(request->result);
    free(request);
}

void postgres_request_fail(struct postgres_request *request, const struct crown_error *err)
{
    list_remove(&request->link);
    request->slot = NULL;
    request->error = *err;
    op_complete(&request->op);
}

int postgres_result_rows(const struct pg_result *result)
{
    return result != NULL ? libpq.PQntuples(result) : 0;
}

int postgres_result_columns(const struct pg_result *result)
{
    return result != NULL ? libpq.PQnfields(result) : 0;
}

int64_t postgres_result_touched(const struct pg_result *result)
{
    if (result == NULL)
        return 0;
    const char *count = libpq.PQcmdTuples((PGresult *)(uintptr_t)result); /* which only reads it */
    return strtoll(count, NULL, 10);
}

const char *postgres_result_name(const struct pg_result *result, int column)
{
    return libpq.PQfname(result, column);
}

const char *postgres_result_text(const struct pg_result *result, int row, int column, size_t *size)
{
    if (libpq.PQgetisnull(result, row, column))
        return NULL;
    *size = (size_t)libpq.PQgetlength(result, row, column);
    return libpq.PQgetvalue(result, row, column);
}

enum postgres_type postgres_result_type(const struct pg_result *result, int column)
{
    switch (libpq.PQftype(result, column)) {
    case OID_BOOL:
        return POSTGRES_BOOLEAN;
    case OID_INT2:
    case OID_INT4:
    case OID_FLOAT4:
    case OID_FLOAT8:
        return POSTGRES_NUMBER;
    case OID_INT8:
        return POSTGRES_INTEGER;
    default:
        return POSTGRES_TEXT;
    }
}

void postgres_result_free(struct pg_result *result)
{
    libpq.PQclear(result);
}
