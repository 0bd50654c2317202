/** The rows of a statement as Lua tables: so many at a time that it never takes long. */
#ifndef CROWN_BIND_POSTGRES_ROWS_H
#define CROWN_BIND_POSTGRES_ROWS_H

#include <lua.h>

#include "postgres/result.h"

/**
 * Pushes the rows, a table of columns by name each, in a table with the field `affected`; and where
 * these are not all, what has the rest: `rest:fill(rows)` adds the next ones, and returns whether
 * there are still more.
 * @param result taken over, and NULL then, where there is a rest. A NULL: no rows.
 * @return how many values it has pushed.
 */
int pg_push_rows(lua_State *L, struct pg_result **result);

void pg_rows_make_type(lua_State *L);

#endif
