#include "process/requests.h"

#include <signal.h>

enum request requests_signal(struct requests *requests, int signal, int64_t now_ns)
{
    if (signal != SIGINT)
        return REQUEST_STOP;
    if (!requests->interrupted)
        requests->interrupted_ns = now_ns;
    requests->interrupted = true;
    return now_ns - requests->interrupted_ns >= REQUESTS_SAME_NS ? REQUEST_END : REQUEST_STOP;
}
