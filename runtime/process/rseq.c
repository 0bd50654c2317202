#include "process/rseq.h"

#include <sys/syscall.h>
#include <unistd.h>

/* C libraries without this header do not ask for it. */
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>

#define AREA_LEAST 32u /* bytes that the kernel is told of, also where it fills less: rseq(2) */

void rseq_leave(void)
{
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    unsigned size = __rseq_size > AREA_LEAST ? __rseq_size : AREA_LEAST;
    /* Where the library did not ask, or the kernel has none, there is nothing to leave. */
    (void)syscall(SYS_rseq, area, size, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
}
#else
void rseq_leave(void)
{
}
#endif
