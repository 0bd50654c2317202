/* Picks what this process is: the supervisor of a runtime, a Lua module as a child process, or a
 * quick answer. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bind/bind.h"
#include "host/host.h"
#include "host/leader_file.h"
#include "process/limits.h"
#include "process/supervisor.h"
#include "process/title.h"

#define HEARTBEAT_TIMEOUT_NS (2 * NS_PER_S)

static int say_version(void)
{
    if (puts("crown-lua " CROWN_VERSION) >= 0 && fflush(stdout) == 0)
        return 0;
    perror("crown-lua: write standard output");
    return 1;
}

int main(int argc, char **argv, char **envp)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return say_version();
    if (argc > 2 && strcmp(argv[1], "file") == 0 && strcmp(argv[2], "--check") == 0)
        return fresh_main(argc - 3, argv + 3);
    if (limits_meet() < 0)
        return 1;
    struct host_config host = {
        .argc = argc,
        .argv = argv,
        .modules = bind_modules,
        .lua_child = argc > 2 && strcmp(argv[1], "--lua-child") == 0,
    };
    if (host.lua_child)
        return host_run(-1, -1, &host);
    char **arguments = title_take_arguments(argc, argv, envp);
    if (arguments == NULL)
        return 1;
    host.argv = arguments;
    const struct supervisor_config supervisor = {
        .heartbeat_timeout_ns = HEARTBEAT_TIMEOUT_NS,
        .run_runtime = host_run,
        .context = &host,
        .title = "",
    };
    return supervisor_run(&supervisor);
}
