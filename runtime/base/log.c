#include "base/log.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/character.h"
#include "base/redact.h"
#include "base/sink.h"

#define LINE_MAX_BYTES SINK_LINE_MOST
#define EXACT_MOST 9007199254740992.0 /* 2^53: whole numbers up to it keep every digit */

static const char *const format_names[] = {"text", "logfmt", "json"};

static enum log_format format_set;

struct line {
    char text[LINE_MAX_BYTES];
    size_t length;
};

void log_set_format(enum log_format format)
{
    format_set = format;
}

enum log_format log_format(void)
{
    return format_set;
}

int log_format_from_name(const char *word, enum log_format *format)
{
    for (int i = LOG_TEXT; i <= LOG_JSON; i++)
        if (strcmp(word, format_names[i]) == 0) {
            *format = (enum log_format)i;
            return 0;
        }
    return -1;
}

static void append(struct line *line, const char *bytes, size_t length)
{
    size_t room = sizeof(line->text) - 1 - line->length; /* one byte stays free for the newline */
    if (length > room)
        length = room;
    memcpy(line->text + line->length, bytes, length);
    line->length += length;
}

static void append_text(struct line *line, const char *text)
{
    append(line, text, strlen(text));
}

/* Before quoting, which would hide where a secret with quotes in it ends. */
static void copy_redacted(char copy[LINE_MAX_BYTES], const char *text)
{
    (void)snprintf(copy, LINE_MAX_BYTES, "%s", text); /* more than a line holds is cut anyway */
    redact(copy);
}

/* Quoted as JSON wants it, which logfmt reads too. */
static void append_quoted(struct line *line, const char *text)
{
    append_text(line, "\"");
    struct character one;
    for (; *text != '\0'; text += one.length) {
        char escape[8];
        one = character_at(text);
        if (one.code == '"' || one.code == '\\')
            (void)snprintf(escape, sizeof(escape), "\\%c", *text);
        else if (one.code == '\n')
            (void)snprintf(escape, sizeof(escape), "\\n");
        else if (!one.shown)
            (void)snprintf(escape, sizeof(escape), "\\u%04x", one.code);
        else {
            append(line, text, one.length);
            continue;
        }
        append_text(line, escape);
    }
    append_text(line, "\"");
}

static bool is_word(const char *text)
{
    if (*text == '\0')
        return false;
    struct character one;
    for (; *text != '\0'; text += one.length) {
        one = character_at(text);
        if (strchr(" \"=\\", *text) != NULL || !one.shown)
            return false;
    }
    return true;
}

static void append_word(struct line *line, const char *text)
{
    if (is_word(text))
        append_text(line, text);
    else
        append_quoted(line, text);
}

static void append_value(struct line *line, const struct log_field *field, bool json)
{
    char number[48];
    char text[LINE_MAX_BYTES];
    switch (field->type) {
    case LOG_FIELD_STRING:
        copy_redacted(text, field->string);
        if (json)
            append_quoted(line, text);
        else
            append_word(line, text);
        return;
    case LOG_FIELD_INTEGER:
        (void)snprintf(number, sizeof(number), "%" PRId64, field->integer);
        break;
    case LOG_FIELD_NUMBER:
        if (fabs(field->number) <= EXACT_MOST && trunc(field->number) == field->number)
            (void)snprintf(number, sizeof(number), "%.0f", field->number);
        else if (isfinite(field->number))
            (void)snprintf(number, sizeof(number), "%.14g", field->number);
        else
            (void)snprintf(number, sizeof(number), json ? "null" : "%g", field->number);
        break;
    case LOG_FIELD_BOOLEAN:
        (void)snprintf(number, sizeof(number), "%s", field->boolean ? "true" : "false");
        break;
    }
    append_text(line, number);
}

static void append_time(struct line *line, bool short_form)
{
    struct timespec now;
    struct tm parts;
    char text[64];
    if (clock_gettime(CLOCK_REALTIME, &now) < 0 || gmtime_r(&now.tv_sec, &parts) == NULL)
        return;
    size_t length =
        strftime(text, sizeof(text), short_form ? "%H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text + length, sizeof(text) - length, ".%03ld%s", now.tv_nsec / 1000000,
                   short_form ? "" : "Z");
    append_text(line, text);
}

/* A text of several lines, such as a traceback, goes on below, indented, so that it is none of the
 * log's own lines. */
static void append_below(struct line *line, const char *text)
{
    append_text(line, "\n    ");
    struct character one;
    for (; *text != '\0'; text += one.length) {
        one = character_at(text);
        if (*text == '\n')
            append_text(line, "\n    ");
        else
            append(line, one.shown ? text : " ", one.shown ? one.length : 1);
    }
}

static bool has_lines(const struct log_field *field)
{
    return field->type == LOG_FIELD_STRING && strchr(field->string, '\n') != NULL;
}

/* What a field is called in a line: the line's own keys are its own. */
static const char *key_of(const struct log_field *field)
{
    static const char *const taken[][2] = {{"time", "time_"}, {"level", "level_"}, {"msg", "msg_"}};
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (strcmp(field->key, taken[i][0]) == 0)
            return taken[i][1];
    return field->key;
}

