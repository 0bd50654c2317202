/**
 * Reads what the user said about a child.
 */
#ifndef CROWN_BIND_CHILD_OPTIONS_H
#define CROWN_BIND_CHILD_OPTIONS_H

#include <lua.h>

#include "child/options.h"

/**
 * Reads the table at `index` (`argv`, `env`, `cwd`, `uid`, `gid`, `groups`, `stdin`, `stdout`,
 * `stderr`, `stop_signal`, `isolation`, `terminal`, `escalate`, `told`, `signalled`, `fence`,
 * `decides`). May raise for what the Lua side must have checked.
 * @return options for child_options_free, or NULL when memory is out.
 */
struct child_options *child_options_read(lua_State *L, int index);

#endif
