/**
 * The main task: the command, or the script that it runs.
 */
#ifndef CROWN_HOST_SCRIPT_H
#define CROWN_HOST_SCRIPT_H

#include <lua.h>

struct host_config;
struct lua_vm;

/** The owner's: it lives until the main task has ended, or is dropped with the vm. */
struct script {
    void (*ended)(int code, void *context); /* called once, from the loop, with the exit code that
                                               the task's end calls for; not where it is dropped */
    void *context;
};

/**
 * Starts the main task: `main` of the module crown.command, with the process's arguments.
 */
void script_start(struct script *script, struct lua_vm *lua, const struct host_config *config);

/**
 * For crown.command: loads a script and pushes it as a function, `arg` set, its arguments behind it
 * on the stack.
 * @param first which of the process's arguments is the script's path.
 * @return how many values were pushed; or raises the message that names what is wrong, as a usage
 * error.
 */
int script_load(lua_State *L, const struct host_config *config, int first);

#endif
