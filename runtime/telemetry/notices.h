/**
 * What a command tells its service manager by sd_notify(3): it is told to us instead, by a socket
 * that only this user may send to. Two things are true of the whole service and are passed on: the
 * status, as a part of ours, and the watchdog. All else speaks of the command alone.
 */
#ifndef CROWN_TELEMETRY_NOTICES_H
#define CROWN_TELEMETRY_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct loop;

/** Opens the socket, once in a process.
 * @param changed called when the status is another one
 * @return what the command's NOTIFY_SOCKET has to be, valid until notices_close; NULL without `err`
 * where no service manager listens */
const char *notices_open(struct loop *loop, void (*changed)(void *context), void *context,
                         struct crown_error *err);
/** What a command said to another socket of ours; nothing where none is open here. */
void notices_take(const char *message);
/** The command has ended. */
void notices_forget(void);
/** @return the command's last status, "" for none. */
const char *notices_status(void);
/** @return whether the command has answered the watchdog, and has not for as long as the service
 * manager allows. */
bool notices_silent(int64_t now_ns);
/** Before the loop goes. */
void notices_close(void);

#endif
