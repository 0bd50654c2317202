#include "pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

bool pages_has(const void *what)
{
    unsigned char resident;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return mincore((void *)((uintptr_t)what & ~(page - 1)), page, &resident) == 0;
}

bool pages_child_has(const void *what)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(pages_has(what));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status != 0;
}

bool pages_can_be_left_out(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(own != MAP_FAILED);
    assert_int_equal(madvise(own, page, MADV_DONTFORK), 0);
    bool copied = pages_child_has(own);
    assert_int_equal(munmap(own, page), 0);
    return !copied;
}