/* The last one of several fields with one key counts: what is said of an event, before what is said
 * of all of its kind. */
static bool is_outdone(const struct log_field *fields, size_t i, size_t count)
{
    for (size_t later = i + 1; later < count; later++)
        if (strcmp(key_of(&fields[later]), key_of(&fields[i])) == 0)
            return true;
    return false;
}

/* The first line beside the others, the rest below all of them. */
static void append_fields(struct line *line, const struct log_field *fields, size_t count)
{
    char text[LINE_MAX_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (is_outdone(fields, i, count))
            continue;
        append_text(line, " ");
        append_text(line, key_of(&fields[i]));
        append_text(line, "=");
        if (!has_lines(&fields[i])) {
            append_value(line, &fields[i], false);
            continue;
        }
        copy_redacted(text, fields[i].string);
        text[strcspn(text, "\n")] = '\0';
        append_word(line, text);
    }
    for (size_t i = 0; i < count; i++)
        if (has_lines(&fields[i]) && !is_outdone(fields, i, count)) {
            copy_redacted(text, fields[i].string);
            const char *rest = strchr(text, '\n'); /* none where it was in a password */
            if (rest != NULL)
                append_below(line, rest + 1);
        }
}

static void write_text(struct line *line, enum log_level level, const char *message,
                       const struct log_field *fields, size_t count)
{
    static const char *const padded[] = {" debug ", " info  ", " warn  ", " error "};
    append_time(line, isatty(STDERR_FILENO) == 1);
    append_text(line, padded[level]);
    const char *trace = strstr(message, "\nstack traceback:\n"); /* of a task's error */
    struct character one;
    for (; *message != '\0' && message != trace; message += one.length) {
        one = character_at(message);
        bool shown = one.shown || *message == '\t';
        append(line, shown ? message : " ", shown ? one.length : 1);
    }
    append_fields(line, fields, count);
    if (trace != NULL)
        append_below(line, trace + 1);
}

static void write_logfmt(struct line *line, enum log_level level, const char *message,
                         const struct log_field *fields, size_t count)
{
    append_text(line, "time=");
    append_time(line, false);
    append_text(line, " level=");
    append_text(line, log_level_name(level));
    append_text(line, " msg=");
    append_word(line, message);
    for (size_t i = 0; i < count; i++) {
        if (is_outdone(fields, i, count))
            continue;
        append_text(line, " ");
        append_text(line, key_of(&fields[i]));
        append_text(line, "=");
        append_value(line, &fields[i], false);
    }
}

static void write_json(struct line *line, enum log_level level, const char *message,
                       const struct log_field *fields, size_t count)
{
    append_text(line, "{\"time\":\"");
    append_time(line, false);
    append_text(line, "\",\"level\":\"");
    append_text(line, log_level_name(level));
    append_text(line, "\",\"msg\":");
    append_quoted(line, message);
    for (size_t i = 0; i < count; i++) {
        if (is_outdone(fields, i, count))
            continue;
        append_text(line, ",");
        append_quoted(line, key_of(&fields[i]));
        append_text(line, ":");
        append_value(line, &fields[i], true);
    }
    append_text(line, "}");
}

/* @return whether the line was taken. */
static bool finish(struct line *line)
{
    line->text[line->length++] = '\n';
    return sink_write(line->text, line->length);
}

static bool put(enum log_level level, const char *message, const struct log_field *fields,
                size_t count)
{
    static void (*const writers[])(struct line *, enum log_level, const char *,
                                   const struct log_field *, size_t) = {
        [LOG_TEXT] = write_text, [LOG_LOGFMT] = write_logfmt, [LOG_JSON] = write_json};
    struct line line;
    char clean[LINE_MAX_BYTES];
    line.length = 0;
    copy_redacted(clean, message);
    writers[format_set](&line, level, clean, fields, count);
    return finish(&line);
}

static int64_t dropped; /* lines, since one was last written */

static void tell_dropped(void)
{
    if (dropped == 0)
        return;
    const struct log_field lines[] = {log_integer("lines", dropped)};
    if (put(LOG_WARN, "log.dropped", lines, 1))
        dropped = 0;
}

void log_event(enum log_level level, const char *message, const struct log_field *fields,
               size_t count)
{
    if (!log_enabled(level, message))
        return;
    tell_dropped();
    if (!put(level, message, fields, count))
        dropped++;
}

void log_say(const char *text)
{
    struct line line = {.length = 0};
    char clean[LINE_MAX_BYTES];
    tell_dropped();
    copy_redacted(clean, text);
    append_text(&line, clean);
    if (!finish(&line))
        dropped++;
}

#define LOG_PRINTF(name, level)                                                                    \
    void name(const char *format, ...)                                                             \
    {                                                                                              \
        char text[1024];                                                                           \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        (void)vsnprintf(text, sizeof(text), format, arguments);                                    \
        va_end(arguments);                                                                         \
        log_event(level, text, NULL, 0);                                                           \
    }

LOG_PRINTF(log_debug, LOG_DEBUG)
LOG_PRINTF(log_info, LOG_INFO)
LOG_PRINTF(log_warn, LOG_WARN)
LOG_PRINTF(log_error, LOG_ERROR)
