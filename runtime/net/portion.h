/**
 * How much OpenSSL reads in one go.
 *
 * It reads on for as long as messages come that it only takes note of: "hello request" in a
 * handshake, which needs no certificate, or session tickets after it. A server may send them
 * without end and faster than they are read, and whoever has called OpenSSL would stand still. With
 * a bound it says that it waits for more, and the socket stays readable.
 */
#ifndef CROWN_NET_PORTION_H
#define CROWN_NET_PORTION_H

struct ssl_st;
struct ssl_ctx_st;

/** Bounds all connections that a context opens from now on. They are for the loop's thread only.
 * @param context where OpenSSL is not loaded yet nothing happens. */
void portion_bound_context(struct ssl_ctx_st *context);

/** Bounds a connection that is open. NULL: nothing happens. */
void portion_bound(const struct ssl_st *ssl);

/** Call it before OpenSSL, or a library that uses it, may read: the next portion begins. */
void portion_begin(void);

#endif
