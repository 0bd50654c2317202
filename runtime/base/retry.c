#include "base/retry.h"

void retry_init(struct retry *retry, int64_t first_ns, int64_t most_ns, uint64_t seed)
{
    *retry = (struct retry){.first_ns = first_ns, .most_ns = most_ns, .next_ns = first_ns};
    random_seed(&retry->random, seed);
}

int64_t retry_next_ns(struct retry *retry)
{
    int64_t longest = retry->next_ns;
    retry->next_ns = longest < retry->most_ns / 2 ? longest * 2 : retry->most_ns;
    return longest / 2 + (int64_t)random_below(&retry->random, (uint64_t)longest / 2 + 1);
}

void retry_reset(struct retry *retry)
{
    retry->next_ns = retry->first_ns;
}
