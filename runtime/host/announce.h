/**
 * What this runtime says of itself to `ps` and to the service manager.
 */
#ifndef CROWN_HOST_ANNOUNCE_H
#define CROWN_HOST_ANNOUNCE_H

struct candidate_env;
struct link;

/** What `ps` says this runtime serves. */
void announce_title(const struct candidate_env *env, struct link *link);

/** Tells the service manager which elections are led here; soon, and once for many changes. */
void announce_status(struct candidate_env *env);

#endif
