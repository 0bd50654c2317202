#include "postgres/waiting.h"

#include "base/clock.h"
#include "base/container.h"

static void patience_over(struct loop_deadline *patience)
{
    struct postgres_waiting *waiting = container_of(patience, struct postgres_waiting, patience);
    const bool is_known = waiting->cause->code != ERROR_NONE;
    const struct crown_error err = is_known ? *waiting->cause : *waiting->unanswered;
    postgres_waiting_fail(waiting, &err);
}

void postgres_waiting_init(struct postgres_waiting *waiting, struct loop *loop,
                           const struct crown_error *cause, const struct crown_error *unanswered)
{
    *waiting = (struct postgres_waiting){.loop = loop,
                                         .patience = {.fire = patience_over},
                                         .cause = cause,
                                         .unanswered = unanswered};
    list_init(&waiting->requests);
}

bool postgres_waiting_empty(const struct postgres_waiting *waiting)
{
    return list_empty(&waiting->requests);
}

void postgres_waiting_add(struct postgres_waiting *waiting, struct postgres_request *request)
{
    int64_t at = clock_add_ns(loop_now(waiting->loop), request->timeout_ns);
    if (list_empty(&waiting->requests) || at < waiting->patience.node.key ||
        !loop_at_armed(&waiting->patience))
        loop_at(waiting->loop, &waiting->patience, at);
    list_append(&waiting->requests, &request->link);
}

struct postgres_request *postgres_waiting_take(struct postgres_waiting *waiting)
{
    struct list_node *node = list_first(&waiting->requests);
    if (node == NULL)
        return NULL;
    list_remove(node);
    return container_of(node, struct postgres_request, link);
}

void postgres_waiting_fail(struct postgres_waiting *waiting, const struct crown_error *err)
{
    struct postgres_request *request;
    while ((request = postgres_waiting_take(waiting)) != NULL)
        postgres_request_fail(request, err);
}

void postgres_waiting_end(struct postgres_waiting *waiting)
{
    struct crown_error err;
    (void)error_set(&err, ERROR_CLOSED, "closed");
    postgres_waiting_fail(waiting, &err);
    loop_at_cancel(waiting->loop, &waiting->patience);
}
