/**
 * What this runtime says of itself to `ps` and to the service manager.
 */
#ifndef CROWN_HOST_ANNOUNCE_H
#define CROWN_HOST_ANNOUNCE_H

struct candidate_env;
struct link;

/** From now on it is told which elections there are, and which of them are led; again, soon, after
 * each change, and once for many.
 * @param what the verb or the app that runs: `ps` shows it behind the program's name. */
void announce_begin(struct candidate_env *env, struct link *link, const char *what);
void announce_change(struct candidate_env *env);
/** Before the loop goes. */
void announce_end(void);

#endif
