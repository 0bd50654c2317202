#include "process/stack.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define USED_MOST (256u << 10) /* so deep a start goes at most */
#define OWN_MOST 1024u         /* what this function and the call of the kernel use themselves */

void stack_release(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t end = ((uintptr_t)__builtin_frame_address(0) - OWN_MOST) & ~(page - 1);
    /* Refused where so much was never used; those that were are given back all the same. */
    (void)madvise((void *)(end - USED_MOST), USED_MOST, MADV_DONTNEED);
}
