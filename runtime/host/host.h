/**
 * The runtime process, assembled: loop, Lua, the line to the supervisor, the elections, telemetry.
 */
#ifndef CROWN_HOST_HOST_H
#define CROWN_HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "loop/loop.h"
#include "lua/vm.h"
#include "process/link.h"

struct host;
struct deadmen;
struct journal;
struct registry;
struct telemetry;

struct host_config {
    int argc;
    char **argv;
    const struct lua_module *modules; /* the C tables: bind/bind.h */
    bool lua_child; /* a Lua module as a child process: no supervisor, no elections */
};

/**
 * Runs the runtime until its last election ended, its script did, or it was told to stop.
 * @param supervisor_fd the line to the supervisor, or -1 without one.
 * @param journal_fd the supervisor's memfd, or -1.
 * @param context a struct host_config.
 * @return the exit code.
 */
int host_run(int supervisor_fd, int journal_fd, void *context);

struct loop *host_loop(const struct host *host);
struct lua_vm *host_lua(const struct host *host);
struct link *host_link(const struct host *host);
struct list *host_processes(struct host *host);
struct registry *host_registry(const struct host *host);
struct telemetry *host_telemetry(const struct host *host);
struct journal *host_journal(const struct host *host);
struct deadmen *host_deadmen(const struct host *host);
const struct host_config *host_config(const struct host *host);

/** This candidate's name, by default the host's. */
const char *host_node(const struct host *host);
void host_set_node(struct host *host, const char *node);
/** A random value, new for each start of the supervisor. */
const char *host_token(const struct host *host);
/** Whether keepers run at real-time priority. */
bool host_real_time(const struct host *host);
uint64_t host_random(struct host *host);

/** How long the runtime may be silent before the supervisor restarts it; 0: for ever. Before the
 * first election. */
void host_set_heartbeat(struct host *host, int64_t silence_ns);

/** Something keeps the loop running (an election); released when it ends. */
void host_hold(struct host *host);
void host_release(struct host *host);

/** Ends the runtime with this code, in order but without waiting for anything. The first call
 * counts. */
void host_exit(struct host *host, int code);

/** The exit code for when the last election has ended; 0 unless set. */
void host_set_code(struct host *host, int code);

#endif
