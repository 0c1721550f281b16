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

int fp_open_from_memory(const char *path, int flags)
{
    const struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC, .resolve = RESOLVE_CACHED };

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}
#else
int fp_open_from_memory(const char *path, int flags)
{
    (void)path;
    (void)flags;
    errno = ENOSYS;
    return -1;
}
#endif
