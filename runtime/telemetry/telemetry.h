/**
 * What happened, told once to everybody who listens: the log, the Lua subscribers of crown.on, and
 * the counters that metrics show. Event names and fields: docs/events.md.
 */
#ifndef CROWN_TELEMETRY_TELEMETRY_H
#define CROWN_TELEMETRY_TELEMETRY_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "loop/appender.h"
#include "loop/loop.h"
#include "telemetry/latency.h"

struct telemetry;

/** Event, its name, and the level at which the default logger shows it. */
#define TELEMETRY_EVENTS(X)                                                                        \
    X(PROCESS_INITIALIZED, "process.initialized", LOG_DEBUG)                                       \
    X(PROCESS_TERMINATING, "process.terminating", LOG_DEBUG)                                       \
    X(LEADERSHIP_CLAIMED, "leadership.claimed", LOG_INFO)                                          \
    X(LEADERSHIP_ACTING, "leadership.acting", LOG_INFO)                                            \
    X(LEADERSHIP_CHANGED, "leadership.changed", LOG_INFO)                                          \
    X(LEADERSHIP_REJECTED, "leadership.rejected", LOG_DEBUG)                                       \
    X(LEADERSHIP_REFRESHED, "leadership.refreshed", LOG_DEBUG)                                     \
    X(LEADERSHIP_UNCERTAIN, "leadership.uncertain", LOG_WARN)                                      \
    X(LEADERSHIP_LOST, "leadership.lost", LOG_WARN)                                                \
    X(LEADERSHIP_CONFLICT, "leadership.conflict", LOG_ERROR)                                       \
    X(LEADERSHIP_ABDICATED, "leadership.abdicated", LOG_INFO)                                      \
    X(LEADERSHIP_EVICTED, "leadership.evicted", LOG_DEBUG)                                         \
    X(LEADERSHIP_BARRED, "leadership.barred", LOG_INFO)                                            \
    X(LEADERSHIP_ALLOWED, "leadership.allowed", LOG_INFO)                                          \
    X(MONITOR_STARTED, "monitor.started", LOG_DEBUG)                                               \
    X(MONITOR_FAILED, "monitor.failed", LOG_WARN)                                                  \
    X(MONITOR_TIMEOUT, "monitor.timeout", LOG_DEBUG)                                               \
    X(MONITOR_LEADER_DOWN, "monitor.leader_down", LOG_INFO)                                        \
    X(CHILD_STARTED, "child.started", LOG_INFO)                                                    \
    X(CHILD_STOPPED, "child.stopped", LOG_INFO)                                                    \
    X(CHILD_EXITED, "child.exited", LOG_WARN)                                                      \
    X(CHILD_KILLED, "child.killed", LOG_WARN)                                                      \
    X(CHILD_SILENT, "child.silent", LOG_WARN)                                                      \
    X(CHILD_UNKILLABLE, "child.unkillable", LOG_ERROR)                                             \
    X(CHILD_KEEPER_LATE, "child.keeper_late", LOG_ERROR)                                           \
    X(CHILD_UNFENCED, "child.unfenced", LOG_WARN)                                                  \
    X(ORACLE_CONNECTED, "oracle.connected", LOG_INFO)                                              \
    X(ORACLE_DISCONNECTED, "oracle.disconnected", LOG_WARN)                                        \
    X(ORACLE_ERROR, "oracle.error", LOG_ERROR)                                                     \
    X(ORACLE_AMNESIA, "oracle.amnesia", LOG_ERROR)                                                 \
    X(HANDLER_ERROR, "handler.error", LOG_ERROR)                                                   \
    X(RUNTIME_RESTARTED, "runtime.restarted", LOG_WARN)

#define TELEMETRY_ENUM(name, text, level) TELEMETRY_##name,
enum telemetry_event { TELEMETRY_EVENTS(TELEMETRY_ENUM) TELEMETRY_EVENT_COUNT };

/** Whom an event is about. NULL and 0: not known, and not told. */
struct telemetry_subject {
    const char *name, *phase, *oracle, *leader;
    const char *store; /* NULL: not known; the history keeps it */
    const char *node;  /* NULL: the one that telemetry_new was given */
    uint64_t epoch;
};

/** What can be a subject. Embed it; it is asked only when somebody hears of the event. */
struct telemetry_source {
    void (*describe)(const struct telemetry_source *source, struct telemetry_subject *subject);
};

/** @param node this candidate's name, read at each event. @return NULL when memory is out. */
struct telemetry *telemetry_new(const char *node, struct loop *loop);
void telemetry_free(struct telemetry *telemetry);

/**
 * Tells an event: to the log at its level, and to the Lua sink where somebody subscribed. Every
 * event bears name, node, phase, oracle, leader, epoch and time, besides its own fields.
 * @param source NULL for events of the whole runtime.
 */
void telemetry_emit(struct telemetry *telemetry, const struct telemetry_source *source,
                    enum telemetry_event event, const struct log_field *fields, unsigned count);

/** The same at another level than the event's own: a loss that the user asked for is no warning. */
void telemetry_emit_at(struct telemetry *telemetry, enum log_level level,
                       const struct telemetry_source *source, enum telemetry_event event,
                       const struct log_field *fields, unsigned count);

/** Emits an event by its name, as Lua oracles do. @return false when there is no such event. */
bool telemetry_emit_named(struct telemetry *telemetry, const struct telemetry_source *source,
                          const char *name, const struct log_field *fields, unsigned count);

/** The function on top of L (popped) becomes the sink: sink(name, fields), called from the loop;
 * may not wait. */
void telemetry_set_sink(struct telemetry *telemetry, lua_State *L);
/** Somebody subscribes ("*": to all). @return false when there is no such event. */
bool telemetry_want(struct telemetry *telemetry, const char *name);
/** Changes of leadership go to a file, too: history.h. @param appender taken over. */
void telemetry_keep_history(struct telemetry *telemetry, struct appender *appender);
/** How long calls of oracles took, of the whole runtime. */
struct latency *telemetry_latency(struct telemetry *telemetry);
/** @return how often an event was told since the start. */
uint64_t telemetry_count(const struct telemetry *telemetry, enum telemetry_event event);
const char *telemetry_event_name(enum telemetry_event event);

#endif
