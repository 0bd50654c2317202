#include "bind/election_status.h"

#include <lauxlib.h>
#include <limits.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "candidate/bars.h"
#include "host/host.h"

/* To the millisecond: more digits only make what is told of thousands longer. */
static void push_seconds(lua_State *L, int64_t ns)
{
    lua_pushnumber(L, (lua_Number)((ns + NS_PER_MS / 2) / NS_PER_MS) / 1000);
}

static void set_seconds(lua_State *L, const char *key, int64_t at_ns)
{
    if (at_ns == TIME_NEVER)
        return;
    int64_t left_ns = at_ns - loop_now(lua_vm_loop(lua_vm_of(L)));
    push_seconds(L, left_ns > 0 ? left_ns : 0);
    lua_setfield(L, -2, key);
}

static void set_age(lua_State *L, const char *key, int64_t since_ns)
{
    if (since_ns == TIME_NEVER)
        return;
    int64_t age_ns = loop_now(lua_vm_loop(lua_vm_of(L))) - since_ns;
    push_seconds(L, age_ns);
    lua_setfield(L, -2, key);
}

static void push_store(lua_State *L, const struct candidate_status *status)
{
    set_age(L, "answered", status->answered_ns);
    set_age(L, "away", status->failing_since_ns);
    if (status->doubted) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "amnesia");
    }
    if (status->failure != NULL) {
        lua_pushstring(L, status->failure);
        lua_setfield(L, -2, "failure");
        lua_pushboolean(L, status->answers);
        lua_setfield(L, -2, "answers");
    }
}

