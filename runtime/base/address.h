/** Socket addresses and their text. */
#ifndef CROWN_BASE_ADDRESS_H
#define CROWN_BASE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
};

/** Room for any address's text. */
#define ADDRESS_TEXT_SIZE 160

/** @return whether the text is an IP address: no name to look up. */
bool address_is_number(const char *host);

/**
 * Makes the address that a text names.
 * @param host an IP address, or "unix:/path".
 * @param port ignored for UNIX sockets.
 * @return 0, or -1 when it is neither, or the path is too long.
 */
int address_parse(struct address *address, const char *host, unsigned port);

/** As bind(2), connect(2) and their like take it. */
const struct sockaddr *address_plain(const struct address *address);
/** As getsockname(2) and its like fill it; set `size` to what there is room for before. */
struct sockaddr *address_fill(struct address *address);

/** @return the port, 0 for UNIX sockets. */
unsigned address_port(const struct address *address);

/** Writes "192.0.2.1:5432", "[2001:db8::1]:5432", "unix:/path" or "unix:"; cut to fit. */
void address_text(const struct address *address, char *text, size_t size);

/** Writes an IP address without its port: "192.0.2.1", "2001:db8::1"; "" for any other. */
void address_text_host(const struct address *address, char *text, size_t size);

#endif
