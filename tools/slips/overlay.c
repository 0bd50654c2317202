/* Gives a program that is built already another text of one of its Lua modules, so that a slip in
 * Lua costs no build. Linked into the programs of a copy of the tree. SLIP_FILE holds the module's
 * file, the size of its source, each with a line feed, the source, and its bytecode. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lua/embedded.h"

/* The simulations have no modules. */
extern const struct embedded_module embedded_modules[] __attribute__((weak));

/* The table lies in pages that nobody may write to. */
static void write_to(const struct embedded_module *module, struct embedded_module content)
{
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)module & ~(size - 1);
    size_t length = (uintptr_t)(module + 1) - first;
    if (mprotect((void *)first, length, PROT_READ | PROT_WRITE) < 0)
        abort();
    memcpy((void *)module, &content, sizeof(content));
    (void)mprotect((void *)first, length, PROT_READ);
}

static void put(char *text, size_t size)
{
    char *file = strsep(&text, "\n");
    size_t source_size = strtoul(strsep(&text, "\n"), NULL, 10);
    size_t code_size = size - (size_t)(text - file) - source_size;
    for (const struct embedded_module *module = embedded_modules; module->name != NULL; module++)
        if (strcmp(module->file, file) == 0)
            write_to(module, (struct embedded_module){module->name, module->file, text, source_size,
                                                      text + source_size, code_size});
}

static void __attribute__((constructor)) overlay(void)
{
    struct stat status;
    int fd = embedded_modules != NULL ? open(SLIP_FILE, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && status.st_size > 0) {
        char *text = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (text != MAP_FAILED)
            put(text, (size_t)status.st_size);
    }
    (void)close(fd);
}
