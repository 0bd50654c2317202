/**
 * The changes of leadership in a file: a line of JSON each, which lua/crown/election/history.lua
 * reads. In C, since thousands of elections change at once.
 */
#ifndef CROWN_TELEMETRY_HISTORY_H
#define CROWN_TELEMETRY_HISTORY_H

#include "base/log.h"
#include "loop/appender.h"

/**
 * Adds a line.
 * @param time of the event, in seconds of the wall clock.
 * @param fields of the event; of them those are kept that the history shows.
 */
void history_note(struct appender *appender, const char *event, double time,
                  const struct log_field *fields, unsigned count);

#endif
