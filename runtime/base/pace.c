#include "base/pace.h"

void pace_init(struct pace *pace, int64_t first_ns, int64_t most_ns, uint64_t seed)
{
    *pace = (struct pace){.first_ns = first_ns, .most_ns = most_ns, .next_ns = first_ns};
    random_seed(&pace->random, seed);
}

int64_t pace_next_ns(struct pace *pace)
{
    int64_t longest = pace->next_ns;
    pace->next_ns = longest < pace->most_ns / 2 ? longest * 2 : pace->most_ns;
    return longest / 2 + (int64_t)random_below(&pace->random, (uint64_t)longest / 2 + 1);
}

void pace_reset(struct pace *pace)
{
    pace->next_ns = pace->first_ns;
}