static void push_child_end(lua_State *L, int status)
{
    lua_pushinteger(L, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    lua_setfield(L, -2, WIFSIGNALED(status) ? "child_signal" : "child_code");
}

/* barred = { { reason =, why =, since = }, … }: why it may not lead. */
static void push_bars(lua_State *L, const struct candidate *candidate)
{
    int count = 0;
    for (int i = 0; i < ELECTION_BAR_COUNT; i++) {
        enum election_bar bar = (enum election_bar)i;
        const char *why = bars_why(candidate, bar);
        if (why == NULL)
            continue;
        if (count == 0)
            lua_newtable(L);
        lua_createtable(L, 0, 3);
        lua_pushstring(L, election_bar_name(bar));
        lua_setfield(L, -2, "reason");
        lua_pushstring(L, why);
        lua_setfield(L, -2, "why");
        set_age(L, "since", bars_since(candidate, bar));
        lua_rawseti(L, -2, ++count);
    }
    if (count > 0)
        lua_setfield(L, -2, "barred");
}

void status_push(lua_State *L, const struct candidate *candidate)
{
    struct candidate_status status;
    candidate_status(candidate, &status);
    lua_createtable(L, 0, 12);
    lua_pushstring(L, candidate_name(candidate));
    lua_setfield(L, -2, "name");
    lua_pushstring(L, candidate_node(candidate));
    lua_setfield(L, -2, "node");
    lua_pushstring(L, candidate_oracle(candidate));
    lua_setfield(L, -2, "oracle");
    lua_pushstring(L, candidate_store(candidate)); /* NULL is nil */
    lua_setfield(L, -2, "store");
    lua_pushstring(L, candidate_phase_name(status.view.phase));
    lua_setfield(L, -2, "phase");
    lua_pushstring(L, election_phase_name(status.view.phase));
    lua_setfield(L, -2, "state");
    if (status.leader != NULL) {
        lua_pushstring(L, status.leader);
        lua_setfield(L, -2, "leader");
    }
    lua_pushnumber(L, (lua_Number)status.leader_epoch);
    lua_setfield(L, -2, "epoch");
    set_seconds(L, "expires_in", status.expires_at_ns);
    set_seconds(L, "next_claim_in", status.view.next_claim_ns);
    set_seconds(L, "acts_in", status.view.acts_at_ns);
    set_age(L, "since", status.view.since_ns);
    lua_pushnumber(L, (lua_Number)status.view.terms);
    lua_setfield(L, -2, "terms");
    lua_pushboolean(L, status.view.acting);
    lua_setfield(L, -2, "acting");
    push_store(L, &status);
    push_bars(L, candidate);
    if (status.child_ended)
        push_child_end(L, status.child_status);
    if (status.child_pid != 0) {
        lua_pushnumber(L, status.child_pid);
        lua_setfield(L, -2, "child");
        lua_pushboolean(L, status.child_lives_on);
        lua_setfield(L, -2, "child_lives_on");
        lua_pushboolean(L, status.child_unfenced);
        lua_setfield(L, -2, "child_unfenced");
    }
}

struct page {
    lua_State *L;
    int skip, left, count;
    int seen, led; /* at a glance */
};

static bool is_on(struct page *page)
{
    if (page->skip > 0) {
        page->skip--;
        return false;
    }
    return page->left-- > 0;
}

static void add_status(struct candidate *candidate, void *context)
{
    struct page *page = context;
    if (!is_on(page))
        return;
    status_push(page->L, candidate);
    lua_rawseti(page->L, -2, ++page->count);
}

int status_all(lua_State *L)
{
    struct page page = {.L = L, .skip = luaL_optint(L, 1, 0), .left = luaL_optint(L, 2, INT_MAX)};
    lua_newtable(L);
    candidates_each(check_host(L)->env.candidates, add_status, &page);
    return 1;
}

static void glance_at(struct candidate *candidate, void *context)
{
    struct page *page = context;
    struct candidate_status status;
    if (!is_on(page))
        return;
    page->seen++;
    candidate_status(candidate, &status);
    if (status.view.phase == ELECTION_LEADING && status.view.acting)
        page->led++;
    if (status.failing_since_ns == TIME_NEVER && !status.doubted &&
        (status.child_pid == 0 || !status.child_unfenced))
        return;
    status_push(page->L, candidate);
    lua_rawseti(page->L, -2, ++page->count);
}

int status_glance(lua_State *L)
{
    struct page page = {.L = L, .skip = luaL_checkint(L, 1), .left = luaL_checkint(L, 2)};
    lua_newtable(L);
    candidates_each(check_host(L)->env.candidates, glance_at, &page);
    lua_pushinteger(L, page.seen);
    lua_pushinteger(L, page.led);
    lua_pushvalue(L, -3);
    return 3;
}

int status_changed(lua_State *L)
{
    struct page page = {.L = L, .left = INT_MAX};
    lua_Number since = luaL_checknumber(L, 1);
    int most = luaL_checkint(L, 2);
    lua_newtable(L);
    bool given = since >= 0 && since < 0x1p53; /* what a number holds exactly */
    if (!given || most < 0 ||
        !candidates_changed(check_host(L)->env.candidates, (uint64_t)since, (unsigned)most,
                            add_status, &page))
        lua_pushnil(L);
    return 1;
}

int status_stamp(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)candidates_stamp(check_host(L)->env.candidates));
    return 1;
}

int status_count(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)candidates_count(check_host(L)->env.candidates));
    return 1;
}

int status_find(lua_State *L)
{
    const struct candidate *first =
        candidates_find(check_host(L)->env.candidates, luaL_checkstring(L, 1));
    if (first == NULL)
        return 0;
    const struct candidate *shown = first;
    for (const struct candidate *one = first; one != NULL; one = candidates_next(one)) {
        struct candidate_status status;
        candidate_status(one, &status);
        if (status.view.phase == ELECTION_LEADING)
            shown = one;
    }
    status_push(L, shown);
    return 1;
}

static void push_series(lua_State *L, const struct latency_series *series)
{
    lua_createtable(L, LATENCY_BOUNDS + 1, 3);
    for (int i = 0; i <= LATENCY_BOUNDS; i++) {
        lua_pushnumber(L, (lua_Number)series->counts[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushstring(L, series->function);
    lua_setfield(L, -2, "function");
    lua_pushnumber(L, series->seconds);
    lua_setfield(L, -2, "seconds");
}

int status_latency(lua_State *L)
{
    const struct latency *latency = telemetry_latency(check_host(L)->env.telemetry);
    lua_createtable(L, LATENCY_BOUNDS, 0);
    for (int i = 0; i < LATENCY_BOUNDS; i++) {
        lua_pushnumber(L, latency_bounds[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_newtable(L);
    for (int i = 0; i < LATENCY_FUNCTIONS && latency->series[i].function != NULL; i++) {
        push_series(L, &latency->series[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 2;
}
