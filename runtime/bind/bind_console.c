/* crown.core.console: the terminal that a command talks to, and filters as people write them. */
#include <errno.h>
#include <lauxlib.h>
#include <poll.h>
#include <regex.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "bind/bind.h"
#include "process/fds.h"

#define COLUMNS_DEFAULT 80
#define ROWS_DEFAULT 24

/* columns(fd) -> how wide the terminal is, and how high; nothing when it is none. */
static int console_columns(lua_State *L)
{
    int fd = luaL_checkint(L, 1);
    struct winsize size;
    if (!isatty(fd))
        return 0;
    bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    lua_pushinteger(L, known ? size.ws_col : COLUMNS_DEFAULT);
    lua_pushinteger(L, known && size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT);
    return 2;
}

/* filter(pattern, list) -> the strings of the list that a POSIX extended regular expression finds;
 * or nil, message. */
static int console_filter(lua_State *L)
{
    regex_t regex;
    const char *pattern = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    int error = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (error != 0) {
        char text[128];
        (void)regerror(error, &regex, text, sizeof(text));
        lua_pushnil(L);
        lua_pushfstring(L, "'%s' is no regular expression: %s", pattern, text);
        return 2;
    }
    lua_newtable(L);
    int kept = 0, count = (int)lua_objlen(L, 2);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, 2, i);
        const char *text = lua_tostring(L, -1);
        if (text != NULL && regexec(&regex, text, 0, NULL, 0) == 0)
            lua_rawseti(L, -2, ++kept);
        else
            lua_pop(L, 1);
    }
    regfree(&regex);
    return 1;
}

/* @return how much of it standard output took; -1 with errno. */
static ssize_t print_some(const char *text, size_t size)
{
    if (fds_output_was_missing()) {
        errno = EBADF;
        return -1;
    }
    struct pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT};
    ssize_t taken = write(STDOUT_FILENO, text, size);
    if (taken >= 0 || (errno != EAGAIN && errno != EINTR))
        return taken;
    return poll(&room, 1, -1) < 0 && errno != EINTR ? -1 : 0; /* another's terminal may not wait */
}

/* print(text) -> true when standard output took all of it, false when its reader is gone; or nil,
 * message. */
static int console_print(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    while (size > 0) {
        ssize_t taken = print_some(text, size);
        if (taken < 0 && errno != EPIPE)
            return push_errno(L, "write", "standard output");
        if (taken < 0)
            break;
        text += taken;
        size -= (size_t)taken;
    }
    lua_pushboolean(L, size == 0);
    return 1;
}

/* say(text): a line on standard error, past the log's level and format, that waits for nobody. What
 * its reader has no room for is lost, and counted by the log. */
static int console_say(lua_State *L)
{
    log_say(luaL_checkstring(L, 1));
    return 0;
}

/* has_come() -> whether a read of standard input would wait for nothing: it has a line, or its end.
 */
static int console_has_come(lua_State *L)
{
    struct pollfd typed = {.fd = STDIN_FILENO, .events = POLLIN};
    lua_pushboolean(L, poll(&typed, 1, 0) > 0);
    return 1;
}

static const luaL_Reg functions[] = {
    {"columns", console_columns}, {"has_come", console_has_come}, {"print", console_print},
    {"say", console_say},         {"filter", console_filter},     {NULL, NULL},
};

int bind_open_console(lua_State *L)
{
    lua_newtable(L);
    luaL_register(L, NULL, functions);
    return 1;
}
