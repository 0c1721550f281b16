/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "open_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_openat2
#include <linux/openat2.h>
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

static int open_resolved(int dir, const char *path, int flags, unsigned resolve)
{
    const struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC, .resolve = resolve };

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}
#else
#define RESOLVE_NO_XDEV 0
#define RESOLVE_CACHED  0

static int open_resolved(int dir, const char *path, int flags, unsigned resolve)
{
    (void)dir;
    (void)path;
    (void)flags;
    (void)resolve;
    errno = ENOSYS;
    return -1;
}
#endif

int fp_open_from_memory(const char *path, int flags)
{
    return open_resolved(AT_FDCWD, path, flags, RESOLVE_CACHED);
}

int fp_open_within_mount(int dir, const char *path, int flags)
{
    return open_resolved(dir, path, flags, RESOLVE_NO_XDEV);
}
