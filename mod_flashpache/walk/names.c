/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "question/held.h"
#include "question/child_cache.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/server_clock.h"

#define DIRECTORIES 32          /* directories that a child keeps: at most 1 MiB */
#define TEXT_MOST   (32 * 1024) /* bytes of a directory's names */
#define FUSE_MS     1000        /* a file system in user space may keep no times of its directories */

/* The names of one directory, as an answer shows it. */
struct names {
    struct fp_item item;
    uint64_t view; /* the number of the lease table of its slot */
    uint32_t slot, generation;
    struct fp_meta meta;
    uint64_t expires_ms; /* 0: valid as long as the answer */
    bool complete;       /* false: the directory has too many names */
    size_t size;
    char *text; /* each with its '\0' */
};

static struct fp_child_cache *cache; /* NULL: none are kept */

void fp_names_init(void)
{
    cache = fp_child_cache_create(DIRECTORIES, SIZE_MAX);
}

static void destroy(struct fp_item *item)
{
    struct names *n = (struct names *)item;

    free(n->text);
    free(n);
}

/* ---- which directory ---- */

static bool is_same_directory(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->ino == b->ino && a->dev == b->dev && fp_time_equal(&a->mtime, &b->mtime)
           && fp_time_equal(&a->ctime, &b->ctime);
}

/* True if the answer is as current as the file system itself. */
static bool holds(const struct fp_held *dir, uint64_t now_ms)
{
    return fp_lease_view_is_current(dir->view, now_ms)
           && fp_lease_view_is_valid(dir->view, fp_held_last(dir)->slot, fp_held_last(dir)->generation, now_ms);
}

static bool is_of(const struct names *n, const struct fp_held *dir, uint64_t now_ms)
{
    return n->view == fp_lease_view_number(dir->view) && n->slot == fp_held_last(dir)->slot
           && n->generation == fp_held_last(dir)->generation && is_same_directory(&n->meta, &fp_held_last(dir)->self)
           && (n->expires_ms == 0 || now_ms < n->expires_ms);
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

    if (fstat(fd, &st) == -1)
        return false;
    found = fp_meta_from_stat(&st);
    return is_same_directory(&found, m);
}

/* Names that do not fit make the list incomplete.  False: reading failed. */
static bool read_names(DIR *d, struct names *n)
{
    const struct dirent *entry;

    n->complete = true;
    for (errno = 0; n->complete && (entry = readdir(d)) != NULL; errno = 0) {
        const size_t size = strlen(entry->d_name) + 1;

        n->complete = n->size + size <= TEXT_MOST;
        if (!n->complete)
            break;
        memcpy(n->text + n->size, entry->d_name, size);
        n->size += size;
    }
    return errno == 0;
}

/* Reads the directory, which must be the answer's before and after the reading. */
static bool read_directory(const char *path, const struct fp_meta *m, struct names *n)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd != -1 && is_directory_of(fd, m) ? fdopendir(fd) : NULL;
    struct statfs fs;
    bool good;

    if (d == NULL) {
        fp_close(&fd);
        return false;
    }
    good = fstatfs(fd, &fs) == 0 && fp_server_clock_has_settled_on((uint32_t)fs.f_type, m->dev, &m->ctime);
    n->expires_ms = good && fs.f_type == FUSE_SUPER_MAGIC ? fp_now_ms() + FUSE_MS : 0;
    good = good && read_names(d, n) && is_directory_of(fd, m);
    closedir(d);
    return good;
}

/* Retained for the caller, and kept; NULL: the names are unknown. */
static struct names *create(const struct fp_held *dir, const char *key, size_t key_len)
{
    char path[FP_MAX_PATH + 1];
    struct names *n = calloc(1, sizeof(*n) + key_len);
    char *text;

    if (n == NULL)
        return NULL;
    fp_item_init(&n->item, memcpy(n + 1, key, key_len), key_len, destroy);
    n->view = fp_lease_view_number(dir->view);
    n->slot = fp_held_last(dir)->slot;
    n->generation = fp_held_last(dir)->generation;
    n->meta = fp_held_last(dir)->self;
    n->text = malloc(TEXT_MOST);
    memcpy(path, dir->path, dir->path_len);
    path[dir->path_len] = '\0';
    /* A change after the answer, reported or not, shows in the slot or in the directory's time. */
    if (n->text == NULL || !read_directory(path, &n->meta, n) || !holds(dir, fp_now_ms())) {
        fp_item_release(&n->item);
        return NULL;
    }
    text = realloc(n->text, n->size > 0 ? n->size : 1);
    n->text = text != NULL ? text : n->text;
    fp_child_cache_put(cache, &n->item);
    return n;
}

/* ---- asking ---- */

static struct names *names_of(const struct fp_held *dir)
{
    char key[FP_ITEM_KEY_SIZE(FP_MAX_PATH)];
    const size_t key_len = fp_item_key(key, &cache, dir->path, dir->path_len);
    const uint64_t now_ms = fp_now_ms();
    struct names *n;

    if (dir->view == NULL || !holds(dir, now_ms))
        return NULL;
    n = (struct names *)fp_child_cache_get(cache, key, key_len);
    if (n != NULL && is_of(n, dir, now_ms))
        return n;
    if (n != NULL)
        fp_item_release(&n->item);
    return is_settled(&fp_held_last(dir)->self) ? create(dir, key, key_len) : NULL;
}

static bool has_none(const struct names *n, fp_names_is *is, const char *text)
{
    for (const char *at = n->text; at < n->text + n->size; at += strlen(at) + 1) {
        if (is(at, text))
            return false;
    }
    return true;
}

bool fp_names_has_none(const struct fp_held *dir, fp_names_is *is, const char *text)
{
    const struct fp_step *last = fp_held_last(dir);
    struct names *n;
    bool none;

    /* No event for a link reports a change of its target. */
    if (cache == NULL || fp_held_is_stale(dir) || last->end != dir->path_len || last->status != FP_OK
        || !S_ISDIR(last->self.mode))
        return false;
    n = names_of(dir);
    none = n != NULL && n->complete && has_none(n, is, text);
    if (n != NULL)
        fp_item_release(&n->item);
    return none;
}
