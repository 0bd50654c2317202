#include "base/own_table.h"

#include <sys/syscall.h>
#include <unistd.h>

#define CLOSE_UNSHARED 2u /* CLOSE_RANGE_UNSHARE: musl has neither the name nor the function */

bool own_table_take(int kept)
{
    const int first = STDERR_FILENO + 1;
    /* unshare(2), which gives a table too, is refused in many containers. */
    if (syscall(SYS_close_range, kept < first ? first : kept + 1, ~0u, CLOSE_UNSHARED) < 0)
        return false;
    if (kept > first) /* cannot fail: the table is there */
        (void)syscall(SYS_close_range, first, kept - 1, 0u);
    return true;
}
