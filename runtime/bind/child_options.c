#include "bind/child_options.h"

#include <lauxlib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* Pushes field `key` of the table at `index`, which is absolute. */
static int push_field(lua_State *L, int index, const char *key)
{
    lua_getfield(L, index, key);
    return lua_type(L, -1);
}

static char *read_string(lua_State *L, int index, const char *key)
{
    char *copy = NULL;
    if (push_field(L, index, key) == LUA_TSTRING)
        copy = strdup(lua_tostring(L, -1));
    lua_pop(L, 1);
    return copy;
}

static bool read_flag(lua_State *L, int index, const char *key)
{
    (void)push_field(L, index, key);
    bool flag = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return flag;
}

static lua_Number read_number(lua_State *L, int index, const char *key, lua_Number otherwise)
{
    lua_Number number = push_field(L, index, key) == LUA_TNUMBER ? lua_tonumber(L, -1) : otherwise;
    lua_pop(L, 1);
    return number;
}

/* A list of strings as a NULL-terminated array; NULL where the field is no table, a string would be
 * cut off at a NUL byte, or memory is out. */
static char **read_list(lua_State *L, int index, const char *key)
{
    char **list = NULL;
    if (push_field(L, index, key) == LUA_TTABLE) {
        size_t count = lua_objlen(L, -1);
        list = calloc(count + 1, sizeof(*list));
        for (size_t i = 0; list != NULL && i < count; i++) {
            lua_rawgeti(L, -1, (int)i + 1);
            size_t length = 0;
            const char *text = lua_tolstring(L, -1, &length);
            list[i] = text != NULL && strlen(text) == length ? strdup(text) : NULL;
            lua_pop(L, 1);
            if (list[i] == NULL) {
                strings_free(list);
                list = NULL;
            }
        }
    }
    lua_pop(L, 1);
    return list;
}

/* A table of KEY = value as "KEY=value" strings. */
static char **read_pairs(lua_State *L, int index, const char *key)
{
    char **list = NULL;
    if (push_field(L, index, key) == LUA_TTABLE) {
        size_t count = 0;
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
            count++;
        list = calloc(count + 1, sizeof(*list));
        size_t i = 0;
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
            const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
            const char *value = lua_tostring(L, -1);
            if (list == NULL || name == NULL || value == NULL)
                continue;
            size_t length = strlen(name) + 1 + strlen(value) + 1;
            list[i] = malloc(length);
            if (list[i] == NULL)
                continue;
            (void)stpcpy(stpcpy(stpcpy(list[i], name), "="), value);
            i++;
        }
    }
    lua_pop(L, 1);
    return list;
}

static void read_groups(lua_State *L, int index, struct child_options *options)
{
    if (push_field(L, index, "groups") == LUA_TTABLE) {
        size_t count = lua_objlen(L, -1);
        options->groups = calloc(count + 1, sizeof(*options->groups));
        for (size_t i = 0; options->groups != NULL && i < count; i++) {
            lua_rawgeti(L, -1, (int)i + 1);
            options->groups[i] = (gid_t)lua_tonumber(L, -1);
            lua_pop(L, 1);
            options->group_count = i + 1;
        }
    }
    lua_pop(L, 1);
}

static void read_output(lua_State *L, int index, struct child_options *options, int stream)
{
    static const char *const keys[3] = {"stdin", "stdout", "stderr"};
    char *word = read_string(L, index, keys[stream]);
    if (word == NULL || strcmp(word, "inherit") == 0)
        options->output[stream] = CHILD_OUTPUT_INHERIT;
    else if (strcmp(word, "null") == 0)
        options->output[stream] = CHILD_OUTPUT_NULL;
    else if (strcmp(word, "log") == 0)
        options->output[stream] = CHILD_OUTPUT_LOG;
    else {
        options->output[stream] = CHILD_OUTPUT_PATH;
        options->path[stream] = word;
        return;
    }
    free(word);
}

struct child_options *child_options_read(lua_State *L, int index)
{
    struct child_options *options = calloc(1, sizeof(*options));
    if (options == NULL)
        return NULL;
    options->argv = read_list(L, index, "argv");
    options->env = read_pairs(L, index, "env");
    options->log_fields = read_list(L, index, "log_fields");
    options->cwd = read_string(L, index, "cwd");
    options->epoch_file = read_string(L, index, "epoch_file");
    options->set_ids = push_field(L, index, "uid") == LUA_TNUMBER;
    lua_pop(L, 1);
    options->uid = (uid_t)read_number(L, index, "uid", (lua_Number)getuid());
    options->gid = (gid_t)read_number(L, index, "gid", (lua_Number)getgid());
    read_groups(L, index, options);
    for (int stream = 0; stream < 3; stream++)
        read_output(L, index, options, stream);
    options->keep_output = (size_t)read_number(L, index, "keep_output", 0);
    options->stop_signal = (int)read_number(L, index, "stop_signal", SIGTERM);
    options->watchdog_ns = (int64_t)(read_number(L, index, "watchdog", 0) * NS_PER_S);
    char *isolation = read_string(L, index, "isolation");
    options->isolation = isolation != NULL && strcmp(isolation, "pidns") == 0
                             ? CHILD_ISOLATION_PIDNS
                             : CHILD_ISOLATION_TREE;
    free(isolation);
    options->terminal = read_flag(L, index, "terminal");
    options->escalate = read_flag(L, index, "escalate");
    options->told = read_flag(L, index, "told");
    options->signalled = read_flag(L, index, "signalled");
    options->fence = read_flag(L, index, "fence");
    options->decides = read_flag(L, index, "decides");
    if (options->argv == NULL || options->argv[0] == NULL) {
        child_options_free(options);
        return NULL;
    }
    return options;
}
