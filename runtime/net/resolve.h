/**
 * Names to addresses, by c-ares on the loop: a silent server holds up nobody. /etc/hosts is read;
 * plugins of nsswitch.conf are not. CROWN_DNS_SERVERS ("host:port,host:port") takes the place of
 * resolv.conf's servers.
 */
#ifndef CROWN_NET_RESOLVE_H
#define CROWN_NET_RESOLVE_H

#include <stddef.h>

#include "base/address.h"
#include "base/error.h"
#include "loop/loop.h"

struct resolver;
struct resolution;

/** The most addresses of a name that are tried. */
#define RESOLVE_MAX 16

/** Called once, from the loop; `count` is 0 and `err` filled when there is none. Not called after
 * resolution_cancel. */
typedef void resolved(void *context, const struct address *addresses, size_t count,
                      const struct crown_error *err);

/** @return the version of c-ares that is loaded. */
const char *resolve_library(void);

/** One for a loop, made at its first use. @return NULL with `err`. */
struct resolver *resolver_get(struct loop *loop, struct crown_error *err);
/** Frees the loop's resolver, if it has one; pending resolutions end without a word. */
void resolver_close(struct loop *loop);

/**
 * Looks a name up, both families, in the order in which they should be tried.
 * @param host a name; an address needs no asking, and c-ares 1.18 would ask for it all the same.
 * @param port a number as text.
 * @return the pending resolution, the callee's to cancel until `done` was called; NULL with `err`.
 */
struct resolution *resolve(struct resolver *resolver, const char *host, const char *port,
                           resolved *done, void *context, struct crown_error *err);
void resolution_cancel(struct resolution *resolution);

#endif
