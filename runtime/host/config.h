/**
 * How the runtime was started.
 */
#ifndef CROWN_HOST_CONFIG_H
#define CROWN_HOST_CONFIG_H

#include <stdbool.h>

struct lua_module;

struct host_config {
    int argc;
    char **argv;
    const struct lua_module *modules; /* the C tables: bind/bind.h */
    bool lua_child; /* a Lua module as a child process: no supervisor, no elections */
};

#endif
