/* Preloaded into a program, it makes the wall clock wrong by as much as the file WRONG_CLOCK says
 * (nanoseconds, an int64), from one call to the next; all other clocks are left alone. libfaketime
 * shifts the timers on CLOCK_BOOTTIME, too. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

static const volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("WRONG_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        _exit(127); /* a clock that is right would prove nothing */
    offset = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);
    if (offset == MAP_FAILED || close(fd) < 0)
        _exit(127);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = now->tv_sec * NS_PER_S + now->tv_nsec + *offset;
        now->tv_sec = ns / NS_PER_S;
        now->tv_nsec = ns % NS_PER_S;
    }
    return (int)result;
}

time_t time(time_t *seconds)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now); /* this clock cannot fail */
    if (seconds != NULL)
        *seconds = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec now = {0};
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *tv = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}
