/* Which lines of Lua a process has executed, and what gcov has counted: written down when it ends,
 * however it ends, but for a SIGKILL. */
#define COVERAGE_ITSELF
#include "coverage.h"

#include <stdio.h>
#include <string.h>

#define SOURCES_MAX 256
#define LINES_MAX 4096
#define NAME_MAX_BYTES 120

void __gcov_dump(void);

static char names[SOURCES_MAX][NAME_MAX_BYTES];
static unsigned char hit[SOURCES_MAX][LINES_MAX];
static unsigned sources;
static lua_Hook guards_hook; /* the runtime's own */

static unsigned place_of(const char *source)
{
    for (unsigned i = 0; i < sources; i++)
        if (strcmp(names[i], source) == 0)
            return i;
    if (sources == SOURCES_MAX || strlen(source) >= NAME_MAX_BYTES)
        return SOURCES_MAX;
    (void)strcpy(names[sources], source);
    return sources++;
}

static void on_event(lua_State *L, lua_Debug *where)
{
    if (where->event == LUA_HOOKCOUNT) {
        if (guards_hook != NULL)
            guards_hook(L, where);
        return;
    }
    if (lua_getinfo(L, "S", where) == 0 || where->source[0] != '@')
        return;
    unsigned place = place_of(where->source);
    if (place < SOURCES_MAX && where->currentline >= 0 && where->currentline < LINES_MAX)
        hit[place][where->currentline] = 1;
}

int coverage_sethook(lua_State *L, lua_Hook hook, int mask, int count)
{
    guards_hook = hook;
    return lua_sethook(L, on_event, mask | LUA_MASKLINE, count);
}

lua_State *coverage_newstate(void)
{
    lua_State *L = luaL_newstate();
    if (L != NULL)
        (void)lua_sethook(L, on_event, LUA_MASKLINE, 0);
    return L;
}

static void write_lines(void)
{
    char path[300];
    (void)snprintf(path, sizeof(path), "%s/%d", COVERAGE_DIRECTORY, (int)getpid());
    FILE *file = sources > 0 ? fopen(path, "ae") : NULL;
    if (file == NULL)
        return; /* another user's process may not write there */
    for (unsigned i = 0; i < sources; i++)
        for (unsigned line = 0; line < LINES_MAX; line++)
            if (hit[i][line] != 0)
                (void)fprintf(file, "%s:%u\n", names[i] + 1, line);
    (void)fclose(file); /* what is lost shows as not executed */
}

void coverage_write(void)
{
    write_lines();
    __gcov_dump();
}

static void __attribute__((destructor)) at_end(void)
{
    write_lines();
}
