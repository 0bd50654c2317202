/** What the bindings of Postgres share: values between Lua and SQL. */
#ifndef CROWN_BIND_POSTGRES_VALUES_H
#define CROWN_BIND_POSTGRES_VALUES_H

#include <lua.h>
#include <stdint.h>

#include "postgres/request.h"

#define PG_VALUES_MAX 64
#define PG_NUMBER_SIZE 32

/**
 * Takes texts for SQL from the arguments of the running function.
 * @param first the index of the first one; the last one is the last argument.
 * @param values PG_VALUES_MAX of them; the texts live as long as the arguments.
 * @param numbers as many: room for those that are numbers in Lua.
 * @return how many there are; raises what no value of SQL can be.
 */
int pg_read_values(lua_State *L, int first, const char **values, char (*numbers)[PG_NUMBER_SIZE]);

/** Writes a number as SQL reads it. @param text PG_NUMBER_SIZE bytes. */
void pg_write_number(char *text, lua_Number number);

/** Pushes one value: nil, a boolean, a number where that is exact, else its text. */
void pg_push_value(lua_State *L, const struct pg_result *result, int row, int column);

/** Pushes nil, message, code. @param sqlstate the code where the server named one, else "".
 * @return 3. */
int pg_push_failure(lua_State *L, const struct crown_error *err, const char *sqlstate);

/** @return nanoseconds for the seconds at an index. */
int64_t pg_time_at(lua_State *L, int index);

#endif
