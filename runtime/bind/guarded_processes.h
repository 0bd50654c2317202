/**
 * os.execute and io.popen start what no scope owns: in a task of a term that would outlive the
 * term, so that there they raise, and name crown.exec.
 */
#ifndef CROWN_BIND_GUARDED_PROCESSES_H
#define CROWN_BIND_GUARDED_PROCESSES_H

#include <lua.h>

/** Replaces both, once; elsewhere than in a term they do what they always did. */
void guarded_processes_install(lua_State *L);

#endif
