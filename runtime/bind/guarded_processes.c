#include "bind/guarded_processes.h"

#include <lauxlib.h>

#include "base/scope.h"
#include "bind/handle.h"
#include "lua/task.h"
#include "lua/vm.h"

/* Upvalues: the library's own function, and its name. */
static int guarded(lua_State *L)
{
    /* os.execute() starts nothing: it asks whether there is a shell. */
    if (!lua_isnone(L, 1) && scope_owns_processes(task_scope_here(L))) {
        if (task_finalizes(L)) /* an error would be the task's that it runs in */
            return push_scope_over(L);
        return luaL_error(L,
                          "%s: what it starts would not end with the term: use "
                          "crown.exec { \"sh\", \"-c\", command }",
                          lua_tostring(L, lua_upvalueindex(2)));
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static void replace(lua_State *L, const char *library, const char *function)
{
    lua_getglobal(L, library);
    lua_getfield(L, -1, function);
    (void)lua_pushfstring(L, "%s.%s", library, function);
    lua_pushcclosure(L, guarded, 2);
    lua_setfield(L, -2, function);
    lua_pop(L, 1);
}

void guarded_processes_install(lua_State *L)
{
    replace(L, "os", "execute");
    replace(L, "io", "popen");
}
