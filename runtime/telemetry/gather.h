/**
 * Lines of the log that say the same of many elections: the first of them are written as they are,
 * the others are counted in one line, once a second. They say the same where event, oracle and
 * cause are: the field "error", or, where there is none, "reason"; of a warning on leadership that
 * has neither, "phase".
 */
#ifndef CROWN_TELEMETRY_GATHER_H
#define CROWN_TELEMETRY_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "loop/loop.h"

#define GATHER_CAUSES 8 /* at the same time; others are written as they are */

struct gather {
    struct loop *loop;
    struct loop_deadline timer;
    struct gather_cause {
        const char *event; /* NULL: free */
        enum log_level level;
        const char *key; /* of the field that is the cause */
        char oracle[64], text[ERROR_TEXT];
        unsigned written, counted; /* since the timer fired last, or since it is known */
    } causes[GATHER_CAUSES];
};

void gather_init(struct gather *gather, struct loop *loop);

/** Writes what is counted. To be called before the loop goes. */
void gather_finish(struct gather *gather);

/**
 * Writes a line, or counts it. Only lines that bear an election's name and a cause are counted.
 * @param event lives as long as the program.
 */
void gather_line(struct gather *gather, enum log_level level, const char *event,
                 const struct log_field *fields, unsigned count);

#endif
