/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that is watched, and its events.
 */
#ifndef FP_WATCH_KIT_H
#define FP_WATCH_KIT_H

#include <sched.h>
#include <sys/mount.h>

#include "changes/watch.h"
#include "unit.h"

#define MAX_EVENTS 4096

static struct fp_watch watch;
static char dir[PATH_MAX];
static bool mounted;
static int fds_at_rest;
static struct fp_watch_key dir_key, file_key;

static struct {
    unsigned n, lost;
    struct event {
        bool gone, replaced;
        struct fp_watch_key key;
        char name[FP_MAX_NAME + 1];
    } list[MAX_EVENTS];
} told;

/* ---- events ---- */

static inline struct event *next_event(const struct fp_watch_key *key)
{
    struct event *e = &told.list[told.n < MAX_EVENTS ? told.n++ : MAX_EVENTS - 1];

    memset(e, 0, sizeof(*e));
    e->key = *key;
    return e;
}

static inline void on_changed(void *ctx, const struct fp_watch_key *key, const char *name, size_t len,
                              bool replaced)
{
    struct event *e = next_event(key);

    ck_assert_ptr_eq(ctx, &told);
    ck_assert_uint_le(len, FP_MAX_NAME);
    ck_assert_ptr_null(memchr(name, '\0', len));
    memcpy(e->name, name, len);
    e->replaced = replaced;
    if (len == 0)
        ck_assert(!replaced);
}

static inline void on_gone(void *ctx, const struct fp_watch_key *key)
{
    ck_assert_ptr_eq(ctx, &told);
    next_event(key)->gone = true;
}

static inline void on_lost(void *ctx)
{
    ck_assert_ptr_eq(ctx, &told);
    told.lost++;
}

static inline bool same_key(const struct fp_watch_key *a, const struct fp_watch_key *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static struct fp_watch_key needed; /* the only one */

static inline bool is_needed(void *ctx, const struct fp_watch_key *key)
{
    ck_assert_ptr_eq(ctx, &told);
    return same_key(key, &needed);
}

static inline void drain(void)
{
    static const struct fp_watch_ops ops = { on_changed, on_gone, on_lost, is_needed };

    told.n = told.lost = 0;
    fp_watch_drain(&watch, &ops, &told);
}

/* "c": a change of the name was reported; "r": it stands for something else. */
static inline bool was_told(char how, const struct fp_watch_key *key, const char *name)
{
    for (unsigned i = 0; i < told.n; i++) {
        const struct event *e = &told.list[i];

        if (same_key(&e->key, key) && e->gone == (how == 'g') && strcmp(e->name, name) == 0
            && (how == 'g' || e->replaced == (how == 'r')))
            return true;
    }
    return false;
}

static inline void assert_told(char how, const struct fp_watch_key *key, const char *name)
{
    ck_assert_msg(was_told(how, key, name), "no '%c' of \"%s\" among %u events", how, name, told.n);
}

/* The same for the events that wait now. */
static inline void assert_tells(char how, const struct fp_watch_key *key, const char *name)
{
    drain();
    assert_told(how, key, name);
}

static inline void assert_nothing_of(const char *name)
{
    for (unsigned i = 0; i < told.n; i++)
        ck_assert_str_ne(told.list[i].name, name);
}

/* ---- the place ---- */

static inline const char *in_dir(const char *name)
{
    return unit_join(dir, name);
}

static inline fp_status try_place(const char *path, struct fp_watch_key *key)
{
    struct stat st;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    fp_status status;

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fstat(fd, &st), 0);
    status = fp_watch_place(&watch, fd, S_ISDIR(st.st_mode), key);
    close(fd);
    return status;
}

static inline struct fp_watch_key place(const char *path)
{
    struct fp_watch_key key;

    ck_assert_int_eq((int)try_place(path, &key), FP_OK);
    ck_assert_uint_gt(key.len, 0);
    return key;
}

static inline void skip(const char *why)
{
    fprintf(stderr, "SKIPPED: a test of inotify: %s (%s)\n", why, strerror(errno));
}

/* A file system of its own, so that no other process's changes are reported. */
static inline bool mount_own(void)
{
    if (unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1
        || mount("watch", dir, "tmpfs", 0, "size=64m") == -1)
        return false;
    mounted = true;
    return true;
}

/* The directory and the "file" in it are watched. */
static inline void begin(void)
{
    ck_assert(fp_watch_open(&watch));
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("out"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("d"), 0755), 0);
    unit_write_file(in_dir("d/file"), "content");
    dir_key = place(in_dir("d"));
    file_key = place(in_dir("d/file"));
    drain();
    drain();
    ck_assert_uint_eq(told.n, 0);
}

static inline void setup(void)
{
    watch = (struct fp_watch)FP_WATCH_NONE;
    mounted = false;
    unit_fresh_dir(dir);
    fds_at_rest = unit_open_fds();
}

static inline void teardown(void)
{
    fp_watch_close(&watch);
    ck_assert_int_eq(watch.inotify, -1);
    if (mounted)
        ck_assert_int_eq(umount2(dir, MNT_DETACH), 0);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* ---- content ---- */

static inline void append(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, "more", 4), 4);
    close(fd);
}

/* The file reports, and the directory does or does not. */
static inline void assert_changed(bool in_directory)
{
    drain();
    if (in_directory)
        assert_told('c', &dir_key, "file");
    else
        assert_nothing_of("file");
    assert_told('c', &file_key, "");
    ck_assert(!was_told('r', &dir_key, "file"));
    ck_assert(!was_told('g', &file_key, ""));
    ck_assert_uint_eq(told.lost, 0);
}

/* Only the file itself reports writes. */
static inline void assert_file_changed(void)
{
    assert_changed(false);
}

#endif
