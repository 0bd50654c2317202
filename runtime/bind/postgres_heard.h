/** Notifications that have come and not been taken: those of one moment are told together. */
#ifndef CROWN_BIND_POSTGRES_HEARD_H
#define CROWN_BIND_POSTGRES_HEARD_H

#include <lua.h>
#include <stdbool.h>

/** Embed it; pg_heard_init before first use. */
struct pg_heard {
    int list; /* registry reference; LUA_NOREF: nothing waits */
};

void pg_heard_init(struct pg_heard *heard);
/** Adds a notification. @param payload NULL: some may have been missed. @return whether it is the
 * only one that waits. */
bool pg_heard_add(struct pg_heard *heard, lua_State *L, const char *channel, const char *payload);
/** Pushes all that wait, in their order: a channel, then its payload or false, and so on. @return
 * 1. */
int pg_heard_take(struct pg_heard *heard, lua_State *L);

#endif
