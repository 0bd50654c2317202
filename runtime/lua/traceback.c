#include "lua/traceback.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#define FRAMES_MOST 22 /* as luaL_traceback shows */

/* Our modules are embedded as crown/… and oracles/…. */
static bool is_users(const lua_Debug *frame)
{
    return frame->source[0] == '@' && strncmp(frame->source, "@crown/", 7) != 0 &&
           strncmp(frame->source, "@oracles/", 9) != 0;
}

/* What our code calls a function of the user's says nothing to him. */
static bool is_called_by_user(lua_State *L, int level)
{
    lua_Debug caller;
    return lua_getstack(L, level + 1, &caller) == 1 && lua_getinfo(L, "S", &caller) != 0 &&
           is_users(&caller);
}

static void push_frame(lua_State *L, const lua_Debug *frame, int level)
{
    if (*frame->what == 'm')
        lua_pushfstring(L, "\n\t%s:%d: in main chunk", frame->short_src, frame->currentline);
    else if (*frame->namewhat != '\0' && is_called_by_user(L, level))
        lua_pushfstring(L, "\n\t%s:%d: in function '%s'", frame->short_src, frame->currentline,
                        frame->name);
    else
        lua_pushfstring(L, "\n\t%s:%d: in function <%s:%d>", frame->short_src, frame->currentline,
                        frame->short_src, frame->linedefined);
}

void lua_add_traceback(lua_State *L)
{
    lua_Debug frame;
    int parts = lua_gettop(L), shown = 0;
    luaL_checkstack(L, FRAMES_MOST + 2, "no room for a traceback");
    lua_pushliteral(L, "\nstack traceback:");
    for (int level = 0; shown < FRAMES_MOST && lua_getstack(L, level, &frame) == 1; level++) {
        if (lua_getinfo(L, "Snl", &frame) == 0 || !is_users(&frame))
            continue;
        push_frame(L, &frame, level);
        shown++;
    }
    if (shown > 0) {
        lua_concat(L, lua_gettop(L) - parts + 1);
        return;
    }
    lua_settop(L, parts);
    luaL_traceback(L, L, lua_tostring(L, -1), 0);
    lua_replace(L, parts);
}
