/**
 * The terminal that is standard input: which process group has its foreground, and who hears of
 * Ctrl-C there.
 */
#ifndef CROWN_PROCESS_TERMINAL_H
#define CROWN_PROCESS_TERMINAL_H

#include <sys/types.h>

/** Gives the foreground to the calling process's group, where the group of its parent has it: one
 * that a shell started in the background stays there. @return 0, or -1 with errno. */
int terminal_take(pid_t parent);

/** Gives the foreground back to a group, where another one has it. The caller blocks SIGTTOU. */
void terminal_give_back(pid_t group);

/** Ctrl-C goes to the foreground group alone, which is the child's. Where that is so, the calling
 * process joins that group, so that it hears of it, however the child takes it.
 * @param signals the caller's signalfd. */
void terminal_listen(int signals, pid_t child);

#endif
