/** What the tests of a keeper and of a warden share: calls that are led to the test, and written
 * down line by line. Instants are in seconds from the start. */
#ifndef CROWN_SPEC_WHOLE_PROCESS_H
#define CROWN_SPEC_WHOLE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "process/wire.h"

#define START_NS (1000 * NS_PER_S)

#define WHOLE_SUPERVISOR 100
#define WHOLE_KEEPER 200
#define WHOLE_WARDEN 300
#define WHOLE_CHILD 400

struct whole_process {
    pid_t parent;
    pid_t refuses;               /* a process that may not be killed; 0: none */
    int poll_error;              /* of the next time that it waits */
    int refused_option;          /* of prctl; 0: none */
    unsigned long refused_value; /* of that option; 0: any */
    int kept[20];                /* descriptors, by what closes all others */
    bool no_deadman;             /* the kernel has no timer for one */
};

extern struct whole_process whole_process;

/** A test begins: all is well, and nothing is written down. */
void whole_process_open(pid_t parent);

/** @return a name for a process; or, where `pid` is below 0, for the group that it leads. */
const char *whole_who(pid_t pid);
const char *whole_seconds(int64_t at_ns, char text[32]);

/** Writes down that `name` is told this. */
void whole_hear(const char *name, const struct wire_message *message);

/** As the program sends: nothing is written down. */
int __real_wire_send(int fd, const struct wire_message *message, const int *fds, unsigned nfds,
                     struct crown_error *err);

#endif
