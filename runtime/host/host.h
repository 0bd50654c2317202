/**
 * The runtime process, assembled: loop, Lua, the line to the supervisor, the elections, telemetry.
 */
#ifndef CROWN_HOST_HOST_H
#define CROWN_HOST_HOST_H

#include <stdbool.h>

#include "base/random.h"
#include "candidate/env.h"
#include "child/children.h"
#include "host/clock_set.h"
#include "host/config.h"
#include "host/heartbeat.h"
#include "host/lifetime.h"

#define HOST_NODE_SIZE 256
#define HOST_TOKEN_SIZE 64

/** What the bindings reach through lua_vm_owner. */
struct host {
    const struct host_config *config;
    struct candidate_env env;
    struct lifetime lifetime;
    struct heartbeat heartbeat;
    bool stays; /* without an election too: it ends in order when it is told to */
    struct children children;
    struct random random;
    char node[HOST_NODE_SIZE];   /* this candidate's name, by default the host's */
    char token[HOST_TOKEN_SIZE]; /* random, new for each start of the supervisor */
    char what[64];               /* the verb or the app that runs */
    bool real_time;              /* whether keepers run at real-time priority */

    /* host.c alone */
    struct link *link;
    struct loop_watch link_watch;
    struct clock_set clock_set;
    uint64_t given_back; /* leases, when it was told to stop */
    unsigned restarts;
    int last_status;
    char held[WIRE_TEXT]; /* what the last runtime did when it was killed for its silence, or "" */
};

/**
 * Runs the runtime until its last election ended, its script did, or it was told to stop.
 * @param supervisor_fd the line to the supervisor, or -1 without one.
 * @param journal_fd the supervisor's memfd, or -1.
 * @param context a struct host_config.
 * @return the exit code.
 */
int host_run(int supervisor_fd, int journal_fd, void *context);

void host_set_node(struct host *host, const char *node);

#endif
