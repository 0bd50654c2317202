/**
 * What the parts of the stage share: the test's side (stage.c), what it looks for among processes
 * (stage_look.c), the child (stage_child.c) and the runtime (stage_runtime.c).
 */
#ifndef CROWN_SPEC_STAGE_PARTS_H
#define CROWN_SPEC_STAGE_PARTS_H

#include "stage.h"

#include "base/clock.h"

#define STAGE_PERIOD_NS (5 * NS_PER_MS) /* of a child's ticks */
#define STAGE_LOOK_NS (2 * NS_PER_MS)   /* how often somebody looks */

void stage_pause(int64_t ns);

/** The program, started as a child: plays `mode` into the FIFO until it is killed. */
void stage_play_child(const char *mode, const char *fifo);

/** The runtime, under the supervisor: as supervisor_config.run_runtime. */
int stage_play_runtime(int line, int journal, void *context);

#endif
