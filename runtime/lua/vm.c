#include "lua/vm.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "lua/guard.h"
#include "lua/modules.h"
#include "lua/slabs.h"
#include "lua/task.h"
#include "lua/vm_state.h"

#if LUA_VERSION_NUM != 501 || !defined(LUAJIT_VERSION)
#error "crown-lua needs the headers of LuaJIT 2.1"
#endif

#define EXIT_PANIC 70 /* EX_SOFTWARE of sysexits.h */

static const char vm_key; /* its address is the registry key */

/* Memory is out, or an error escaped every protected call: end, and be restarted. */
static int panic(lua_State *L)
{
    const char *message = lua_tostring(L, -1);
    log_error("Lua gave up: %s", message != NULL ? message : "(no message)");
    _exit(EXIT_PANIC);
}

static void preload(lua_State *L, const struct lua_module *modules)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    for (const struct lua_module *module = modules; module->name != NULL; module++) {
        lua_pushcfunction(L, module->open);
        lua_setfield(L, -2, module->name);
    }
    lua_pop(L, 2);
}

static int open_world(lua_State *L)
{
    const struct lua_module *modules = lua_touserdata(L, 1);
    luaL_openlibs(L);
    /* The compiler off: a hook can then stop any Lua loop, and code that waits for stores gains
     * nothing by it. After opening the libraries, since that of `jit` turns it on. */
    (void)luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    (void)lua_gc(L, LUA_GCSETSTEPMUL, 400);
    modules_open(L, &embedded_sample);
    preload(L, modules);
    guard_replace_sethook(L);
    return 0;
}

/* Where addresses have to be low, as in a LuaJIT without GC64, it takes no memory of others. */
static lua_State *new_state(struct lua_vm *vm)
{
    vm->slabs = slabs_new();
    lua_State *L = vm->slabs != NULL ? lua_newstate(slabs_allocate, vm->slabs) : NULL;
    if (L != NULL)
        return L;
    slabs_free(vm->slabs);
    vm->slabs = NULL;
    return luaL_newstate();
}

static const struct scope_owner finalizers = {.owns_processes = true};

struct lua_vm *lua_vm_new(struct loop *loop, const struct lua_module *modules, void *owner,
                          struct crown_error *err)
{
    struct lua_vm *vm = calloc(1, sizeof(*vm));
    if (vm != NULL) {
        vm->L = new_state(vm);
        vm->scope = scope_new(NULL, NULL);
        vm->closed = scope_new(&finalizers, NULL);
    }
    if (vm == NULL || vm->L == NULL || vm->scope == NULL || vm->closed == NULL) {
        if (vm != NULL && vm->L != NULL)
            lua_close(vm->L);
        if (vm != NULL) {
            slabs_free(vm->slabs);
            scope_free(vm->scope);
            scope_free(vm->closed);
        }
        free(vm);
        (void)error_set(err, ERROR_MEMORY, "make the Lua state: out of memory");
        return NULL;
    }
    scope_close(vm->closed);
    vm->loop = loop;
    vm->owner = owner;
    list_init(&vm->tasks);
    (void)lua_atpanic(vm->L, panic);
    lua_pushlightuserdata(vm->L, (void *)&vm_key);
    lua_pushlightuserdata(vm->L, vm);
    lua_rawset(vm->L, LUA_REGISTRYINDEX);
    task_open(vm);
    tidy_open(vm);
    if (lua_cpcall(vm->L, open_world, (void *)modules) != 0 || guard_open(vm, err) < 0) {
        if (err->code == ERROR_NONE)
            (void)error_set(err, ERROR_SYSTEM, "open the Lua world: %s", lua_tostring(vm->L, -1));
        lua_vm_free(vm);
        return NULL;
    }
    return vm;
}

void lua_vm_free(struct lua_vm *vm)
{
    if (vm == NULL)
        return;
    guard_close(vm);
    task_drop_all(vm);
    tidy_close(vm);
    scope_close(vm->scope);
    vm->closing = true;
    lua_close(vm->L); /* runs finalizers */
    task_close(vm);
    slabs_free(vm->slabs);
    scope_free(vm->scope);
    scope_free(vm->closed);
    free(vm);
}

lua_State *lua_vm_state(struct lua_vm *vm)
{
    return vm->L;
}

struct loop *lua_vm_loop(struct lua_vm *vm)
{
    return vm->loop;
}

void *lua_vm_owner(struct lua_vm *vm)
{
    return vm->owner;
}

struct lua_vm *lua_vm_of(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&vm_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    struct lua_vm *vm = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return vm;
}
