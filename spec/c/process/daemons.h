/**
 * A child with daemons on the stage: a tree whose end takes more than the death of the child.
 */
#ifndef CROWN_SPEC_DAEMONS_H
#define CROWN_SPEC_DAEMONS_H

#include "base/clock.h"
#include "stage.h"

#define DAEMONS 3u
#define SOON (600 * NS_PER_MS)

/** Starts them, and waits until they tick. */
void daemons_start(void);
/** The same, with deadlines that leave room: child and daemons tick well before the first. */
void daemons_start_with_deadline(void);

/** Neither the runtime nor the supervisor helps from now on. */
void daemons_leave_alone(void);

/** Waits until they are gone, and none has ticked after its deadline. */
void daemons_assert_gone_in_time(void);

#endif
