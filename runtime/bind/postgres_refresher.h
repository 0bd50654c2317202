/** Refreshes and releases of leases that go out in batches, without a task each: batch:refresher.
 */
#ifndef CROWN_BIND_POSTGRES_REFRESHER_H
#define CROWN_BIND_POSTGRES_REFRESHER_H

#include <lua.h>

struct postgres_batch;

/**
 * batch:refresher(options), for the batch at index 1 whose method runs. Options, times in seconds:
 * `fields`: for each of the batch's columns the name of what the oracle's state holds for it, or a
 * number that it always has; `window` and `timeout` of the calls; `ttl` and `delay` of the grants;
 * `judge`: called with when a statement was sent and the values of one of its rows, once for each
 * statement, and not allowed to wait: unless it returns true, all whom that statement asked for are
 * asked for again by their oracle; `releases`: a batch for the same columns. Behind the call's
 * place a row has to have the epoch, NULL where the lease is not ours, and whether the leader is to
 * go.
 * @param columns of the batch.
 * @return 1: what a grant may carry as `refresher`. It lives as long as the Lua state.
 */
int pg_refresher_new(lua_State *L, struct postgres_batch *batch, int columns);

#endif
