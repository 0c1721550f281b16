/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory to walk in, walks, and checks of every answer.
 */
#ifndef FP_RESOLVE_KIT_H
#define FP_RESOLVE_KIT_H

#include "unit.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "wire/wire.h"
#include "workers/resolve.h"

static struct fp_resolver resolver;
static struct fp_resolver_settings settings;
static struct fp_walk_result result;
static struct fp_answer answer;
static char dir[PATH_MAX];
static int fds_at_rest;

static inline void setup(void)
{
    unit_fresh_dir(dir);
    memset(&settings, 0, sizeof(settings));
    ck_assert_int_eq(fp_resolver_init(&resolver, &settings), 0);
    fds_at_rest = unit_open_fds();
    answer.fd = -1;
}

static inline void teardown(void)
{
    fp_close(&answer.fd);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    fp_close(&resolver.slash);
}

static inline const char *in_dir(const char *name)
{
    return unit_join(dir, name);
}

static inline void make_dir(const char *name)
{
    ck_assert_int_eq(mkdir(in_dir(name), 0755), 0);
}

/* Calls it for each name; there is a space between them. */
static inline void for_each_name(void (*act)(const char *name), const char *names)
{
    char copy[512], *rest = copy, *name;

    ck_assert_int_lt(snprintf(copy, sizeof(copy), "%s", names), (int)sizeof(copy));
    while ((name = strsep(&rest, " ")) != NULL)
        act(name);
}

static inline void remove_name(const char *name)
{
    ck_assert_int_eq(unlink(in_dir(name)), 0);
}

static inline void make_link(const char *text, const char *name)
{
    ck_assert_int_eq(symlink(text, in_dir(name)), 0);
}

/* Files, directories and a FIFO, and links of each kind among them. */
static inline void make_tree(void)
{
    for_each_name(make_dir, "a a/b a/b/c t");
    unit_write_file(in_dir("a/file"), "content");
    unit_write_file(in_dir("a/b/file"), "deeper");
    unit_write_file(in_dir("t/file"), "other");
    ck_assert_int_eq(mkfifo(in_dir("a/fifo"), 0644), 0);
    make_link("file", "a/near");
    make_link("b", "a/dir");
    make_link("no", "a/dangling");
    make_link("loop2", "a/loop1");
    make_link("loop1", "a/loop2");
    make_link("self", "a/self");
}

static struct stat before_walk; /* of the path's end: a walk that opens a file reads it, and so changes its atime */

static inline void walk(const struct fp_task *t, int base)
{
    const char *from = t->lookup.path + (base != -1 ? t->base_len : 0);
    char path[PATH_MAX];

    from += base != -1 && *from == '/';
    snprintf(path, sizeof(path), "%.*s", (int)(t->lookup.path + t->lookup.path_len - from), from);
    (void)fstatat(base, path, &before_walk, 0);
    fp_resolve(&resolver, t, base, &answer, &result);
}

static inline void resolve_task(const char *path, size_t len)
{
    const struct fp_task t = { .lookup = { .path = path, .path_len = len } };

    walk(&t, -1);
}

/* The task is for that name; the caller sets all else. */
static inline void resolve_as_asked(const char *name, struct fp_task t)
{
    t.lookup.path = in_dir(name);
    t.lookup.path_len = strlen(t.lookup.path);
    fp_close(&answer.fd);
    walk(&t, -1);
}

static inline void resolve_path(const char *path)
{
    const size_t len = strlen(path);
    char *exact = malloc(len); /* not terminated: paths of the wire are not */

    ck_assert_ptr_nonnull(exact);
    ck_assert(fp_path_is_normal(path, len));
    memcpy(exact, path, len);
    fp_close(&answer.fd);
    memset(&answer, 0xa5, sizeof(answer));
    resolve_task(exact, len);
    free(exact);
}

static inline void resolve(const char *name)
{
    resolve_path(in_dir(name));
}

static inline const struct fp_step *last(void)
{
    ck_assert_int_eq((int)answer.status, FP_OK);
    ck_assert_uint_ge(answer.n_steps, 1);
    ck_assert_uint_le(answer.n_steps, FP_MAX_STEPS);
    return &answer.steps[answer.n_steps - 1];
}

static inline void assert_no_answer(fp_status why)
{
    ck_assert_int_eq((int)answer.status, (int)why);
    ck_assert_uint_eq(answer.n_steps, 0);
    ck_assert_int_eq(answer.fd, -1);
}

static inline void assert_refused(const char *path)
{
    resolve_path(path);
    assert_no_answer(FP_REFUSED);
}

/* The walk of the name ends at that part of it, with that status. */
static inline void assert_ends(const char *name, fp_status status, const char *part)
{
    resolve(name);
    ck_assert_int_eq((int)last()->status, (int)status);
    ck_assert_uint_eq(last()->end, strlen(in_dir(part)));
}

/* The walk ends at a link, whose target has that status. */
static inline void assert_leads(const char *name, fp_status status)
{
    resolve(name);
    ck_assert_int_eq((int)last()->target_status, (int)status);
}

static inline void assert_identity(const struct fp_meta *m, const struct stat *st)
{
    ck_assert_uint_eq(m->mode, st->st_mode);
    ck_assert_uint_eq(m->uid, st->st_uid);
    ck_assert_uint_eq(m->gid, st->st_gid);
    ck_assert_uint_eq(m->dev, st->st_dev);
    ck_assert_uint_eq(m->ino, st->st_ino);
}

