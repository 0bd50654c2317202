/**
 * Reads the fields of a table of options.
 */
#ifndef CROWN_BIND_FIELDS_H
#define CROWN_BIND_FIELDS_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/** @return the text, which lives as long as the table does; NULL where there is none. */
const char *text_field(lua_State *L, int index, const char *key);
/** @return the number, or `otherwise` where there is none. */
double number_field(lua_State *L, int index, const char *key, double otherwise);
/** @return whether the field is neither false nor nil. */
bool flag_field(lua_State *L, int index, const char *key);
/** @return the seconds as nanoseconds, or `otherwise`, which is in seconds too. */
int64_t time_field(lua_State *L, int index, const char *key, double otherwise);
/** Reads what an event says, in the order of the names: Lua's own order is another one each time.
 * Of more than `most` the first are taken, and what is neither text, number nor switch is left out.
 * @return how many; no table has none. The texts live as long as the table does. */
unsigned event_fields(lua_State *L, int index, struct log_field *fields, unsigned most);
/** @return whether the field is a table, which is pushed then. */
bool table_field(lua_State *L, int index, const char *key);

#endif
