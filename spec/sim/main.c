/* simulate [--seeds N] [--first N] [--seed N] [--trace] [--mutate NAME] [--jobs N]: runs seeds, or
 * one with its trace. --mutations prints the names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

struct run {
    uint64_t first, seeds;
    unsigned jobs;
    enum mutation mutation;
    bool trace;
};

static enum mutation find_mutation(const char *name)
{
    enum mutation mutation = mutation_find(name);
    if (mutation != MUTATION_COUNT)
        return mutation;
    (void)fprintf(stderr, "simulate: there is no mutation '%s'\n", name);
    exit(2);
}

/* Every job-th seed from `first` on. @return 0, or 1 at the first failure. */
static int run_share(const struct run *run, unsigned job)
{
    uint64_t steps = 0, terms = 0;
    for (uint64_t i = job; i < run->seeds; i += run->jobs) {
        uint64_t seed = run->first + i;
        struct world_result result = world_run(seed, run->mutation, run->trace);
        steps += result.steps;
        terms += result.terms;
        if (!result.failed)
            continue;
        printf("seed %llu: %s\n  again: build/simulate --seed %llu --trace%s%s\n",
               (unsigned long long)seed, result.what, (unsigned long long)seed,
               run->mutation != MUTATE_NONE ? " --mutate " : "",
               run->mutation != MUTATE_NONE ? mutation_name(run->mutation) : "");
        return 1;
    }
    printf("job %u: %llu steps, %llu terms\n", job, (unsigned long long)steps,
           (unsigned long long)terms);
    return 0;
}

static int run_jobs(const struct run *run)
{
    int failed = 0, status;
    for (unsigned job = 0; job < run->jobs; job++) {
        (void)fflush(stdout);
        pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0)
            exit(run_share(run, job));
    }
    while (wait(&status) > 0)
        failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return failed;
}

int main(int argc, char **argv)
{
    struct run run = {.first = 1, .seeds = 20000, .jobs = 2};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (strcmp(argv[i], "--trace") == 0) {
            run.trace = true;
            continue;
        }
        if (strcmp(argv[i], "--mutations") == 0) {
            for (int name = MUTATE_NONE + 1; name < MUTATION_COUNT; name++)
                printf("%s\n", mutation_name((enum mutation)name));
            return 0;
        }
        i++;
        if (strcmp(argv[i - 1], "--seeds") == 0)
            run.seeds = strtoull(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--first") == 0)
            run.first = strtoull(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--jobs") == 0)
            run.jobs = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--mutate") == 0)
            run.mutation = find_mutation(value);
        else if (strcmp(argv[i - 1], "--seed") == 0) {
            run.first = strtoull(value, NULL, 10);
            run.seeds = run.jobs = 1;
        } else {
            (void)fprintf(stderr, "simulate: unknown option '%s'\n", argv[i - 1]);
            return 2;
        }
    }
    if (run_jobs(&run) != 0)
        return 1;
    printf("%llu seeds passed\n", (unsigned long long)run.seeds);
    return 0;
}
