#include "candidate/perform.h"

#include "candidate/candidate.h"
#include "candidate/env.h"
#include "candidate/state.h"
#include "lua/vm.h"

lua_State *perform_push(struct candidate *candidate, const char *kind)
{
    lua_State *L = lua_vm_state(candidate->env->lua);
    candidate_push(candidate, L);
    lua_getfield(L, -1, "perform");
    lua_insert(L, -2);
    lua_pushstring(L, kind);
    return L;
}

lua_State *perform_push_state(struct candidate *candidate)
{
    lua_State *L = lua_vm_state(candidate->env->lua);
    candidate_push(candidate, L);
    lua_getfield(L, -1, "state");
    lua_remove(L, -2);
    return L;
}

struct task *perform_spawn(struct candidate *candidate, int more, struct scope *scope,
                           task_done *done)
{
    struct lua_vm *lua = candidate->env->lua;
    return task_spawn(lua, lua_vm_state(lua), 2 + more, scope, done, candidate);
}

void perform_failed(struct candidate *candidate, enum telemetry_event event, const char *function,
                    const char *message)
{
    const struct log_field fields[] = {
        log_string("function", function),
        log_string("error", message != NULL ? message : "(no message)"),
    };
    telemetry_emit(candidate->env->telemetry, &candidate->source, event, fields, 2);
}
