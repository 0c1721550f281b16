/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

static uint64_t walk_began_us;
static struct fp_effort effort;

static uint32_t since(uint64_t began_us)
{
    uint64_t us = fp_now_us() - began_us;

    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

void fp_calls_begin(void)
{
    walk_began_us = fp_now_us();
    effort = (struct fp_effort){ .call = FP_CALL_NONE };
}

struct fp_effort fp_calls_end(void)
{
    effort.us = since(walk_began_us);
    return effort;
}

void fp_call_note(enum fp_call call, uint64_t began_us)
{
    int saved = errno;
    uint32_t us = since(began_us);

    effort.calls++;
    if (effort.call == FP_CALL_NONE || us > effort.longest_us) {
        effort.longest_us = us;
        effort.call = call;
    }
    errno = saved;
}

int fp_call_openat(int dir, const char *name, int flags)
{
    uint64_t began_us = fp_now_us();
    int fd = openat(dir, name, flags);

    fp_call_note(FP_CALL_OPEN, began_us);
    return fd;
}

int fp_call_statx(int dir, const char *name, int flags, unsigned mask, struct statx *st)
{
    uint64_t began_us = fp_now_us();
    int rc = statx(dir, name, flags, mask, st);

    fp_call_note(FP_CALL_STAT, began_us);
    if ((flags & AT_STATX_DONT_SYNC) != 0)
        effort.calls--; /* the kernel's own knowledge will do */
    return rc;
}

ssize_t fp_call_readlinkat(int dir, const char *name, char *text, size_t size)
{
    uint64_t began_us = fp_now_us();
    ssize_t n = readlinkat(dir, name, text, size);

    fp_call_note(FP_CALL_READLINK, began_us);
    return n;
}

ssize_t fp_call_pread(int fd, void *buf, size_t n, off_t at)
{
    uint64_t began_us = fp_now_us();
    ssize_t got = pread(fd, buf, n, at);

    fp_call_note(FP_CALL_READ, began_us);
    return got;
}
