/** A host that has slept, as a time namespace shows it (time_namespaces(7)): its clocks that stand
 * still meanwhile are behind. */
#ifndef CROWN_SPEC_SLEPT_H
#define CROWN_SPEC_SLEPT_H

#include <stdbool.h>
#include <stdint.h>

/** For this process, which must have one thread, and what it starts. @return false where that is
 * not allowed. */
bool slept_for(int64_t seconds);

#endif
