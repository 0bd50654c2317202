/**
 * What came to the supervisor because its keeper, or the runtime that forked it, died: it must die
 * too.
 */
#ifndef CROWN_PROCESS_ORPHANS_H
#define CROWN_PROCESS_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

#include "process/keepers.h"
#include "process/rounds.h"

/**
 * One round of SIGKILL to every child of this process that is neither the runtime nor a keeper;
 * what is below it comes here in its turn. A warden that has children is left alone: it kills its
 * tree by itself, also when this process dies.
 * @param init this is process 1, to which strangers' orphans come as well: then only wardens,
 * and those with CROWN_ELECTION in their environment, which every child of ours has, are killed.
 * @param refused who is there though SIGKILL was refused; left alone when there is nobody.
 * @return how many are still there, killed or not; call again until 0.
 */
unsigned orphans_kill(pid_t runtime, const struct keepers *keepers, bool init,
                      struct rounds_refused *refused);

#endif
