/* exhaust [--faults N] [--delay N] [--patience N] [--requests N] [--states N] [--seconds N]
 * [--mutate NAME]: goes through every state of two candidates, with and without monitor_leader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"

struct options {
    struct model_bounds bounds;
    uint64_t states;
    unsigned seconds;
};

static bool read_option(struct options *options, const char *name, const char *value)
{
    unsigned long long number = strtoull(value, NULL, 10);
    if (strcmp(name, "--faults") == 0)
        options->bounds.faults = (unsigned)number;
    else if (strcmp(name, "--delay") == 0)
        options->bounds.delay = (unsigned)number;
    else if (strcmp(name, "--patience") == 0)
        options->bounds.patience = (unsigned)number;
    else if (strcmp(name, "--requests") == 0)
        options->bounds.requests = (unsigned)number;
    else if (strcmp(name, "--states") == 0)
        options->states = number;
    else if (strcmp(name, "--seconds") == 0)
        options->seconds = (unsigned)number;
    else if (strcmp(name, "--mutate") == 0)
        options->bounds.mutation = mutation_find(value);
    else
        return false;
    return options->bounds.mutation != MUTATION_COUNT && options->bounds.requests > 0 &&
           options->bounds.requests <= MODEL_REQUESTS;
}

/* @return false at a breach. */
static bool run(const struct options *options)
{
    struct explore_result result =
        explore(&options->bounds, options->states, options->seconds, stdout);
    printf("%u faults, messages up to %u steps, calls up to %u, %s: %llu states, %llu moves, %u "
           "deep%s%s%s\n",
           options->bounds.faults, options->bounds.delay, options->bounds.patience,
           options->bounds.monitor_leader ? "monitoring" : "told by messages",
           (unsigned long long)result.states, (unsigned long long)result.moves, result.depth,
           result.complete ? "" : ", not all of them", result.broken != NULL ? ": " : "",
           result.broken != NULL ? result.broken : "");
    return result.broken == NULL;
}

int main(int argc, char **argv)
{
    struct options options = {.bounds = {.faults = 1, .delay = 1, .patience = 3, .requests = 2},
                              .states = UINT64_C(150000000),
                              .seconds = 600};
    for (int i = 1; i + 1 < argc; i += 2)
        if (!read_option(&options, argv[i], argv[i + 1])) {
            (void)fprintf(stderr, "exhaust: what is %s %s?\n", argv[i], argv[i + 1]);
            return 2;
        }
    for (int monitor = 1; monitor >= 0; monitor--) {
        options.bounds.monitor_leader = monitor == 1;
        if (!run(&options))
            return 1;
    }
    return 0;
}
