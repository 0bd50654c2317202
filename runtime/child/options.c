#include "child/options.h"

#include <lauxlib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void strings_free(char **strings)
{
    for (char **s = strings; s != NULL && *s != NULL; s++)
        free(*s);
    free(strings);
}

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

/* A list of strings as a NULL-terminated array; NULL where the field is no table or memory is out.
 */
static char **read_list(lua_State *L, int index, const char *key)
{
    char **list = NULL;
    if (push_field(L, index, key) == LUA_TTABLE) {
        size_t count = lua_objlen(L, -1);
        list = calloc(count + 1, sizeof(*list));
        for (size_t i = 0; list != NULL && i < count; i++) {
            lua_rawgeti(L, -1, (int)i + 1);
            const char *text = lua_tostring(L, -1);
            list[i] = text != NULL ? strdup(text) : NULL;
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
    options->cwd = read_string(L, index, "cwd");
    options->set_ids = push_field(L, index, "uid") == LUA_TNUMBER;
    lua_pop(L, 1);
    options->uid = (uid_t)read_number(L, index, "uid", (lua_Number)getuid());
    options->gid = (gid_t)read_number(L, index, "gid", (lua_Number)getgid());
    read_groups(L, index, options);
    for (int stream = 0; stream < 3; stream++)
        read_output(L, index, options, stream);
    options->stop_signal = (int)read_number(L, index, "stop_signal", SIGTERM);
    char *isolation = read_string(L, index, "isolation");
    options->isolation = isolation != NULL && strcmp(isolation, "pidns") == 0
                             ? CHILD_ISOLATION_PIDNS
                             : CHILD_ISOLATION_TREE;
    free(isolation);
    options->terminal = read_flag(L, index, "terminal");
    options->escalate = read_flag(L, index, "escalate");
    options->signalled = read_flag(L, index, "signalled");
    options->fence = read_flag(L, index, "fence");
    options->decides = read_flag(L, index, "decides");
    if (options->argv == NULL || options->argv[0] == NULL) {
        child_options_free(options);
        return NULL;
    }
    return options;
}

void child_options_free(struct child_options *options)
{
    if (options == NULL)
        return;
    strings_free(options->argv);
    strings_free(options->env);
    free(options->cwd);
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

void child_environment_free(char **environment)
{
    strings_free(environment);
}
