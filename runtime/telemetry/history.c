#include "telemetry/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MOST                                                                                  \
    8192 /* bytes; names of elections and nodes have 255 at most, a store's may be longer */

struct line {
    char text[LINE_MOST];
    size_t size;
    bool whole;
};

static void add(struct line *line, const char *bytes, size_t size)
{
    line->whole = line->whole && size <= sizeof(line->text) - line->size;
    if (!line->whole)
        return;
    memcpy(line->text + line->size, bytes, size);
    line->size += size;
}

static void add_text(struct line *line, const char *text)
{
    add(line, text, strlen(text));
}

/* Every other byte as it is: what a store calls its leader is compared with it later. */
static void add_string(struct line *line, const char *text)
{
    char escaped[8];
    add_text(line, "\"");
    while (*text != '\0') {
        size_t plain = 0;
        while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\')
            plain++;
        add(line, text, plain);
        text += plain;
        if (*text == '\0')
            break;
        (void)snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned char)*text++);
        add_text(line, escaped);
    }
    add_text(line, "\"");
}

/* @return what the history calls a field, or NULL where it does not keep it. */
static const char *key_of(const struct log_field *field)
{
    static const char *const strings[] = {"name", "node", "leader", "reason", "store"};
    if (field->type == LOG_FIELD_INTEGER)
        return strcmp(field->key, "epoch") == 0 ? "epoch" : NULL;
    for (size_t i = 0; field->type == LOG_FIELD_STRING && i < sizeof(strings) / sizeof(*strings);
         i++)
        if (strcmp(field->key, strings[i]) == 0)
            return strings[i];
    return NULL;
}

static void add_field(struct line *line, const struct log_field *field, const char *key)
{
    char number[32];
    add_text(line, ",\"");
    add_text(line, key);
    add_text(line, "\":");
    if (field->type == LOG_FIELD_STRING) {
        add_string(line, field->string);
        return;
    }
    (void)snprintf(number, sizeof(number), "%" PRId64, field->integer);
    add_text(line, number);
}

void history_note(struct appender *appender, const char *event, double time,
                  const struct log_field *fields, unsigned count)
{
    struct line line;
    char number[32];
    line.size = 0;
    line.whole = true;
    add_text(&line, "{\"event\":");
    add_string(&line, event);
    (void)snprintf(number, sizeof(number), ",\"time\":%.6f", time);
    add_text(&line, number);
    for (unsigned i = 0; i < count; i++) {
        const char *key = key_of(&fields[i]);
        if (key != NULL)
            add_field(&line, &fields[i], key);
    }
    add_text(&line, "}\n");
    if (line.whole) /* half a line would be of no use to anybody */
        appender_add(appender, line.text, line.size);
}
