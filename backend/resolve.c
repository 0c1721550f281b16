/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mounts.h"
#include "proto/answer.h"
#include "proto/fdio.h"
#include "proto/wire.h"
#include "task.h"

#define PROC_FD_NAME 32   /* "/proc/self/fd/" and a number */

int fp_resolver_init(struct fp_resolver *r, const char *const *roots)
{
    r->roots = roots;
    r->slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return r->slash == -1 ? -1 : 0;
}

static bool is_within(const struct fp_resolver *r, const char *path, size_t len)
{
    if (r->roots == NULL || r->roots[0] == NULL)
        return true;
    for (size_t i = 0; r->roots[i] != NULL; i++) {
        if (fp_path_is_below(path, len, r->roots[i]))
            return true;
    }
    return false;
}

static void proc_name(char name[PROC_FD_NAME], int fd)
{
    snprintf(name, PROC_FD_NAME, "/proc/self/fd/%d", fd);
}

/* A link may lead out of the roots: ask the kernel where the file really is. */
static bool opened_within(const struct fp_resolver *r, int fd)
{
    char name[PROC_FD_NAME], real[FP_MAX_PATH + 1];
    ssize_t n;

    if (r->roots == NULL || r->roots[0] == NULL)
        return true;
    proc_name(name, fd);
    n = readlink(name, real, sizeof(real));
    return n > 0 && (size_t)n < sizeof(real) && is_within(r, real, (size_t)n);
}

static void time_of(struct fp_time *t, const struct timespec *ts)
{
    t->sec = ts->tv_sec;
    t->nsec = (uint32_t)ts->tv_nsec;
}

static fp_status look(int fd, struct fp_meta *m)
{
    struct stat st;

    if (fstatat(fd, "", &st, AT_EMPTY_PATH) == -1)
        return fp_status_from_errno(errno);
    m->mode = st.st_mode;
    m->uid = st.st_uid;
    m->gid = st.st_gid;
    m->dev = st.st_dev;
    m->ino = st.st_ino;
    m->nlink = st.st_nlink;
    m->size = (uint64_t)st.st_size;
    m->blocks = (uint64_t)st.st_blocks;
    time_of(&m->atime, &st.st_atim);
    time_of(&m->mtime, &st.st_mtim);
    time_of(&m->ctime, &st.st_ctim);
    return FP_OK;
}

/* Running out of descriptors says nothing about the path. */
static bool is_our_fault(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM;
}

/*
 * Opens one name below dir without following it.  O_DIRECTORY first, where
 * more is to come: it makes an automount mount, which O_PATH alone does not.
 */
static int open_name(int dir, const char *name, bool more)
{
    int fd = -1;

    if (more)
        fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    if (!more || (fd == -1 && errno == ENOTDIR))
        fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd;
}

/*
 * Follows the link that is open as *fd, lying in dir; *fd becomes its target.
 * Its text is read from that very link: a link put in its place meanwhile
 * does not come into it.
 */
static void follow(int dir, int *fd, struct fp_step *s)
{
    char text[FP_MAX_PATH + 1];
    ssize_t n = readlinkat(*fd, "", text, sizeof(text));

    if (n <= 0 || (size_t)n >= sizeof(text)) {
        s->target_status = n == -1 ? fp_status_from_errno(errno) : FP_NAMETOOLONG;
        fp_close(fd);
        return;
    }
    text[n] = '\0';
    fp_close(fd);
    *fd = openat(dir, text, O_PATH | O_CLOEXEC);
    s->target_status = *fd == -1 ? fp_status_from_errno(errno)
                                 : look(*fd, &s->target);
    if (s->target_status != FP_OK)
        fp_close(fd);
}

/*
 * One step down from *dir, which becomes the new place, or -1 where the walk
 * cannot go on.  False when we, not the path, are the reason.
 */
static bool step(int *dir, const char *name, bool more, struct fp_step *s)
{
    int fd = open_name(*dir, name, more);
    bool ours = fd == -1 && is_our_fault(errno);

    s->status = fd == -1 ? fp_status_from_errno(errno) : look(fd, &s->self);
    s->target_status = FP_OK;
    if (s->status != FP_OK)
        fp_close(&fd);
    else if (S_ISLNK(s->self.mode)) {
        follow(*dir, &fd, s);
        ours = fd == -1 && is_our_fault(errno);
    }
    fp_close(dir);
    *dir = fd;
    return !ours;
}

/*
 * Opens what place stands for, by the kernel's own name for it, so that it is
 * the inode that was looked at; then looks again, at the descriptor itself.
 * Answers why not: FP_OK also where the file may not be read (fd stays -1).
 * Somebody's lease on the file (EAGAIN) is for httpd to wait for.
 */
static fp_status open_file(const struct fp_resolver *r, int place,
                           struct fp_meta *m, int *fd_r)
{
    char name[PROC_FD_NAME];
    fp_status st;

