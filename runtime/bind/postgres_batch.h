/** Statements that many tasks share: client:batch, batch:call. */
#ifndef CROWN_BIND_POSTGRES_BATCH_H
#define CROWN_BIND_POSTGRES_BATCH_H

#include <lua.h>

struct postgres_batch;
struct postgres_client;

/**
 * client:batch(sql, columns[, timed]), for the client at index 1 whose method runs.
 * @param client what that one holds.
 * @return 1: the batch.
 */
int pg_batch_new(lua_State *L, struct postgres_client *client);

/** @return what the batch at an index holds; raises what is no batch of so many columns. */
struct postgres_batch *pg_batch_at(lua_State *L, int index, int columns);

/** Makes the types of batches and their calls. */
void pg_batch_make_types(lua_State *L);

#endif
