/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/look.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "question/held.h"
#include "question/open_path.h"
#include "question/shared.h"
#include "setup/admission.h"
#include "shared/answer_table.h"
#include "shared/client.h"
#include "shared/known.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define NEAREST 4 /* directories above a path that may be the known one */

static unsigned admission;

void fp_look_init(unsigned looks)
{
    admission = looks;
}

/* ---- below a known directory ---- */

/*
 * Opens the directory by its path, but only if it is the one in the step. A switched link or a rename shows
 * in the path before it is reported. The path then leads to a directory with other access files or owners.
 * -1: not in memory, or another directory.
 */
static int open_directory(const char *path, const struct fp_step *step)
{
    int fd = fp_open_from_memory(path, O_PATH | O_DIRECTORY);

    if (fd != -1 && !fp_is_directory_of(fd, step))
        fp_close(&fd);
    return fd;
}

/* A component that is looked at. */
struct component {
    int dir; /* it lies in */
    const char *name;
    uint64_t dev; /* the file system that it has to lie on */
};

static bool is_file_of(const struct stat *st, uint64_t dev)
{
    return S_ISREG(st->st_mode) && st->st_dev == dev;
}

/* Looks at the regular file, and opens it if that is wanted. Anything but a file, such as a FIFO, is not
 * opened, since that may have effects. */
