#include "postgres/result.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define VALUE_COST 16
#define ROW_COST 64
#define NO_VALUE UINT32_MAX /* SQL's NULL */

/* The types' own numbers, the same in every server: pg_type.dat of the Postgres sources. */
enum { OID_BOOL = 16, OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_FLOAT4 = 700, OID_FLOAT8 };

struct column {
    char *name;
    enum postgres_type type;
};

struct value {
    uint32_t at, size; /* in the texts */
};

struct pg_result {
    struct column *columns;
    int column_count, rows;
    int64_t touched;
    size_t cost;
    struct buffer values; /* of struct value, row by row */
    struct buffer texts;  /* each with a zero byte behind it */
};

void postgres_result_free(struct pg_result *result)
{
    if (result == NULL)
        return;
    for (int i = 0; i < result->column_count; i++)
        free(result->columns[i].name);
    free(result->columns);
    buffer_free(&result->values);
    buffer_free(&result->texts);
    free(result);
}

static enum postgres_type type_of(Oid oid)
{
    switch (oid) {
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

static struct pg_result *result_new(const PGresult *part)
{
    int count = libpq.PQnfields(part);
    struct pg_result *result = calloc(1, sizeof(*result));
    if (result == NULL ||
        (result->columns = calloc((size_t)count + 1, sizeof(*result->columns))) == NULL)
        goto fail;
    for (; result->column_count < count; result->column_count++) {
        struct column *column = &result->columns[result->column_count];
        column->type = type_of(libpq.PQftype(part, result->column_count));
        column->name = strdup(libpq.PQfname(part, result->column_count));
        if (column->name == NULL)
            goto fail;
    }
    return result;
fail:
    postgres_result_free(result);
    return NULL;
}

/* @return 0, or -1 when memory is out. */
static int add_value(struct pg_result *result, const PGresult *part, int row, int column)
{
    struct value value = {.at = (uint32_t)result->texts.size, .size = NO_VALUE};
    if (!libpq.PQgetisnull(part, row, column)) {
        value.size = (uint32_t)libpq.PQgetlength(part, row, column);
        if (buffer_append(&result->texts, libpq.PQgetvalue(part, row, column),
                          (size_t)value.size + 1) < 0)
            return -1;
    }
    return buffer_append(&result->values, (const char *)&value, sizeof(value));
}

static size_t cost_of(const struct pg_result *result, const PGresult *part, int row)
{
    size_t cost = ROW_COST;
    for (int i = 0; i < result->column_count; i++)
        cost += VALUE_COST + (size_t)libpq.PQgetlength(part, row, i);
    return cost;
}

static int add_row(struct pg_result *result, const PGresult *part, int row, struct crown_error *err)
{
    result->cost += cost_of(result, part, row);
    if (result->cost > POSTGRES_RESULT_MOST)
        return error_set(err, ERROR_PROTOCOL,
                         "a result of more than %zu MiB: the connection was closed; use LIMIT",
                         POSTGRES_RESULT_MOST >> 20);
    for (int i = 0; i < result->column_count; i++)
        if (add_value(result, part, row, i) < 0)
            return error_set(err, ERROR_MEMORY, "postgres: out of memory");
    result->rows++;
    return 0;
}

int postgres_result_add(struct pg_result **result, const PGresult *part, struct crown_error *err)
{
    if (*result == NULL && (*result = result_new(part)) == NULL)
        return error_set(err, ERROR_MEMORY, "postgres: out of memory");
    for (int row = 0; row < libpq.PQntuples(part); row++) {
        if (add_row(*result, part, row, err) < 0) {
            postgres_result_free(*result);
            *result = NULL;
            return -1;
        }
    }
    const char *touched = libpq.PQcmdTuples((PGresult *)(uintptr_t)part); /* which only reads it */
    (*result)->touched = strtoll(touched, NULL, 10); /* the last part says it */
    return 0;
}

int postgres_result_rows(const struct pg_result *result)
{
    return result != NULL ? result->rows : 0;
}

int postgres_result_columns(const struct pg_result *result)
{
    return result != NULL ? result->column_count : 0;
}

int64_t postgres_result_touched(const struct pg_result *result)
{
    return result != NULL ? result->touched : 0;
}

const char *postgres_result_name(const struct pg_result *result, int column)
{
    return result->columns[column].name;
}

const char *postgres_result_text(const struct pg_result *result, int row, int column, size_t *size)
{
    struct value value;
    size_t place = (size_t)row * (size_t)result->column_count + (size_t)column;
    memcpy(&value, result->values.bytes + place * sizeof(value), sizeof(value));
    if (value.size == NO_VALUE)
        return NULL;
    *size = value.size;
    return result->texts.bytes + value.at;
}

enum postgres_type postgres_result_type(const struct pg_result *result, int column)
{
    return result->columns[column].type;
}
