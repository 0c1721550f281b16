/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/answer.h"
#include "common/answer_table.h"
#include "common/client.h"
#include "common/clock.h"
#include "common/lease_table.h"
#include "common/packet.h"

#ifdef SYS_openat2
#include <linux/openat2.h>
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif
#endif

static bool in_use;

void fp_shared_init(bool use)
{
    in_use = use;
}

/* Call it after copying the answer: if it holds now, the copy is of a valid answer. */
static bool holds(const struct fp_lease_view *view, const struct fp_answer *a)
{
    const uint64_t now = fp_now_ms();

    if (!fp_lease_view_is_current(view, now))
        return false;
    for (unsigned i = a->n_steps; i-- > 0;) {
        if (!fp_lease_view_is_valid(view, a->steps[i].slot, a->steps[i].generation, now))
            return false;
    }
    return true;
}

/* ---- files ---- */

static bool is_time(const struct fp_time *t, const struct timespec *ts)
{
    return t->sec == ts->tv_sec && t->nsec == (uint32_t)ts->tv_nsec;
}

static bool is_file(int fd, const struct fp_meta *m)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == m->dev && st.st_ino == m->ino
           && (uint64_t)st.st_size == m->size && is_time(&m->mtime, &st.st_mtim)
           && is_time(&m->ctime, &st.st_ctim);
}

static int open_from_memory(const char *name)
{
#ifdef SYS_openat2
    const struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                                  .resolve = RESOLVE_CACHED };

    return (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));
#else
    (void)name;
    return -1;
#endif
}

/*
 * Opens the file by its name, only from the kernel's memory (RESOLVE_CACHED, since Linux 5.12). A
 * name on the way may lie on a file system that does not answer. False: it opened nothing, or
 * another file.
 */
static bool open_by_name(const char *path, size_t len, struct fp_answer *a)
{
    char name[FP_MAX_PATH + 1];

    memcpy(name, path, len);
    name[len] = '\0';
    a->fd = open_from_memory(name);
    if (a->fd == -1 || is_file(a->fd, fp_step_target(&a->steps[a->n_steps - 1])))
        return a->fd != -1;
    fp_close(&a->fd);
    return false;
}

/* A file whose content is in memory needs no descriptor. The daemon opens a file that other
 * machines, or a server in user space, may change. */
static bool have_file(const struct fp_lease_view *view, const char *path, size_t len, struct fp_answer *a)
{
    if (!a->readable || a->content)
        return true;
    if (!a->local || !open_by_name(path, len, a))
        return false;
    /* The name may have led elsewhere for a moment. */
    if (holds(view, a))
        return true;
    fp_close(&a->fd);
    return false;
}

/* Marks the last step and the one above: their records get a second chance. */
static void mark(const struct fp_lease_view *view, const struct fp_answer *a)
{
    const unsigned n = a->n_steps;

    fp_lease_view_reference(view, a->steps[n - 1].slot);
    if (n > 1)
        fp_lease_view_reference(view, a->steps[n - 2].slot);
}

fp_status fp_shared_find(struct fp_client *client, const struct fp_names *names, const char *path, size_t len,
                         bool fresh, struct fp_answer *a, struct fp_lease_view **view_r)
{
    fp_status st;

    *view_r = NULL;
    fp_answer_init(a, FP_FAILED);
    if (!in_use)
        return FP_ABSENT;
    st = fp_client_view(client, view_r);
    if (st != FP_OK)
        return st;
    if (*view_r == NULL)
        return FP_ABSENT;
    if (fp_answer_view_find(fp_lease_view_answers(*view_r), names, path, len, a) && (!fresh || a->watched)
        && holds(*view_r, a) && have_file(*view_r, path, len, a)) {
        mark(*view_r, a);
        return FP_OK;
    }
    fp_lease_view_release(view_r);
    return FP_ABSENT;
}
