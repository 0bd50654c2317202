/* A child's description that is nonsense is refused, and never read beyond its end. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/child_spec.h"

/* Touches every byte that a keeper would. */
static size_t walk(const struct child_spec *spec)
{
    size_t sum = strlen(spec->label) + (spec->cwd != NULL ? strlen(spec->cwd) : 0);
    for (char *const *word = spec->argv; *word != NULL; word++)
        sum += strlen(*word);
    for (char *const *word = spec->envp; *word != NULL; word++)
        sum += strlen(*word);
    for (size_t i = 0; i < spec->group_count; i++)
        sum += spec->groups[i] & 1;
    if (spec->argv[0] == NULL || spec->hold_count > CHILD_MAX_HOLD)
        abort();
    return sum;
}

/* A description that is right, to begin with. */
static size_t sound(uint8_t *bytes, size_t room)
{
    char *words[] = {"/bin/sh", "-c", "exit 3", NULL};
    const gid_t groups[] = {4, 24};
    const struct child_spec spec = {.argv = words,
                                    .envp = words + 1,
                                    .cwd = "/",
                                    .label = "fuzz",
                                    .groups = groups,
                                    .group_count = 2,
                                    .hold_count = 1,
                                    .stop_signal = 15};
    int fd = child_spec_write(&spec, NULL);
    ssize_t size = fd >= 0 ? pread(fd, bytes, room, 0) : -1;
    if (size <= 0 || close(fd) < 0)
        abort();
    return (size_t)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The input says what is changed in a sound description: four bytes each for where and to what; and
 * how long it is. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t block[1024];
    size_t length = sound(block, sizeof(block));
    for (size_t i = 0; i + 4 <= size; i += 4) {
        size_t where = (size_t)(bytes[i] | bytes[i + 1] << 8) % (length + 1);
        if (where == length)
            length = (size_t)(bytes[i + 2] | bytes[i + 3] << 8) % (length + 1);
        else
            block[where] = bytes[i + 2];
        if (length == 0)
            break;
    }
    struct child_spec spec;
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, block, length) != (ssize_t)length)
        abort();
    if (child_spec_read(fd, &spec, NULL) == 0 && walk(&spec) == SIZE_MAX)
        abort(); /* it never is: but so the walk is made */
    child_spec_release(&spec);
    (void)close(fd);
    return 0;
}
