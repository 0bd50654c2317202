/**
 * The answer to a statement, in memory of its own: rows are added as they come, and no more than a
 * bound of them. libpq would gather whatever a server sends.
 */
#ifndef CROWN_POSTGRES_RESULT_H
#define CROWN_POSTGRES_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "postgres/libpq.h"

/** The most that a result may take: its texts, 16 bytes more for each value and 64 for each row, as
 * a Lua table of it needs at least. */
#define POSTGRES_RESULT_MOST ((size_t)32 << 20)

struct pg_result;

enum postgres_type { POSTGRES_TEXT, POSTGRES_BOOLEAN, POSTGRES_NUMBER, POSTGRES_INTEGER };

/**
 * Adds what libpq brought.
 * @param result NULL for the first part; NULL afterwards when memory is out or it was too much.
 * @param part rows, or the end of them, or the answer to a statement without rows.
 * @return 0; -1 with `err`, ERROR_PROTOCOL where it is more than POSTGRES_RESULT_MOST.
 */
int postgres_result_add(struct pg_result **result, const PGresult *part, struct crown_error *err);
/** NULL is fine. */
void postgres_result_free(struct pg_result *result);

/** @return how many rows, or columns, or rows touched; 0 without a result. */
int postgres_result_rows(const struct pg_result *result);
int postgres_result_columns(const struct pg_result *result);
int64_t postgres_result_touched(const struct pg_result *result);
const char *postgres_result_name(const struct pg_result *result, int column);
/** @return the text of a value, NULL for SQL's NULL. */
const char *postgres_result_text(const struct pg_result *result, int row, int column, size_t *size);
/** @return how a column's text is to be read: INTEGER is int8, which a Lua number may not hold. */
enum postgres_type postgres_result_type(const struct pg_result *result, int column);

#endif
