/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/open_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/answer.h"
#include "wire/packet.h"

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
#define RESOLVE_CACHED      0
#define RESOLVE_NO_XDEV     0
#define RESOLVE_NO_SYMLINKS 0

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

#define TRIES 8 /* of a path that leads elsewhere */

int fp_open_from_memory(const char *path, int flags)
{
    return open_resolved(AT_FDCWD, path, flags, RESOLVE_CACHED);
}

int fp_open_child_directory(int dir, const char *name)
{
    return open_resolved(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS);
}

bool fp_is_directory_of(int fd, const struct fp_step *step)
{
    const struct fp_meta *dir = fp_step_target(step);
    struct stat st;

    /* A path that leads elsewhere may lead to a file system that does not answer. */
    return dir != NULL && fp_identify(fd, "", &st) == 0 && st.st_dev == dir->dev && st.st_ino == dir->ino;
}

/* Waits for whoever has a lease on the file, but for no FIFO put in its place. */
static int open_leased(int dir, const char *name)
{
    int file = openat(dir, name, O_PATH | O_CLOEXEC), fd = -1;
    char by_number[FP_FD_NAME];
    struct stat st;

    if (file == -1)
        return -1;
    fp_fd_name(by_number, file);
    if (fstat(file, &st) == 0)
        fd = open(by_number, O_RDONLY | O_NOCTTY | O_CLOEXEC | (S_ISREG(st.st_mode) ? 0 : O_NONBLOCK));
    fp_close(&file);
    return fd;
}

/* A link that is switched there and back leads here again soon. */
static int open_step(const char *path, const struct fp_step *step)
{
    int dir = -1;

    for (unsigned tries = 0; dir == -1 && tries < TRIES; tries++) {
        dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir != -1 && !fp_is_directory_of(dir, step))
            fp_close(&dir);
    }
    return dir;
}

int fp_open_in_step(const char *path, const struct fp_step *step, const char *name)
{
    int dir = open_step(path, step), fd = -1;

    if (dir == -1) {
        errno = ESTALE;
    } else {
        fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd == -1 && errno == EAGAIN)
            fd = open_leased(dir, name);
    }
    fp_close(&dir);
    return fd;
}
