#include "base/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Replaces `length` bytes at `from` by "***", or by fewer stars where there is less room. */
static char *blot(char *from, size_t length)
{
    size_t stars = length < 3 ? length : 3;
    memset(from, '*', stars);
    memmove(from + stars, from + length, strlen(from + length) + 1);
    return from + stars;
}

/* Whether a lone word before the '@' is a user: elsewhere it is a password, as in redis://, or a
 * token, as in nats://, or may be. */
static bool names_users(const char *text, const char *scheme_end)
{
    static const char *const schemes[] = {
        "http",   "https",    "etcd",       "etcds",   "mysql",
        "mysqls", "postgres", "postgresql", "advisory"}; /* postgres+advisory */
    const char *scheme = scheme_end;
    while (scheme > text && isalnum((unsigned char)scheme[-1]))
        scheme--;
    size_t length = (size_t)(scheme_end - scheme);
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strlen(schemes[i]) == length && strncasecmp(schemes[i], scheme, length) == 0)
            return true;
    return false;
}

/* How far the login of a URL may go: up to its query, or to the next URL. */
static char *end_of_login(char *at)
{
    char *end = at + strcspn(at, "? \t\n");
    char *next = strstr(at, "://");
    if (next == NULL || next > end)
        return end;
    while (next > at && (isalnum((unsigned char)next[-1]) || strchr("+-.", next[-1]) != NULL))
        next--;
    return next;
}

static void redact_urls(char *text)
{
    char *at = text;
    while ((at = strstr(at, "://")) != NULL) {
        at += 3;
        char *end = end_of_login(at);
        /* The last '@' ends the user part: a password may hold others, and a '/' or '#'. */
        char *host = end;
        while (host > at && *host != '@')
            host--;
        char *colon = memchr(at, ':', (size_t)(host - at));
        if (*host == '@' && colon != NULL)
            at = blot(colon + 1, (size_t)(host - colon - 1));
        else if (*host == '@' && !names_users(text, at - 3))
            at = blot(at, (size_t)(host - at));
    }
}

/* Whether ports stand at `port`, and behind them a query with a name in it, before `end`: an '@'
 * there ends no login. */
static bool is_in_query(const char *port, const char *end)
{
    for (;;) {
        size_t digits = strspn(port, "0123456789");
        if (digits == 0 || digits > 5)
            return false;
        port += digits;
        if (*port != ',')
            break;
        port += strcspn(port, ":/?@"); /* the next host */
        if (*port++ != ':')
            return false;
    }
    const char *query = port + strcspn(port, "?@");
    if ((*port != '/' && *port != '?') || *query != '?')
        return false;
    const char *name = query + 1;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return name > query + 1 && *name == '=' && name < end;
}

/* A login that is no part of a URL: of one that was mistyped, above all. A word ends where the next
 * URL's "://" begins. A path after a colon, as in unix:/run, is no password. */
static void redact_logins(char *text)
{
    for (char *at = text; *at != '\0';) {
        size_t length = strcspn(at, " \t\r\n\"");
        const char *scheme_end = strstr(at, "://");
        if (scheme_end != NULL && scheme_end < at + length)
            length = (size_t)(scheme_end - at);
        char *colon = memchr(at, ':', length), *host = memrchr(at, '@', length);
        if (colon != NULL && colon[1] == '/')
            colon = memchr(colon + 1, ':', (size_t)(at + length - colon - 1));
        char *next = at + length;
        if (strncmp(at, "arn:", 4) == 0)
            colon = NULL; /* the name of something at AWS, which is no login */
        if (colon != NULL && host != NULL && colon < host) {
            char *blotted = colon + 1 + strspn(colon + 1, "*");
            if ((blotted > colon + 1 && *blotted == '@') || is_in_query(colon + 1, host)) {
                at = (*blotted == '@' ? blotted : host) + 1;
                continue;
            }
            char *moved = blot(colon + 1, (size_t)(host - colon - 1));
            next = moved + (next - host);
        }
        at = next + (*next == ':' ? 3 : *next != '\0');
    }
}

void redact(char *text)
{
    static const char *const keys[] = {"password=", "secret=", "token="};
    redact_urls(text);
    redact_logins(text);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char *at = text;
        while ((at = strcasestr(at, keys[i])) != NULL) {
            at += strlen(keys[i]);
            if (*at == '"' || *at == '\'') {
                const char quote[] = {*at++, '\0'};
                at = blot(at, strcspn(at, quote));
            } else {
                at = blot(at, strcspn(at, "& \t\n\"',;"));
            }
        }
    }
}
