/**
 * Answers of name servers that came when nobody waited for them any more.
 *
 * A client gives a server so much time, and then asks anew. Where its name servers take longer,
 * since they are far away or the first one of them is dead, each answer would come too late. So it
 * is kept for the next one who asks.
 */
#ifndef CROWN_NET_LATE_H
#define CROWN_NET_LATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "net/resolve.h"

/** Keeps an answer, in place of the oldest.
 * @param addresses so many; with the port that was asked for. */
void late_keep(const char *host, const struct address *addresses, size_t count, int64_t now_ns);

/** @param addresses room for the addresses of a name.
 * @return how many there are; 0: none is known that is new enough. */
size_t late_find(const char *host, unsigned port, struct address addresses[RESOLVE_MAX],
                 int64_t now_ns);

#endif
