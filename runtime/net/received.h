/**
 * How much a connection has brought, whoever has read it.
 */
#ifndef CROWN_NET_RECEIVED_H
#define CROWN_NET_RECEIVED_H

#include <stdint.h>

/**
 * Looks, right before what has come is read.
 * @param before what the last look returned; 0 at first.
 * @param fd of TCP: exact; of a UNIX socket: without what comes while it is being read.
 * @return how many bytes have come altogether.
 */
uint64_t received_look(uint64_t before, int fd);

#endif
