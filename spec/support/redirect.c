/* Preloaded into a program, it leads its connections to some ports of 127.0.0.1 to others: PORTS
 * names them, "12001:12002 12003:12004". So there can be a way to a server that tells its address
 * itself, as Sentinels and the nodes of a Redis Cluster do. */
#undef _GNU_SOURCE /* whose connect takes a union of pointers */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 32

static struct {
    unsigned from, to;
} ports[MOST];
static size_t count;

__attribute__((constructor)) static void read_ports(void)
{
    const char *text = getenv("PORTS");
    if (text == NULL)
        _exit(127); /* a way past the proxies would prove nothing */
    int length = 0;
    while (count < MOST &&
           sscanf(text, "%u:%u%n", &ports[count].from, &ports[count].to, &length) == 2) {
        text += length;
        count++;
    }
    if (*text != '\0')
        _exit(127);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_in other;
    if (size == sizeof(other) && address->sa_family == AF_INET) {
        other = *(const struct sockaddr_in *)(const void *)address;
        for (size_t i = 0; i < count && other.sin_addr.s_addr == htonl(INADDR_LOOPBACK); i++) {
            if (ports[i].from == ntohs(other.sin_port)) {
                other.sin_port = htons((in_port_t)ports[i].to);
                return (int)syscall(SYS_connect, fd, &other, sizeof(other));
            }
        }
    }
    return (int)syscall(SYS_connect, fd, address, size);
}
