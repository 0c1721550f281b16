/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "common/answer.h"
#include "common/answer_table.h"
#include "common/keyed_hash.h"
#include "common/lease_table.h"
#include "common/packet.h"
#include "common/wire.h"
#include "open_path.h"
#include "shared.h"

static unsigned admission;
static int root = -1; /* a descriptor of "/" */

void fp_look_init(unsigned looks_a_question)
{
    admission = looks_a_question;
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- the last component ---- */

static struct fp_time time_of(const struct timespec *ts)
{
    return (struct fp_time){ .sec = ts->tv_sec, .nsec = (uint32_t)ts->tv_nsec };
}

static void set_meta(struct fp_meta *m, const struct stat *st)
{
    *m = (struct fp_meta){ .mode = st->st_mode,
                           .uid = st->st_uid,
                           .gid = st->st_gid,
                           .dev = st->st_dev,
                           .ino = st->st_ino,
                           .nlink = st->st_nlink,
                           .size = (uint64_t)st->st_size,
                           .blocks = (uint64_t)st->st_blocks,
                           .atime = time_of(&st->st_atim),
                           .mtime = time_of(&st->st_mtim),
                           .ctime = time_of(&st->st_ctim) };
}

/* A path below a directory on the same mount. */
struct place {
    int mount;         /* that directory's descriptor; root: not to be closed */
    const char *below; /* the rest of the path */
};

/*
 * Opens the topmost directory on the way that lies on the same device as the last one. Another file
 * system may be mounted at the path itself, and even O_PATH may ask its server. name: the path, in
 * which a slash ends it for a moment. False: that directory cannot be opened at once.
 */
static bool open_mount(char *name, const struct fp_answer *a, struct place *p)
{
    unsigned top = a->n_steps - 1;
    size_t end;

    while (top > 0 && fp_step_target(&a->steps[top - 1])->dev == fp_step_target(&a->steps[top])->dev)
        top--;
    p->mount = root;
    p->below = name + 1;
    if (top == 0)
        return root != -1;
    end = a->steps[top].end;
    name[end] = '\0';
    p->mount = fp_open_from_memory(name, O_PATH | O_DIRECTORY);
    name[end] = '/';
    p->below = name + end + 1;
    return p->mount != -1;
}

static void close_mount(struct place *p)
{
    if (p->mount != root)
        fp_close(&p->mount);
}

static bool is_file_of(int fd, uint64_t dev, struct stat *st)
{
    return fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_dev == dev;
}

/* Opens the regular file by its name. To open something else, such as a FIFO, may have effects: so O_PATH first. */
static bool open_file(const struct place *p, uint64_t dev, struct fp_answer *a, struct stat *st)
{
    int fd = fp_open_within_mount(p->mount, p->below, O_PATH | O_NOFOLLOW);
    const bool is_file = fd != -1 && is_file_of(fd, dev, st);
    const ino_t ino = is_file ? st->st_ino : 0;

    fp_close(&fd);
    if (is_file)
        a->fd = fp_open_within_mount(p->mount, p->below, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (a->fd == -1)
        return false;
    if (is_file_of(a->fd, dev, st) && st->st_ino == ino)
        return true;
    fp_close(&a->fd);
    errno = EAGAIN;
    return false;
}

/* Sets the last step, where *a has the steps to its directory. True: it is a regular file, opened, or absent. */
static bool look_at_last(const char *path, size_t len, struct fp_answer *a)
{
    const uint64_t dev = fp_step_target(&a->steps[a->n_steps - 1])->dev;
    struct fp_step *last = &a->steps[a->n_steps];
    char name[FP_MAX_PATH + 1];
    struct place p;
    struct stat st;

    memcpy(name, path, len);
    name[len] = '\0';
    if (!open_mount(name, a, &p))
        return false;
    last->end = (uint16_t)len;
    last->slot = FP_NO_SLOT;
    last->generation = 0;
    errno = 0;
    last->status = open_file(&p, dev, a, &st) ? FP_OK : FP_ABSENT;
    close_mount(&p);
    if (last->status == FP_OK)
        set_meta(&last->self, &st);
    return last->status == FP_OK || errno == ENOENT;
}

/* ---- in the directory ---- */

/* True for one in so many calls, by chance: among paths that take turns it would else always be the same one. */
static bool is_admitted(void)
{
    static atomic_uint calls;
    const unsigned n = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);

    return admission <= 1 || fp_keyed_hash(&n, sizeof(n)) % admission == 0;
}

/* Looks in the directory whose steps the table has. */
static bool look(const struct fp_lease_view *view, const struct fp_names *names, const char *path, size_t len,
                 bool fresh, struct fp_answer *a)
{
    if (!fp_answer_view_find_dir(fp_lease_view_answers(view), names, path, fp_path_parent_len(path, len), a)
        || !a->above_local || (fresh && !a->above_watched) || a->n_names != names->n
        || !look_at_last(path, len, a))
        return false;
    /* So the path led to that directory all the time. */
    if (!fp_shared_holds(view, a)) {
        fp_close(&a->fd);
        return false;
    }
    fp_lease_view_reference(view, a->steps[a->n_steps - 1].slot);
    a->local = a->fd != -1;
    a->n_steps++;
    return true;
}

fp_status fp_look(struct fp_client *client, const struct fp_names *names, const char *path, size_t len, bool fresh,
                  struct fp_answer *a, struct fp_lease_view **view_r)
{
    fp_status st;

    *view_r = NULL;
    if (len == 1 || is_admitted())
        return FP_ABSENT;
    st = fp_shared_view(client, view_r);
    if (st != FP_OK || look(*view_r, names, path, len, fresh, a))
        return st;
    fp_lease_view_release(view_r);
    return FP_ABSENT;
}
