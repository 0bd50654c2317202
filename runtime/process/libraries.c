#include "process/libraries.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* By name: whatever else is loaded (LD_PRELOAD, sanitizers) may be called by everybody. */
static bool is_for_the_runtime(const char *path)
{
    static const char *const names[] = {"/libluajit-", "/liblua5.1-cjson.", "/libev.",
                                        "/libcares.",  "/libhiredis.",      "/libm.",
                                        "/libmd.",     "/libgcc_s."};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strstr(path, names[i]) != NULL)
            return true;
    return false;
}

static int hand_on(struct dl_phdr_info *library, size_t size, void *context)
{
    const int *advice = context;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)size;
    if (!is_for_the_runtime(library->dlpi_name))
        return 0;
    for (unsigned i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type != PT_LOAD)
            continue;
        size_t begin = (library->dlpi_addr + part->p_vaddr) & ~(page - 1);
        size_t end = library->dlpi_addr + part->p_vaddr + part->p_memsz;
        (void)madvise((void *)begin, end - begin, *advice); /* whole pages; refused: they have it */
    }
    return 0;
}

void libraries_hand_on(bool all)
{
    int advice = all ? MADV_DOFORK : MADV_DONTFORK;
    (void)dl_iterate_phdr(hand_on, &advice);
}
