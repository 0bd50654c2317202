/**
 * A table of descriptors that is a thread's own. A system call that hangs on a disk keeps its
 * thread alive when the rest of the process was killed, and with the thread all that its table has
 * open: locks stay held, and nobody at the other ends of the process's lines sees that it died. So
 * a thread that may hang has only what it needs.
 */
#ifndef CROWN_BASE_OWN_TABLE_H
#define CROWN_BASE_OWN_TABLE_H

#include <stdbool.h>

/**
 * Gives the calling thread a table with the standard streams and one more descriptor. What the
 * thread opens or closes from then on is its own.
 * @param kept the one more; -1: none.
 * @return false where the kernel gives none, and everything is as before.
 */
bool own_table_take(int kept);

#endif
