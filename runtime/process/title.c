#include "process/title.h"

#include <bsd/unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/redact.h"

char **title_take_arguments(int argc, char **argv, char **envp)
{
    static char **copy; /* for the rest of the process's life: nobody frees it */
    copy = calloc((size_t)argc + 1, sizeof(*copy));
    if (copy == NULL)
        return NULL;
    for (int i = 0; i < argc; i++) {
        copy[i] = strdup(argv[i]);
        if (copy[i] == NULL)
            return NULL; /* main ends now */
    }
    setproctitle_init(argc, argv, envp);
    title_set("crown-supervise", "");
    return copy;
}

void title_line(const char *text)
{
    char clean[512];
    (void)snprintf(clean, sizeof(clean), "%s", text);
    redact(clean);
    /* "-": without the program's own name in front (setproctitle(3bsd)). */
    setproctitle("-%s", clean);
}

void title_set(const char *comm, const char *text)
{
    char line[300];
    (void)snprintf(line, sizeof(line), "%s%s%s", comm, text[0] != '\0' ? " " : "", text);
    (void)prctl(PR_SET_NAME, comm); /* cannot fail: the name is valid memory */
    title_line(line);
}
