/**
 * A table of descriptors that is a thread's own. A system call that hangs on a disk keeps its
 * thread alive when the rest of the process was killed, and with the thread all that its table has
 * open: locks stay held, and nobody at the other ends of the process's lines sees that it died. So
 * a thread that may hang has only what it needs.
 */
#ifndef CROWN_BASE_OWN_TABLE_H
#define CROWN_BASE_OWN_TABLE_H

/**
 * Gives the calling thread a table with the standard streams and one more descriptor. What the
 * thread opens or closes from then on is its own.
 * @param kept the one more, as the process's first thread has it open; -1: none.
 * @return what `kept` is called in it, or STDERR_FILENO where there is none; -1 where the kernel
 * gives no table, and everything is as before.
 */
int own_table_take(int kept);

#endif
