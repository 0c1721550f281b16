/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "look.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/answer.h"
#include "common/answer_table.h"
#include "common/client.h"
#include "common/clock.h"
#include "common/lease_table.h"
#include "common/packet.h"
#include "common/wire.h"
#include "look_counts.h"
#include "open_path.h"
#include "shared.h"

static unsigned admission;

void fp_look_init(unsigned looks)
{
    admission = looks;
}

/* ---- the last component ---- */

/*
 * Opens the directory by its path, and only if it is the one in the step. A switch of a link or a rename shows in the
 * path before it is reported, and the path then leads to a directory with other access files or owners. -1: not in
 * memory, or another.
 */
static int open_directory(const char *path, const struct fp_step *step)
{
    int fd = fp_open_from_memory(path, O_PATH | O_DIRECTORY);

    if (fd != -1 && !fp_is_directory_of(fd, step))
        fp_close(&fd);
    return fd;
}

static bool is_file_of(const struct stat *st, uint64_t dev)
{
    return S_ISREG(st->st_mode) && st->st_dev == dev;
}

/* Looks at the regular file of that name, on the file system of that number, and opens it if that is wanted.
 * What is no file, such as a FIFO, is not opened, since that may have effects. */
static fp_status look_in(int dir, const char *name, uint64_t dev, bool open, struct fp_answer *a,
                         struct stat *st_r)
{
    ino_t ino;

    if (fstatat(dir, name, st_r, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == -1)
        return fp_status_from_errno(errno);
    if (!is_file_of(st_r, dev))
        return FP_FAILED;
    if (!open)
        return FP_OK;
    ino = st_r->st_ino;
    a->fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    if (a->fd == -1)
        return fp_status_from_errno(errno);
    if (fstat(a->fd, st_r) == 0 && is_file_of(st_r, dev) && st_r->st_ino == ino)
        return FP_OK;
    fp_close(&a->fd);
    return FP_FAILED;
}

/* The same by a path whose directory is that of the last step. */
static fp_status look_in_step(const char *path, size_t len, bool open, struct fp_answer *a,
                              struct stat *st_r)
{
    const struct fp_step *above = &a->steps[a->n_steps - 1];
    const uint64_t dev = fp_step_target(above)->dev;
    char name[FP_MAX_PATH + 1], *slash;
    fp_status status;
    int dir;

    memcpy(name, path, len);
    name[len] = '\0';
    slash = strrchr(name, '/');
    *slash = '\0';
    dir = open_directory(slash > name ? name : "/", above);
    if (dir == -1)
        return FP_FAILED;
    status = look_in(dir, slash + 1, dev, open, a, st_r);
    fp_close(&dir);
    return status;
}

/* Adds the last step, where *a has the steps to its
 * directory. True: it is a regular file, or it is absent. */
static bool look_at_last(const char *path, size_t len, bool open, struct fp_answer *a)
{
    struct fp_step *last = &a->steps[a->n_steps];
    struct stat st;

    last->end = (uint16_t)len;
    last->target_status = FP_OK;
    last->slot = FP_NO_SLOT;
    last->generation = 0;
    last->status = look_in_step(path, len, open, a, &st);
    if (last->status == FP_OK)
        last->self = fp_meta_from_stat(&st);
    return last->status == FP_OK || last->status == FP_ABSENT;
}

/* ---- in the directory ---- */

/* Looks in the directory whose steps the table has. */
static bool look(const struct fp_lease_view *view, const struct fp_look_wish *wish, struct fp_answer *a)
{
    const struct fp_answer_view *answers = fp_lease_view_answers(view);
    const size_t above = fp_path_parent_len(wish->path, wish->len);

    /* After a rest the daemon has to be asked, so that its heart beats again. */
    if (fp_lease_view_is_overdue(view, fp_now_ms()))
        return false;
    if (!fp_answer_view_find_dir(answers, wish->names, wish->path, above, a) || !a->may_look
        || (wish->fresh && !a->above_watched) || a->n_names != wish->names->n
        || !look_at_last(wish->path, wish->len, wish->open, a))
        return false;
    /* So the directory and its access files are as the steps say. */
    if (!fp_shared_holds(view, a)) {
        fp_close(&a->fd);
        return false;
    }
    fp_lease_view_reference(view, a->steps[a->n_steps - 1].slot);
    a->local = a->fd != -1;
    a->n_steps++;
    return true;
}

fp_status fp_look(struct fp_client *client, const struct fp_look_wish *wish, struct fp_answer *a,
                  struct fp_lease_view **view_r)
{
    unsigned looks;
    fp_status st;

    *view_r = NULL;
    if (wish->len == 1 || admission <= 1)
        return FP_ABSENT;
    st = fp_shared_view(client, view_r);
    if (st != FP_OK)
        return st;
    if (!look(*view_r, wish, a)) {
        fp_lease_view_release(view_r);
        return FP_ABSENT;
    }
    looks = fp_look_counts_add(wish->path, wish->len);
    /* This answer is good whether or not the daemon hears of it. */
    if (looks > 0 && looks % admission == 0)
        fp_client_hint(client, wish->path, wish->len, wish->names);
    return FP_OK;
}
