/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "privsep/lister.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "privsep/child.h"
#include "wire/packet.h"

#define AT_ONCE 65536 /* bytes */

/* ---- the process ---- */

static bool copy(int from, int to)
{
    static char bytes[AT_ONCE];
    off_t at = 0;
    ssize_t n;

    while ((n = pread(from, bytes, sizeof(bytes), at)) > 0) {
        if (!fp_write_all(to, bytes, (size_t)n))
            return false;
        at += n;
    }
    return n == 0;
}

/* The next daemon expects this mode and owner of the file (warm.c).  A file that a killed process left is
 * removed; O_EXCL follows no link and opens nothing that others made. */
static bool replace(const char *file, int list)
{
    char name[PATH_MAX];
    bool done;
    int fd, why;

    if (snprintf(name, sizeof(name), "%s.new", file) >= (int)sizeof(name)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (unlink(name) == -1 && errno != ENOENT)
        return false;
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    done = fd != -1 && copy(list, fd) && rename(name, file) == 0;
    why = errno;
    if (fd != -1 && !done)
        unlink(name);
    fp_close(&fd);
    errno = why;
    return done;
}

static bool do_one(const char *file, int sock)
{
    uint8_t nothing;
    size_t len;
    int32_t why;
    int list;

    if (fp_recv_packet(sock, &nothing, sizeof(nothing), &len, &list) != FP_OK)
        return false;
    why = replace(file, list) ? 0 : errno;
    fp_close(&list);
    return fp_send_packet(sock, &why, sizeof(why), -1) == FP_OK;
}

int fp_lister_start(struct fp_lister *l, const char *file, bool lent_log)
{
    const pid_t pid = fp_child_fork(&l->sock);

    if (pid != 0)
        return pid == -1 ? -1 : 0;
    fp_child_begin("fp-lister", l->sock, -1, lent_log);
    while (do_one(file, l->sock))
        ;
    _exit(0);
}

/* ---- in the daemon ---- */

void fp_lister_stop(struct fp_lister *l)
{
    if (l->unheard == 0)
        fp_hang_up(&l->sock);
    else
        fp_close(&l->sock);
}

int fp_lister_write(struct fp_lister *l, int fd)
{
    const uint8_t nothing = 0;
    const fp_status st = fp_send_packet(l->sock, &nothing, sizeof(nothing), fd);

    if (st == FP_CLOSED)
        errno = EPIPE;
    l->unheard += st == FP_OK;
    return st == FP_OK ? 0 : -1;
}

int fp_lister_hear(struct fp_lister *l, int ms)
{
    struct pollfd p = { .fd = l->sock, .events = POLLIN };
    int32_t why = ETIMEDOUT;
    size_t len;

    if (poll(&p, 1, ms) > 0) {
        if (fp_recv_packet(l->sock, &why, sizeof(why), &len, NULL) != FP_OK || len != sizeof(why))
            why = EPIPE;
        l->unheard -= l->unheard > 0;
    }
    errno = why;
    return why == 0 ? 0 : -1;
}
