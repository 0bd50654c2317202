/**
 * What `ps` shows: the process name (comm) and the command line. The original command line may hold
 * a password in an oracle's URL, so it is replaced first thing.
 */
#ifndef CROWN_PROCESS_TITLE_H
#define CROWN_PROCESS_TITLE_H

/**
 * Once in main, before anything else: from here on `ps` no longer shows what was typed.
 * @return the arguments, copied, for the rest of the process's life; NULL when memory is out.
 */
char **title_take_arguments(int argc, char **argv, char **envp);

/**
 * @param comm at most 15 characters: "crown-runtime".
 * @param text what follows the name on the command line; may be "".
 */
void title_set(const char *comm, const char *text);

/** The command line alone; the process name stays. */
void title_line(const char *text);

#endif
