/* Of a supervisor alone, what watches its runtime and what it logs: nothing but what it is told. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/pulse.h"
#include "process/watchdog.h"
#include "whole_supervisor.h"

void __wrap_log_set_format(enum log_format format);
void __wrap_log_set_format(enum log_format format)
{
    notes_add("logs in the format %d", (int)format);
}

void __wrap_log_set_level(enum log_level level);
void __wrap_log_set_level(enum log_level level)
{
    notes_add("logs from level %d on", (int)level);
}

static void note_log(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
static void note_log(const char *format, va_list arguments)
{
    char text[512];
    (void)vsnprintf(text, sizeof(text), format, arguments);
    notes_add("logs %s", text);
}

void __wrap_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_log_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note_log(format, arguments);
    va_end(arguments);
}

void __wrap_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_log_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note_log(format, arguments);
    va_end(arguments);
}

void __wrap_watchdog_start(struct watchdog *watchdog, pid_t runtime);
void __wrap_watchdog_start(struct watchdog *watchdog, pid_t runtime)
{
    watchdog->held[0] = '\0';
    notes_add("watches %d", (int)runtime);
}

void __wrap_watchdog_beat(struct watchdog *watchdog);
void __wrap_watchdog_beat(struct watchdog *watchdog)
{
    (void)watchdog;
    notes_add("feels a beat");
}

void __wrap_watchdog_idle(struct watchdog *watchdog, int64_t until_ns);
void __wrap_watchdog_idle(struct watchdog *watchdog, int64_t until_ns)
{
    (void)watchdog;
    notes_add("believes it idle until %g", clock_seconds_from_ns(until_ns - START_NS));
}

void __wrap_watchdog_heed(struct watchdog *watchdog);
void __wrap_watchdog_heed(struct watchdog *watchdog)
{
    (void)watchdog;
    notes_add("looks whether it is stopped");
}

void __wrap_watchdog_answer(struct watchdog *watchdog, const char *text);
void __wrap_watchdog_answer(struct watchdog *watchdog, const char *text)
{
    (void)watchdog;
    notes_add("hears that it does %s", text);
}

void __wrap_watchdog_limit(struct watchdog *watchdog, int64_t limit_ns);
void __wrap_watchdog_limit(struct watchdog *watchdog, int64_t limit_ns)
{
    (void)watchdog;
    notes_add("allows a silence of %g", clock_seconds_from_ns(limit_ns));
}

void __wrap_watchdog_look(struct watchdog *watchdog);
void __wrap_watchdog_look(struct watchdog *watchdog)
{
    (void)snprintf(watchdog->held, sizeof(watchdog->held), "%s", whole_supervisor.held);
}

int64_t __wrap_watchdog_next_ns(const struct watchdog *watchdog);
int64_t __wrap_watchdog_next_ns(const struct watchdog *watchdog)
{
    (void)watchdog;
    return whole_supervisor.silence_ns;
}

int64_t __wrap_pulse_lasted_ns(const struct pulse *pulse);
int64_t __wrap_pulse_lasted_ns(const struct pulse *pulse)
{
    (void)pulse;
    return whole_supervisor.lasted_ns;
}
