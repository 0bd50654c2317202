#include "postgres/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"

struct postgres_turns {
    struct postgres_turns *next;
    struct loop *loop;
    char *url;
    int64_t silence_ns;
    unsigned under_way;
    struct list waiting; /* of postgres_turn */
    struct loop_job job;
};

static struct postgres_turns *all;

static void begin_next(struct loop_job *job)
{
    struct postgres_turns *turns = container_of(job, struct postgres_turns, job);
    struct list_node *first = list_first(&turns->waiting);
    if (first == NULL || turns->under_way >= POSTGRES_TURNS_MOST)
        return;
    list_remove(first);
    turns->under_way++;
    loop_defer(turns->loop, job);
    struct postgres_turn *turn = container_of(first, struct postgres_turn, link);
    turn->begin(turn); /* may end it, and with the last one free all */
}

static struct postgres_turns *find(struct loop *loop, const char *url, int64_t silence_ns)
{
    struct postgres_turns *turns = all;
    while (turns != NULL &&
           (turns->loop != loop || turns->silence_ns != silence_ns || strcmp(turns->url, url) != 0))
        turns = turns->next;
    return turns;
}

static struct postgres_turns *new_turns(struct loop *loop, const char *url, int64_t silence_ns,
                                        struct crown_error *err)
{
    struct postgres_turns *turns = calloc(1, sizeof(*turns));
    if (turns == NULL || (turns->url = strdup(url)) == NULL) {
        free(turns);
        (void)error_set(err, ERROR_MEMORY, "postgres: out of memory");
        return NULL;
    }
    turns->loop = loop;
    turns->silence_ns = silence_ns;
    list_init(&turns->waiting);
    turns->job.run = begin_next;
    turns->next = all;
    all = turns;
    return turns;
}

static void free_turns(struct postgres_turns *turns)
{
    struct postgres_turns **place = &all;
    while (*place != turns)
        place = &(*place)->next;
    *place = turns->next;
    loop_unpost(turns->loop, &turns->job);
    free(turns->url);
    free(turns);
}

int postgres_turn_take(struct postgres_turn *turn, struct loop *loop, const char *url,
                       int64_t silence_ns, struct crown_error *err)
{
    struct postgres_turns *turns = find(loop, url, silence_ns);
    if (turns == NULL && (turns = new_turns(loop, url, silence_ns, err)) == NULL)
        return -1;
    turn->of = turns;
    if (list_empty(&turns->waiting) && turns->under_way < POSTGRES_TURNS_MOST) {
        turns->under_way++;
        return 1;
    }
    list_append(&turns->waiting, &turn->link);
    return 0;
}

void postgres_turn_leave(struct postgres_turn *turn)
{
    struct postgres_turns *turns = turn->of;
    if (turns == NULL)
        return;
    turn->of = NULL;
    if (turn->link.next != NULL)
        list_remove(&turn->link);
    else
        turns->under_way--;
    if (turns->under_way == 0 && list_empty(&turns->waiting))
        free_turns(turns);
    else
        loop_post(turns->loop, &turns->job);
}
