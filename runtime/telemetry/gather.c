#include "telemetry/gather.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/container.h"

#define WRITTEN 20 /* lines of one cause before they are counted */
#define WINDOW_NS NS_PER_S

static void write_counted(struct gather_cause *cause)
{
    const struct log_field fields[] = {
        log_string("oracle", cause->oracle),
        log_integer("more", cause->counted),
        log_string(cause->key, cause->text),
    };
    log_event(cause->level, cause->event, fields, sizeof(fields) / sizeof(fields[0]));
}

/* A cause that goes on is counted from its first line on. */
static bool turn_over(struct gather *gather)
{
    bool any = false;
    for (unsigned i = 0; i < GATHER_CAUSES; i++) {
        struct gather_cause *cause = &gather->causes[i];
        if (cause->event == NULL)
            continue;
        if (cause->counted == 0) {
            cause->event = NULL;
            continue;
        }
        write_counted(cause);
        cause->counted = 0;
        any = true;
    }
    return any;
}

static void fired(struct loop_deadline *timer)
{
    struct gather *gather = container_of(timer, struct gather, timer);
    if (turn_over(gather))
        loop_at(gather->loop, timer, clock_add_ns(loop_now(gather->loop), WINDOW_NS));
}

void gather_init(struct gather *gather, struct loop *loop)
{
    *gather = (struct gather){.loop = loop, .timer = {.fire = fired}};
}

void gather_finish(struct gather *gather)
{
    loop_at_cancel(gather->loop, &gather->timer);
    (void)turn_over(gather);
}

static const char *text_of(const struct log_field *fields, unsigned count, const char *key)
{
    for (unsigned i = 0; i < count; i++)
        if (fields[i].type == LOG_FIELD_STRING && strcmp(fields[i].key, key) == 0)
            return fields[i].string;
    return NULL;
}

/* What a line says, and says of others too. */
struct saying {
    const char *event, *oracle, *key, *text;
};

static bool is_about(const struct gather_cause *cause, const struct saying *saying)
{
    return cause->event != NULL && strcmp(cause->event, saying->event) == 0 &&
           strncmp(cause->oracle, saying->oracle, sizeof(cause->oracle) - 1) == 0 &&
           strcmp(cause->key, saying->key) == 0 &&
           strncmp(cause->text, saying->text, sizeof(cause->text) - 1) == 0;
}

/* @return the cause; a new one where there is room; or NULL. */
static struct gather_cause *cause_of(struct gather *gather, const struct saying *saying)
{
    struct gather_cause *room = NULL;
    for (unsigned i = 0; i < GATHER_CAUSES; i++) {
        if (is_about(&gather->causes[i], saying))
            return &gather->causes[i];
        if (gather->causes[i].event == NULL)
            room = &gather->causes[i];
    }
    if (room == NULL)
        return NULL;
    *room = (struct gather_cause){.event = saying->event, .key = saying->key};
    (void)snprintf(room->oracle, sizeof(room->oracle), "%s", saying->oracle);
    (void)snprintf(room->text, sizeof(room->text), "%s", saying->text);
    if (!loop_at_armed(&gather->timer))
        loop_at(gather->loop, &gather->timer, clock_add_ns(loop_now(gather->loop), WINDOW_NS));
    return room;
}

void gather_line(struct gather *gather, enum log_level level, const char *event,
                 const struct log_field *fields, unsigned count)
{
    static const char *const keys[] = {"error", "reason", "phase"};
    struct saying saying = {.event = event, .oracle = text_of(fields, count, "oracle")};
    struct gather_cause *cause = NULL;
    /* wins, and how a command ended, are told of each, without a cause */
    const bool is_phase = level >= LOG_WARN && strncmp(event, "leadership.", 11) == 0;
    const unsigned some = is_phase ? 3 : 2;
    for (unsigned i = 0; i < some && saying.text == NULL; i++) {
        saying.key = keys[i];
        saying.text = text_of(fields, count, saying.key);
    }
    if (saying.text != NULL && saying.oracle != NULL && text_of(fields, count, "name") != NULL)
        cause = cause_of(gather, &saying);
    if (cause != NULL && cause->written == WRITTEN) {
        cause->level = level;
        cause->counted++;
        return;
    }
    if (cause != NULL)
        cause->written++;
    log_event(level, event, fields, count);
}