    proc_name(name, place);
    *fd_r = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*fd_r == -1 && (errno == EACCES || errno == EPERM))
        return FP_OK;
    if (*fd_r == -1 && errno == EAGAIN)
        return FP_FAILED;
    if (*fd_r == -1)
        return is_our_fault(errno) ? FP_BUSY : fp_status_from_errno(errno);
    if (!opened_within(r, *fd_r)) {
        fp_close(fd_r);
        return FP_REFUSED;
    }
    st = look(*fd_r, m);
    if (st != FP_OK)
        fp_close(fd_r);
    return st;
}

/* A directory is kept to begin other walks at; a file is opened, unless it is
 * as it was. */
static fp_status finish(const struct fp_resolver *r, const struct fp_task *t, int *place,
                        struct fp_answer *a)
{
    struct fp_step *last = &a->steps[a->n_steps - 1];
    bool link = S_ISLNK(last->self.mode);
    struct fp_meta *m = link ? &last->target : &last->self;
    fp_status st;

    if (*place == -1)
        return FP_OK;
    if (S_ISDIR(m->mode)) {
        a->fd = *place;
        *place = -1;
        return FP_OK;
    }
    if (!S_ISREG(m->mode))
        return FP_OK;
    if (t->has_known && !link && fp_meta_equal(m, &t->known)) {
        a->unchanged = true;
        return FP_OK;
    }
    st = open_file(r, *place, m, &a->fd);
    a->local = a->fd != -1 && fp_mount_is_local(a->fd, m->dev);
    if (st == FP_OK || st > FP_IOERROR)
        return st;
    /* That is the file system's word on the file, not on the question. */
    if (link)
        last->target_status = st;
    else
        last->status = st;
    return FP_OK;
}

static void look_for(int dir, const char *name, size_t len, struct fp_access *x)
{
    char copy[FP_MAX_NAME + 1];
    struct stat st;

    memcpy(copy, name, len);
    copy[len] = '\0';
    /* Links are followed, as by httpd when it opens one. */
    if (fstatat(dir, copy, &st, 0) == -1) {
        x->status = fp_status_from_errno(errno);
        return;
    }
    x->status = FP_OK;
    x->mode = st.st_mode;
    x->dev = st.st_dev;
    x->ino = st.st_ino;
    x->size = (uint64_t)st.st_size;
    time_of(&x->mtime, &st.st_mtim);
    time_of(&x->ctime, &st.st_ctim);
}

static void look_for_names(int dir, const struct fp_names *names, struct fp_step *s)
{
    for (unsigned i = 0; i < names->n && fp_step_leads_on(s); i++)
        look_for(dir, names->list[i].name, names->list[i].len, &s->access[i]);
}

static void tell_root(int slash, const struct fp_names *names, struct fp_answer *a)
{
    struct fp_step *s = &a->steps[0];

    s->end = 1;
    s->target_status = FP_OK;
    s->status = look(slash, &s->self);
    look_for_names(slash, names, s);
    a->n_steps = 1;
}

static bool may_go_on(const struct fp_answer *a)
{
    return a->n_steps == 0 || fp_step_leads_on(&a->steps[a->n_steps - 1]);
}

/* From *place, which stands for the path's first at bytes. */
static fp_status walk(char *path, size_t at, size_t len, const struct fp_names *names,
                      int *place, struct fp_answer *a)
{
    while (at < len && may_go_on(a)) {
        struct fp_step *s = &a->steps[a->n_steps];
        size_t end;

        if (path[at] == '/')
            at++;
        end = at + strcspn(path + at, "/");
        if (a->n_steps == FP_MAX_STEPS)
            return FP_TOODEEP;
        path[end] = '\0';
        s->end = (uint16_t)end;
        if (!step(place, path + at, end < len, s))
            return FP_BUSY;
        path[end] = end < len ? '/' : '\0';
        look_for_names(*place, names, s);
        a->n_steps++;
        at = end;
    }
    return FP_OK;
}

void fp_resolve(const struct fp_resolver *r, const struct fp_task *t, int base,
                struct fp_answer *a)
{
    const struct fp_lookup *l = &t->lookup;
    char copy[FP_MAX_PATH + 1];
    fp_status st = FP_REFUSED;
    int place = -1;

    fp_answer_init(a, FP_OK);
    a->n_names = l->names.n;
    memcpy(copy, l->path, l->path_len);
    copy[l->path_len] = '\0';
    if (is_within(r, l->path, l->path_len)) {
        place = fcntl(base != -1 ? base : r->slash, F_DUPFD_CLOEXEC, 0);
        st = place == -1 ? FP_BUSY : FP_OK;
    }
    if (st == FP_OK && base == -1)
        tell_root(place, &l->names, a);
    if (st == FP_OK)
        st = walk(copy, base != -1 ? t->base_len : 1, l->path_len, &l->names, &place, a);
    if (st == FP_OK && a->steps[a->n_steps - 1].end == l->path_len)
        st = finish(r, t, &place, a);
    fp_close(&place);
    if (st != FP_OK) {
        fp_close(&a->fd);
        fp_answer_init(a, st);
    }
}
