/**
 * What this program needs of its user's limits (getrlimit(2)) before anything else.
 */
#ifndef CROWN_PROCESS_LIMITS_H
#define CROWN_PROCESS_LIMITS_H

/**
 * From now on a write beyond RLIMIT_FSIZE fails with EFBIG, as on a full disk, and kills nobody. A
 * child gets the signal's default again (spawn.c).
 * @return 0; -1 where a limit is too low to go on, which was said on standard error.
 */
int limits_meet(void);

#endif
