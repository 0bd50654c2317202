#include "process/needs.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "process/process_stat.h"
#include "process/signals.h"

const char *needs_ask(const struct needs *needs)
{
    *needs->signals = signals_open_supervisor();
    if (*needs->signals < 0)
        return "make a signalfd";
    *needs->journal = memfd_create("crown-journal", MFD_CLOEXEC);
    if (*needs->journal < 0)
        return "make a memfd";
    if (keepers_init(needs->keepers) < 0)
        return "make room for keepers";
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return "become a child subreaper";
    return process_stat_refused();
}
