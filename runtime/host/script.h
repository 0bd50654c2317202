/**
 * The main task: the command, or the script that it runs.
 */
#ifndef CROWN_HOST_SCRIPT_H
#define CROWN_HOST_SCRIPT_H

#include <lua.h>

struct host_config;
struct lua_vm;

/**
 * Starts the main task: `main` of the module crown.command, with the process's arguments.
 * @param ended called once, from the loop, with the exit code that the task's end calls for.
 */
void script_start(struct lua_vm *lua, const struct host_config *config,
                  void (*ended)(int code, void *context), void *context);

/**
 * For crown.command: loads a script and pushes it as a function, `arg` set, its arguments behind it
 * on the stack.
 * @param first which of the process's arguments is the script's path.
 * @return how many values were pushed; or raises the message that names what is wrong, as a usage
 * error.
 */
int script_load(lua_State *L, const struct host_config *config, int first);

#endif
