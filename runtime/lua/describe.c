/* What Lua is doing, for who asks from outside. */
#include <string.h>

#include "lua/vm_state.h"

#define LEVELS_MOST 12

struct text {
    char *at, *end; /* where the NUL will be, at the latest */
};

static void add(struct text *text, const char *words)
{
    while (*words != '\0' && text->at < text->end)
        *text->at++ = *words++;
    *text->at = '\0';
}

static void add_number(struct text *text, int number)
{
    char digits[16];
    char *first = digits + sizeof(digits) - 1;
    *first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    add(text, first);
}

/* "worker.lua:12", or a C function's name. */
static void add_function(struct text *text, const lua_Debug *function)
{
    if (function->currentline > 0) {
        add(text, function->short_src);
        add(text, ":");
        add_number(text, function->currentline);
    } else {
        add(text, function->name != NULL ? function->name : "a C function");
    }
}

void lua_vm_describe(const struct lua_vm *vm, char *buffer, size_t size)
{
    struct text text = {.at = buffer, .end = buffer + size - 1};
    lua_Debug function;
    *text.at = '\0';
    if (vm->running == NULL) {
        add(&text, "outside of Lua");
        return;
    }
    lua_State *L = task_state(vm->running);
    for (int level = 0; level < LEVELS_MOST && lua_getstack(L, level, &function) == 1; level++) {
        if (lua_getinfo(L, "nSl", &function) == 0)
            return;
        if (level > 0)
            add(&text, " < ");
        add_function(&text, &function);
    }
}
