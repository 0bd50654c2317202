#include "postgres/explain.h"

#include <string.h>

#include "base/advice.h"

#define NAME_START "postgres at "

/* The message without the front by which libpq, or this client, names the server. */
static const char *without_front(const char *message)
{
    static const char *const ends[] = {" failed: FATAL:  ", " failed: ERROR:  ", " failed: "};
    if (strncmp(message, "connection to server ", strlen("connection to server ")) == 0)
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
            const char *end = strstr(message, ends[i]);
            if (end != NULL)
                return end + strlen(ends[i]);
        }
    if (strncmp(message, "postgres: ", strlen("postgres: ")) == 0)
        return message + strlen("postgres: ");
    return message;
}

void postgres_explain(const char *host, const char *port, enum postgres_heard heard,
                      struct crown_error *err)
{
    const struct advice_link link = {.store = "postgres",
                                     .spoke = heard != POSTGRES_SILENT,
                                     .answered = heard == POSTGRES_REFUSED};
    char step[200] = "";
    if (strncmp(err->message, NAME_START, strlen(NAME_START)) == 0)
        return;
    const struct crown_error before = *err;
    const char *problem = without_front(before.message);
    bool has_step = advice(&link, problem, step, sizeof(step));
    bool is_address = host != NULL && host[0] != '/' && strchr(host, ':') != NULL;
    (void)error_set(err, before.code, NAME_START "%s%s%s:%s: %s%s%s", is_address ? "[" : "",
                    host != NULL ? host : "the local server", is_address ? "]" : "",
                    port != NULL ? port : "5432", problem, has_step ? "; " : "", step);
}