static fp_status look_at_file(const struct component *c, bool open, struct fp_answer *a, struct fp_meta *m)
{
    struct stat st;
    ino_t ino;

    if (fstatat(c->dir, c->name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == -1)
        return fp_status_from_errno(errno);
    if (!is_file_of(&st, c->dev))
        return FP_UNKNOWN;
    if (open) {
        ino = st.st_ino;
        a->fd = openat(c->dir, c->name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        if (a->fd == -1)
            return fp_status_from_errno(errno);
        if (fstat(a->fd, &st) == -1 || !is_file_of(&st, c->dev) || st.st_ino != ino) {
            fp_close(&a->fd);
            return FP_UNKNOWN;
        }
    }
    *m = fp_meta_from_stat(&st);
    return FP_OK;
}

/* Opens the directory and looks at it: at nothing that is mounted there, nor through a link. It may have no access
 * file: that is the daemon's to keep. */
static fp_status look_at_directory(const struct component *c, const struct fp_names *names, struct fp_step *step,
                                   int *fd_r)
{
    struct stat st;

    *fd_r = fp_open_child_directory(c->dir, c->name);
    if (*fd_r == -1)
        return errno == ENOENT ? FP_ABSENT : FP_UNKNOWN;
    if (fstat(*fd_r, &st) == -1 || !S_ISDIR(st.st_mode) || st.st_dev != c->dev)
        return FP_UNKNOWN;
    step->self = fp_meta_from_stat(&st);
    for (unsigned i = 0; i < names->n; i++) {
        char name[FP_MAX_NAME + 1];

        memcpy(name, names->list[i].name, names->list[i].len);
        name[names->list[i].len] = '\0';
        if (fstatat(*fd_r, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 || errno != ENOENT)
            return FP_UNKNOWN;
        step->access[i].status = FP_ABSENT;
    }
    return FP_OK;
}

/* Adds a step, and where it is a directory goes there. */
static fp_status take_step(struct component *c, const struct fp_look_wish *wish, size_t end, struct fp_answer *a)
{
    struct fp_step *step = &a->steps[a->n_steps];
    fp_status status = FP_UNKNOWN;
    int fd = -1;

    step->end = (uint16_t)end;
    step->target_status = FP_OK;
    step->slot = FP_NO_SLOT;
    step->generation = 0;
    /* Most of what ends a path is a file. */
    if (end == wish->len)
        status = look_at_file(c, wish->open, a, &step->self);
    if (status == FP_UNKNOWN)
        status = look_at_directory(c, wish->names, step, &fd);
    if (status == FP_OK && fd != -1) {
        fp_close(&c->dir);
        c->dir = fd;
    } else {
        fp_close(&fd);
    }
    step->status = status;
    a->n_steps += status == FP_OK || status == FP_ABSENT;
    return status;
}

/*
 * Walks from the known directory to the path's end, or to the first absent name. The directory's path has
 * above bytes, and *a has the steps to it. False: something else is on the way.
 */
static bool go_down(const struct fp_look_wish *wish, size_t above, struct fp_answer *a)
{
    const struct fp_step *known = &a->steps[a->n_steps - 1];
    struct component c = { .dev = fp_step_target(known)->dev };
    char path[FP_MAX_PATH + 1];
    fp_status status = FP_OK;
    size_t at = above, begin, end;

    memcpy(path, wish->path, above);
    path[above] = '\0';
    c.dir = open_directory(path, known);
    if (c.dir == -1)
        return false;
    for (c.name = path; status == FP_OK && at < wish->len; at = end) {
        begin = at > 1 ? at + 1 : 1;
        end = fp_path_child_len(wish->path, wish->len, at);
        memcpy(path, wish->path + begin, end - begin);
        path[end - begin] = '\0';
        status = a->n_steps < FP_MAX_STEPS ? take_step(&c, wish, end, a) : FP_UNKNOWN;
    }
    fp_close(&c.dir);
    return status == FP_OK || status == FP_ABSENT;
}

/*
 * Finds a directory above the path whose steps the table has. It is one of the nearest, or the document root,
 * since strangers' paths may have many components below it. Returns the length of its path, or 0.
 */
static size_t find_known(const struct fp_answer_view *answers, const struct fp_look_wish *wish, struct fp_answer *a)
{
    size_t above = wish->len;

    for (unsigned n = 0; n < NEAREST && above > 1; n++) {
        above = fp_path_parent_len(wish->path, above);
        if (fp_answer_view_find_dir(answers, wish->path, above, a))
            return above;
    }
    return wish->root_len != 0 && wish->root_len < above
                   && fp_answer_view_find_dir(answers, wish->path, wish->root_len, a)
               ? wish->root_len
               : 0;
}

/* Looks below a directory whose steps the table has. *known_r: the length of its path. */
static bool look(const struct fp_lease_view *view, const struct fp_look_wish *wish, struct fp_answer *a,
                 size_t *known_r)
{
    size_t above;
    unsigned n;

    /* After a rest the daemon has to be asked, so that its heart beats again. */
    if (fp_lease_view_is_overdue(view, fp_now_ms()))
        return false;
    above = find_known(fp_lease_view_answers(view), wish, a);
    if (above == 0 || !a->may_look || (wish->fresh && !a->above_watched) || a->n_names != wish->names->n)
        return false;
    n = a->n_steps;
    /* Where the steps hold behind the looks, the directory and its access files are as they say. */
    if (!go_down(wish, above, a) || !fp_known_holds(view, a, n)) {
        fp_close(&a->fd);
        return false;
    }
    fp_lease_view_reference(view, a->steps[n - 1].slot);
    a->local = a->fd != -1;
    *known_r = above;
    return true;
}

/* True if the daemon is to hear of the path. */
static bool counts(const char *path, size_t len)
{
    const unsigned looks = fp_admission_count(path, len);

    return looks > 0 && looks % admission == 0;
}

fp_status fp_look_below_known(struct fp_client *client, const struct fp_look_wish *wish, struct fp_answer *a,
                  struct fp_lease_view **view_r)
{
    size_t known, child;
    fp_status st;

    *view_r = NULL;
    if (wish->len == 1 || admission <= 1)
        return FP_UNKNOWN;
    st = fp_shared_view(client, view_r);
    if (st != FP_OK)
        return st;
    if (!look(*view_r, wish, a, &known)) {
        fp_lease_view_release(view_r);
        return FP_UNKNOWN;
    }
    /* This answer is good whether or not the daemon hears of it. Nor is a directory on the way known: with it the next
     * looks are shorter. */
    child = fp_path_child_len(wish->path, wish->len, known);
    if (counts(wish->path, wish->len))
        fp_client_hint(client, wish->path, wish->len);
    if (child != wish->len && a->steps[a->n_steps - 1].end > child && counts(wish->path, child))
        fp_client_hint(client, wish->path, child);
    return FP_OK;
}
