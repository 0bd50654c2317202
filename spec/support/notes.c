#include "notes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SIZE 16384

static char notes[SIZE];
static size_t length;

void notes_add(const char *format, ...)
{
    const size_t room = sizeof(notes) - length;
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(notes + length, room, format, arguments);
    va_end(arguments);
    assert_true(size >= 0 && (size_t)size + sizeof("\n") <= room);
    length += (size_t)size;
    notes[length++] = '\n';
    notes[length] = '\0';
}

void notes_forget(void)
{
    length = 0;
    notes[0] = '\0';
}

void notes_assert(const char *file, int line, int fd, const char *const *wanted)
{
    char all[SIZE] = "";
    size_t used = 0;
    for (; *wanted != NULL; wanted++)
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s\n", *wanted);
    const int differs = strcmp(notes, all);
    if (differs != 0)
        (void)dprintf(fd, "--- wanted\n%s--- got\n%s---\n", all, notes);
    notes_forget();
    _assert_true(differs == 0, "what it did is as wanted", file, line);
}
