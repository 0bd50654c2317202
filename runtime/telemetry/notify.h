/**
 * What a service manager wants to know, by the protocol of sd_notify(3): a datagram to
 * $NOTIFY_SOCKET. Nothing happens where there is none.
 */
#ifndef CROWN_TELEMETRY_NOTIFY_H
#define CROWN_TELEMETRY_NOTIFY_H

#include <stdint.h>

/** Sends "READY=1", "STOPPING=1", "WATCHDOG=1" or "STATUS=…". What cannot be sent is lost: the
 * manager has its own time-outs. */
void notify_send(const char *state);

/** @return how often WATCHDOG=1 is expected, in ns (half of what the manager allows); 0: never. */
int64_t notify_watchdog_ns(void);

#endif
