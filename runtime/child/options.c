#include "child/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

void strings_free(char **strings)
{
    for (char **s = strings; s != NULL && *s != NULL; s++)
        free(*s);
    free(strings);
}

void child_options_free(struct child_options *options)
{
    if (options == NULL)
        return;
    strings_free(options->argv);
    strings_free(options->env);
    strings_free(options->log_fields);
    free(options->cwd);
    free(options->epoch_file);
    free(options->groups);
    for (int stream = 0; stream < 3; stream++)
        free(options->path[stream]);
    free(options);
}

static bool same_variable(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* A later list wins over an earlier one, so that a variable never stands twice (getenv would find
 * the first). */
static bool overridden(const char *variable, const char *const *list)
{
    for (const char *const *entry = list; entry != NULL && *entry != NULL; entry++)
        if (same_variable(*entry, variable))
            return true;
    return false;
}

static bool private_variable(const char *variable)
{
    /* CROWN_ORACLE may hold a password; a child that is a candidate itself gets its own. The others
     * are between us and the service manager. */
    static const char *const names[] = {"CROWN_ORACLE", "NOTIFY_SOCKET", "WATCHDOG_USEC",
                                        "WATCHDOG_PID"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if (strncmp(variable, names[i], length) == 0 && variable[length] == '=')
            return true;
    }
    return false;
}

static size_t count_strings(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

char **child_environment(const struct child_options *options, const char *const *extra)
{
    const char *const *own = (const char *const *)environ;
    const char *const *added = (const char *const *)options->env;
    char **merged = calloc(count_strings(own) + count_strings(added) + count_strings(extra) + 1,
                           sizeof(char *));
    if (merged == NULL)
        return NULL;
    size_t count = 0;
    for (const char *const *entry = own; entry != NULL && *entry != NULL; entry++)
        if (!private_variable(*entry) && !overridden(*entry, added) && !overridden(*entry, extra))
            merged[count++] = strdup(*entry);
    for (const char *const *entry = added; entry != NULL && *entry != NULL; entry++)
        if (!overridden(*entry, extra))
            merged[count++] = strdup(*entry);
    for (const char *const *entry = extra; entry != NULL && *entry != NULL; entry++)
        merged[count++] = strdup(*entry);
    for (size_t i = 0; i < count; i++)
        if (merged[i] == NULL) {
            for (size_t j = 0; j < count; j++)
                free(merged[j]);
            free(merged);
            return NULL;
        }
    return merged;
}
