/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "warm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/lease_table.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/packet.h"
#include "conf/conf.h"
#include "flashpached.h"
#include "lookup/dispatch.h"
#include "lookup/warm_list.h"

/* ---- at the start ---- */

/* Returns NULL if the file may be used, else why not. */
static const char *refusal(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "it is no regular file";
    if (st->st_uid != geteuid())
        return "it belongs to another user than the daemon's";
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "others than the daemon's user may write to it";
    return st->st_size <= (off_t)FP_WARM_BYTES ? NULL : "it is too large";
}

/* Reads all of the file; NULL with errno. */
static char *read_text(int fd, size_t size)
{
    char *text = fp_memory_take(size + 1);
    size_t len = 0;
    ssize_t n = 1;

    while (text != NULL && len < size && n > 0) {
        n = read(fd, text + len, size - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (text != NULL && len == size)
        return text;
    if (text != NULL && n == 0)
        errno = EIO;
    free(text);
    return NULL;
}

static void ignore(const char *file, unsigned line, const char *why)
{
    fp_log(
        FP_LOG_WARNING, 13,
        "ignoring the list of paths %s: %s (line %u); the cache begins empty, and the next clean end writes "
        "another list in its place",
        file, why, line);
}

static void take_text(struct flashpached *d, char *text, size_t len)
{
    struct fp_warm_reader r = { .text = text, .len = len };
    const char *wrong = fp_warm_check(&r);

    if (wrong == NULL) {
        fp_dispatch_restore(d->dispatch, text, len);
        return;
    }
    ignore(d->conf->warm_file, r.line, wrong);
    free(text);
}

void fp_warm_read(struct flashpached *d)
{
    const char *file = d->conf->warm_file, *why;
    struct stat st;
    char *text;
    int fd;

    if (file[0] == '\0')
        return;
    fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd == -1 && errno == ENOENT)
        return; /* the first start */
    if (fd == -1 || fstat(fd, &st) == -1) {
        fp_log(FP_LOG_WARNING, 13, "cannot read the list of paths %s: %m; the cache begins empty", file);
        fp_close(&fd);
        return;
    }
    why = refusal(&st);
    text = why == NULL ? read_text(fd, (size_t)st.st_size) : NULL;
    if (why != NULL)
        ignore(file, 0, why);
    else if (text == NULL)
        fp_log(FP_LOG_WARNING, 13, "cannot read the list of paths %s: %m; the cache begins empty", file);
    else
        take_text(d, text, (size_t)st.st_size);
    fp_close(&fd);
}

/* ---- at the end ---- */

static bool write_text(int fd, const char *text, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, text, len);

        if (n == -1 && errno != EINTR)
            return false;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

void fp_warm_write(struct flashpached *d)
{
    struct fp_warm_text t = { .text = NULL };
    bool ok;
    int fd;

    if (d->conf->warm_file[0] == '\0')
        return;
    /* The table ends now: children need not wait for the disk. */
    fp_lease_table_retire(d->tables.leases);
    if (!fp_dispatch_list(d->dispatch, &t)) {
        free(t.text);
        return;
    }
    fd = fp_monitor_ask(&d->monitor, FP_MONITOR_PATHS);
    ok =
        fd != -1 && write_text(fd, t.text, t.len) && fp_monitor_ask(&d->monitor, FP_MONITOR_KEEP_PATHS) != -1;
    if (ok)
        fp_log(FP_LOG_INFO, 13, "wrote %zu paths in use to %s", t.paths, d->conf->warm_file);
    else
        fp_log(
            FP_LOG_WARNING, 13,
            "cannot write the list of paths %s: %m; the next daemon begins with an empty cache: let its directory "
            "belong to the daemon's user, or leave warm_file out",
            d->conf->warm_file);
    fp_close(&fd);
    free(t.text);
}
