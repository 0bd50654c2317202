/* Linked into every program of `make executed`: notes each place of the program that runs in a file
 * that processes share, so that one that is killed has told, too. */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_BYTES (16U << 20)

void __sanitizer_cov_trace_pc(void);
extern const char __executable_start;

static unsigned char *places; /* by their distance from the program's begin; NULL: nobody asks */

__attribute__((constructor)) static void open_places(void)
{
    char program[PATH_MAX], path[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length <= 0)
        return;
    program[length] = '\0';
    (void)snprintf(path, sizeof(path), "%s%s", EXECUTED_DIRECTORY, strrchr(program, '/'));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    (void)fchmod(fd, 0666); /* another user may come; only who made it may */
    void *all = MAP_FAILED;
    if (ftruncate(fd, MOST_BYTES) == 0)
        all = mmap(NULL, MOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    places = all == MAP_FAILED ? NULL : all;
    (void)close(fd);
}

void __sanitizer_cov_trace_pc(void)
{
    uintptr_t at = (uintptr_t)__builtin_return_address(0) - (uintptr_t)&__executable_start;
    if (places != NULL && at < MOST_BYTES)
        places[at] = 1;
}