static inline void assert_meta(const struct fp_meta *m, const struct stat *st)
{
    assert_identity(m, st);
    ck_assert_uint_eq(m->nlink, st->st_nlink);
    ck_assert_uint_eq(m->size, (uint64_t)st->st_size);
    ck_assert_uint_eq(m->blocks, (uint64_t)st->st_blocks);
    ck_assert_uint_eq(m->blksize, (uint64_t)st->st_blksize);
    ck_assert_int_eq(m->mtime.sec, st->st_mtim.tv_sec);
    ck_assert_uint_eq(m->mtime.nsec, (uint64_t)st->st_mtim.tv_nsec);
    ck_assert_int_eq(m->ctime.sec, st->st_ctim.tv_sec);
    ck_assert_uint_eq(m->ctime.nsec, (uint64_t)st->st_ctim.tv_nsec);
}

/* Of links it is another one every time: following them is access. */
static inline void assert_atime(const struct fp_meta *m, const struct stat *st)
{
    ck_assert_int_eq(m->atime.sec, st->st_atim.tv_sec);
    ck_assert_uint_eq(m->atime.nsec, (uint64_t)st->st_atim.tv_nsec);
}

/* Outside of the tests' directory other entries come and go meanwhile, in /proc as processes. */
static inline void assert_part(const char *part, const struct fp_meta *m, const struct stat *st)
{
    char real[PATH_MAX];

    if (S_ISLNK(st->st_mode)
        || (realpath(part, real) != NULL && fp_path_is_below(real, strlen(real), unit_dir)))
        assert_meta(m, st);
    else
        assert_identity(m, st);
}

/* Every step has the results of lstat(2) and stat(2) for that part of the path. */
static inline void assert_steps(const char *path)
{
    char part[PATH_MAX];
    size_t end = 0;

    for (unsigned i = 0; i < answer.n_steps; i++) {
        const struct fp_step *s = &answer.steps[i];
        struct stat st;

        ck_assert_uint_gt(s->end, end);
        ck_assert(path[s->end] == '/' || path[s->end] == '\0' || s->end == 1);
        end = s->end;
        snprintf(part, sizeof(part), "%.*s", (int)end, path);
        if (s->status != FP_OK) {
            ck_assert_int_eq(lstat(part, &st), -1);
            ck_assert_int_eq((int)s->status, (int)fp_status_from_errno(errno));
            continue;
        }
        ck_assert_int_eq(lstat(part, &st), 0);
        assert_part(part, &s->self, &st);
        if (!S_ISLNK(st.st_mode))
            continue;
        if (s->target_status != FP_OK) {
            ck_assert_int_eq(stat(part, &st), -1);
            ck_assert_int_eq((int)s->target_status, (int)fp_status_from_errno(errno));
            continue;
        }
        ck_assert_int_eq(stat(part, &st), 0);
        assert_part(part, &s->target, &st);
    }
}

static inline void assert_content(const char *text)
{
    char room[64];
    ssize_t n = pread(answer.fd, room, sizeof(room), 0);

    ck_assert_int_eq(n, (ssize_t)strlen(text));
    ck_assert_mem_eq(room, text, strlen(text));
}

/* An answer with an open file, as it must be. */
static inline void assert_open(const char *text)
{
    struct stat st;

    last();
    ck_assert_int_ne(answer.fd, -1);
    ck_assert_int_eq(fcntl(answer.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(fcntl(answer.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    ck_assert_int_eq(fcntl(answer.fd, F_GETFL) & O_PATH, 0);
    ck_assert_int_eq(lseek(answer.fd, 0, SEEK_CUR), 0);
    ck_assert_int_eq(fstat(answer.fd, &st), 0);
    assert_meta(fp_step_target(last()), &st);
    assert_atime(fp_step_target(last()), &before_walk);
    assert_content(text);
}

static inline void assert_file(const char *name, const char *text)
{
    resolve(name);
    assert_steps(in_dir(name));
    ck_assert_uint_eq(last()->end, strlen(in_dir(name)));
    assert_open(text);
}

/* A directory comes with a descriptor that can only be walked from; of other kinds, only a file is
 * open. */
static inline void assert_place_or_nothing(void)
{
    const struct fp_meta *m = fp_step_target(last());
    struct stat st;

    if (m == NULL || !S_ISDIR(m->mode)) {
        ck_assert_int_eq(answer.fd, -1);
        return;
    }
    ck_assert_int_eq(fcntl(answer.fd, F_GETFL) & O_PATH, O_PATH);
    ck_assert_int_eq(fcntl(answer.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(fstat(answer.fd, &st), 0);
    ck_assert_uint_eq(st.st_ino, m->ino);
}

/* The whole path is known, and nothing is open but a directory's place. */
static inline void assert_thing(const char *name, mode_t type)
{
    resolve(name);
    assert_steps(in_dir(name));
    ck_assert_uint_eq(last()->end, strlen(in_dir(name)));
    ck_assert_int_eq((int)last()->status, FP_OK);
    ck_assert_uint_eq(fp_step_target(last())->mode & S_IFMT, type);
    assert_place_or_nothing();
}

/* Root has all rights, so another user asks; Check's own assertions work in a fork. */
static inline void become_nobody(void)
{
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(setegid(UNIT_NOBODY), 0);
    ck_assert_int_eq(seteuid(UNIT_NOBODY), 0);
}

static inline void become_root_again(void)
{
    if (getuid() != 0)
        return;
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(setegid(0), 0);
}

static inline TCase *add_case(Suite *s, const char *name)
{
    TCase *t = tcase_create(name);

    tcase_add_checked_fixture(t, setup, teardown);
    suite_add_tcase(s, t);
    return t;
}

#endif
