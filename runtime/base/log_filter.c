/* Which messages the log writes. */
#include <string.h>

#include "base/log.h"

#define FILTERS_MAX 16
#define PREFIX_MAX 64

static const char *const level_names[] = {"debug", "info", "warn", "error"};

struct filter {
    char prefix[PREFIX_MAX];
    enum log_level level;
};

static struct {
    enum log_level level;
    struct filter filters[FILTERS_MAX];
    unsigned filter_count;
} settings = {.level = LOG_INFO};

void log_set_level(enum log_level level)
{
    settings.level = level;
}

enum log_level log_level(void)
{
    return settings.level;
}

int log_level_from_name(const char *word, enum log_level *level)
{
    for (int i = 0; i < LOG_LEVEL_COUNT; i++)
        if (strcmp(word, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return 0;
        }
    return -1;
}

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

/* One "prefix=level" of `length` bytes. */
static int parse_filter(const char *text, size_t length, struct filter *filter)
{
    const char *equals = memchr(text, '=', length);
    if (equals == NULL || equals == text || equals - text >= PREFIX_MAX)
        return -1;
    char word[16];
    size_t word_length = length - (size_t)(equals - text) - 1;
    if (word_length >= sizeof(word))
        return -1;
    memcpy(word, equals + 1, word_length);
    word[word_length] = '\0';
    memcpy(filter->prefix, text, (size_t)(equals - text));
    filter->prefix[equals - text] = '\0';
    if (strcmp(word, "off") != 0)
        return log_level_from_name(word, &filter->level);
    filter->level = LOG_LEVEL_COUNT; /* above them all */
    return 0;
}

int log_set_filter(const char *text)
{
    struct filter filters[FILTERS_MAX] = {{{0}, LOG_DEBUG}};
    unsigned count = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        if (count == FILTERS_MAX || parse_filter(text, length, &filters[count]) < 0)
            return -1;
        count++;
        text += length;
        text += *text == ',';
    }
    memcpy(settings.filters, filters, count * sizeof(filters[0]));
    settings.filter_count = count;
    return 0;
}

bool log_enabled(enum log_level level, const char *message)
{
    enum log_level least = settings.level;
    size_t longest = 0;
    for (unsigned i = 0; i < settings.filter_count; i++) {
        size_t length = strlen(settings.filters[i].prefix);
        if (length >= longest && strncmp(message, settings.filters[i].prefix, length) == 0) {
            longest = length;
            least = settings.filters[i].level;
        }
    }
    return level >= least;
}
