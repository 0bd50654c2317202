/**
 * The log: one line a message on standard error, in one of three formats. It never waits for its
 * reader: lines that find no room are dropped, and counted by a later line, log.dropped.
 */
#ifndef CROWN_BASE_LOG_H
#define CROWN_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_COUNT };
enum log_format { LOG_TEXT, LOG_LOGFMT, LOG_JSON };

enum log_field_type { LOG_FIELD_STRING, LOG_FIELD_INTEGER, LOG_FIELD_NUMBER, LOG_FIELD_BOOLEAN };

struct log_field {
    const char *key;
    enum log_field_type type;
    union {
        const char *string;
        int64_t integer;
        double number;
        bool boolean;
    };
};

static inline struct log_field log_string(const char *key, const char *value)
{
    return (struct log_field){.key = key, .type = LOG_FIELD_STRING, .string = value};
}

static inline struct log_field log_integer(const char *key, int64_t value)
{
    return (struct log_field){.key = key, .type = LOG_FIELD_INTEGER, .integer = value};
}

static inline struct log_field log_number(const char *key, double value)
{
    return (struct log_field){.key = key, .type = LOG_FIELD_NUMBER, .number = value};
}

static inline struct log_field log_boolean(const char *key, bool value)
{
    return (struct log_field){.key = key, .type = LOG_FIELD_BOOLEAN, .boolean = value};
}

void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
enum log_level log_level(void);
enum log_format log_format(void);

/** @return 0, or -1 for a word that is no level, or format. */
int log_level_from_name(const char *word, enum log_level *level);
int log_format_from_name(const char *word, enum log_format *format);
const char *log_level_name(enum log_level level);

/**
 * Sets a level, or "off", for the messages that begin with a prefix, as in
 * "leadership=debug,child=off"; the longest prefix wins. An empty text takes all filters away.
 * @return 0, or -1 for a text that does not parse, or more than 16 filters; then nothing changes.
 */
int log_set_filter(const char *text);

/** @return whether a message of this level, beginning like `message`, would be written. */
bool log_enabled(enum log_level level, const char *message);

/** Writes a line: time, level, message, fields. Passwords in URLs are blotted out. */
void log_event(enum log_level level, const char *message, const struct log_field *fields,
               size_t count);

/**
 * Writes a line as it is, whatever level and format are set: what a command says to its user. It
 * waits for its reader as little as the log does. Passwords in URLs are blotted out.
 */
void log_say(const char *text);

void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
