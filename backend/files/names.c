/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/server_clock.h"

#define DIRECTORIES  64u         /* directories that a process keeps: at most 4 MiB */
#define RECORDS_MOST (64 * 1024) /* bytes of a directory's records */

struct fp_files_names {
    atomic_uint references;
    uint64_t view; /* the number of the lease table of its slot */
    uint32_t slot, generation;
    struct fp_meta meta;
    uint64_t expires_ms; /* 0: valid as long as the answer */
    bool complete;       /* false: the directory has too many names */
    size_t size;
    char records[];
};

static struct {
    pthread_mutex_t mutex; /* a thread that finds it held does without */
    struct fp_files_names *all[DIRECTORIES];
    unsigned hand;
} kept = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* ---- those kept ---- */

void fp_files_names_release(struct fp_files_names **n)
{
    if (*n != NULL && atomic_fetch_sub(&(*n)->references, 1) == 1)
        free(*n);
    *n = NULL;
}

static bool is_same_directory(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->ino == b->ino && a->dev == b->dev && fp_time_equal(&a->mtime, &b->mtime)
           && fp_time_equal(&a->ctime, &b->ctime);
}

/* The place that has the step's names, of whichever generation; NULL if there is none. */
static struct fp_files_names **place_of(uint64_t view, const struct fp_step *step)
{
    for (unsigned i = 0; i < DIRECTORIES; i++) {
        if (kept.all[i] != NULL && kept.all[i]->slot == step->slot && kept.all[i]->view == view)
            return &kept.all[i];
    }
    return NULL;
}

/* True if those names are of the step's directory as it is. */
static bool are_of(const struct fp_files_names *n, const struct fp_step *step)
{
    return n->generation == step->generation && is_same_directory(&n->meta, &step->self);
}

static struct fp_files_names *find(uint64_t view, const struct fp_step *step)
{
    struct fp_files_names **place, *n = NULL;

    if (pthread_mutex_trylock(&kept.mutex) != 0)
        return NULL;
    place = place_of(view, step);
    if (place != NULL && are_of(*place, step)
        && ((*place)->expires_ms == 0 || fp_now_ms() < (*place)->expires_ms)) {
        n = *place;
        atomic_fetch_add(&n->references, 1);
    }
    pthread_mutex_unlock(&kept.mutex);
    return n;
}

static void keep(struct fp_files_names *n, const struct fp_step *step)
{
    struct fp_files_names **place;

    if (pthread_mutex_trylock(&kept.mutex) != 0)
        return;
    place = place_of(n->view, step);
    if (place == NULL)
        place = &kept.all[kept.hand++ % DIRECTORIES];
    fp_files_names_release(place);
    atomic_fetch_add(&n->references, 1);
    *place = n;
    pthread_mutex_unlock(&kept.mutex);
}

/* ---- reading ---- */

static bool is_settled(const struct fp_meta *m)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return m->ctime.sec < now.tv_sec - FP_SETTLED_MS / 1000;
}

static bool is_directory_of(int fd, const struct fp_meta *m)
{
    struct stat st;
    struct fp_meta found;

    if (fstatat(fd, "", &st, AT_EMPTY_PATH) == -1)
        return false;
    found = fp_meta_from_stat(&st);
    return is_same_directory(&found, m);
}

/* Names that do not fit make the list incomplete.  False: reading failed. */
static bool read_records(int fd, struct fp_files_names *n)
{
    long got;

    do {
        got = syscall(SYS_getdents64, fd, n->records + n->size, RECORDS_MOST - n->size);
        n->size += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    /* No further record fits. */
    n->complete = got == 0;
    return got == 0 || (errno == EINVAL && n->size > 0);
}

/* The directory must be the answer's before and after the reading. A file system in user space may keep no times of
 * its directories: the names are then no older than the answer may get. */
static bool read_directory(const char *path, struct fp_files_names *n, uint64_t answer_expires_ms)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs fs;
    bool good = fd != -1 && is_directory_of(fd, &n->meta) && fstatfs(fd, &fs) == 0
                && fp_server_clock_has_settled_on((uint32_t)fs.f_type, n->meta.dev, &n->meta.ctime);

    if (good && fs.f_type == FUSE_SUPER_MAGIC)
        n->expires_ms = answer_expires_ms;
    good = good && read_records(fd, n) && is_directory_of(fd, &n->meta);
    fp_close(&fd);
    return good;
}

static bool holds(const struct fp_lease_view *view, const struct fp_step *step)
{
    const uint64_t now_ms = fp_now_ms();

    return fp_lease_view_is_current(view, now_ms)
           && fp_lease_view_is_valid(view, step->slot, step->generation, now_ms);
}

/* As fp_files_names_of(), and keeps them. */
static struct fp_files_names *create(const struct fp_lease_view *view, const char *path, size_t len,
                                     const struct fp_step *step)
{
    char name[FP_MAX_PATH + 1];
    const uint64_t now_ms = fp_now_ms();
    struct fp_files_names *n = malloc(sizeof(*n) + RECORDS_MOST), *fitting;

    if (n == NULL)
        return NULL;
    *n = (struct fp_files_names){ .references = 1,
                                  .view = fp_lease_view_number(view),
                                  .slot = step->slot,
                                  .generation = step->generation,
                                  .meta = step->self };
    memcpy(name, path, len);
    name[len] = '\0';
    /* A change after the answer, reported or not, shows in the slot or in the directory's time. */
    if (!read_directory(name, n, now_ms + fp_lease_view_ms_left(view, step->slot, step->generation, now_ms))
        || !holds(view, step)) {
        free(n);
        return NULL;
    }
    if (!n->complete)
        n->size = 0;
    fitting = realloc(n, sizeof(*n) + n->size);
    n = fitting != NULL ? fitting : n;
    keep(n, step);
    return n;
}

/* ---- asking ---- */

struct fp_files_names *fp_files_names_of(const struct fp_lease_view *view, const char *path, size_t len,
                                         const struct fp_step *step)
{
    struct fp_files_names *n = find(fp_lease_view_number(view), step);

    if (n == NULL && is_settled(&step->self))
        n = create(view, path, len, step);
    if (n != NULL && !n->complete)
        fp_files_names_release(&n);
    return n;
}

const struct dirent64 *fp_files_names_next(const struct fp_files_names *n, size_t *at)
{
    const struct dirent64 *record = (const struct dirent64 *)(n->records + *at);

    if (*at + offsetof(struct dirent64, d_name) >= n->size || record->d_reclen > n->size - *at)
        return NULL;
    *at += record->d_reclen;
    return record;
}

bool fp_files_names_are_of(const struct fp_files_names *n, uint64_t dev, uint64_t ino)
{
    return n->meta.dev == dev && n->meta.ino == ino;
}

bool fp_files_names_are_same(const struct fp_files_names *a, const struct fp_files_names *b)
{
    return fp_files_names_are_of(a, b->meta.dev, b->meta.ino);
}
