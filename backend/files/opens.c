/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/opens.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/answers.h"
#include "files/devices.h"
#include "shared/contents.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define DESCRIPTORS 1024 /* whose paths are remembered; with a greater one a file is opened itself */
#define META_MOST   120  /* bytes of encoded metadata; twice as many fit into a memfd's name */
#define PREFIX      "flashpache:"
#define NAME_ROOM   (sizeof(PREFIX) + 2 * META_MOST)
#define LINK_PREFIX "/memfd:" PREFIX
#define LINK_ROOM   (sizeof(LINK_PREFIX) + 2 * META_MOST + sizeof(" (deleted)"))
#define PROC_ROOM   32 /* of "/proc/self/fd/" and a number */
#define SEALS       (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* The file that was copied, as it was then. */
struct source {
    struct fp_meta meta;
    char path[];
};

static struct {
    pthread_mutex_t mutex;
    struct {
        _Atomic ino_t ino; /* of the memfd; the descriptor may be another one by now. 0: there was none */
        struct source *source;
    } opened[DESCRIPTORS];
} paths = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static _Atomic dev_t memfd_dev; /* 0: none was made yet */

/* Of the descriptor itself, also of a copy: fstat() is the program's, which is told of the file. */
static int look_at(int fd, struct stat *st)
{
    return fstatat(fd, "", st, AT_EMPTY_PATH);
}

/* ---- the metadata in a memfd's name ---- */

static void write_name(char name[NAME_ROOM], const struct fp_meta *m)
{
    uint8_t bytes[META_MOST];
    struct fp_writer w;
    size_t at = sizeof(PREFIX) - 1;

    memcpy(name, PREFIX, sizeof(PREFIX));
    fp_writer_init(&w, bytes, sizeof(bytes));
    fp_put_meta(&w, m);
    for (size_t i = 0; i < w.len; i++)
        at += (size_t)snprintf(name + at, NAME_ROOM - at, "%02x", bytes[i]);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_name(const char *text, size_t len, struct fp_meta *m)
{
    uint8_t bytes[META_MOST];
    struct fp_reader r;
    size_t n = 0;

    for (; n < META_MOST && 2 * n + 1 < len && digit(text[2 * n]) != -1 && digit(text[2 * n + 1]) != -1; n++)
        bytes[n] = (uint8_t)(digit(text[2 * n]) << 4 | digit(text[2 * n + 1]));
    fp_reader_init(&r, bytes, n);
    fp_get_meta(&r, m);
    return fp_reader_done(&r);
}

/* Anybody can give a memfd such a name and pass it on: only one of this user's or root's, made as ours, is believed. */
static bool is_as_made(int fd, const struct stat *st)
{
    const int seals = fcntl(fd, F_GET_SEALS);

    return (st->st_uid == geteuid() || st->st_uid == 0) && seals != -1 && (seals & SEALS) == SEALS;
}

static bool told_by_name(int fd, const struct stat *st, struct fp_meta *m)
{
    char link[PROC_ROOM], name[LINK_ROOM];
    ssize_t n;

    if (!is_as_made(fd, st))
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, name, sizeof(name));
    return n > (ssize_t)sizeof(LINK_PREFIX) && memcmp(name, LINK_PREFIX, sizeof(LINK_PREFIX) - 1) == 0
           && read_name(name + sizeof(LINK_PREFIX) - 1, (size_t)n - (sizeof(LINK_PREFIX) - 1), m)
           && m->size == (uint64_t)st->st_size;
}

bool fp_files_is_copy(dev_t dev)
{
    return !fp_files_is_inside() && dev != 0 && dev == atomic_load_explicit(&memfd_dev, memory_order_relaxed);
}

/* ---- opening ---- */

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, bytes, len);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* A signal would come of a copy that is longer than the process's files may be. */
static bool may_write(uint64_t size)
{
    struct rlimit most;

    return getrlimit(RLIMIT_FSIZE, &most) == 0 && (most.rlim_cur == RLIM_INFINITY || size <= most.rlim_cur);
}

/* Read-only, as the program wants it: a memfd's first descriptor could write. Returns -1 if there is
 * none to be had. */
static int make_copy(const struct fp_meta *m, const void *content, int flags)
{
    char name[NAME_ROOM], link[PROC_ROOM];
    int memfd, fd = -1;

    write_name(name, m);
    memfd = may_write(m->size) ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", memfd);
    if (memfd != -1 && write_all(memfd, content, m->size)
        && fcntl(memfd, F_ADD_SEALS, SEALS) == 0)
        fd = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | (flags & O_CLOEXEC));
    fp_close(&memfd);
    return fd;
}

static struct source *copy_source(const char *path, const struct fp_meta *m)
{
    const size_t size = strlen(path) + 1;
    struct source *s = malloc(sizeof(*s) + size);

    if (s != NULL) {
        s->meta = *m;
        memcpy(s->path, path, size);
    }
    return s;
}

static void before_fork(void)
{
    pthread_mutex_lock(&paths.mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&paths.mutex);
}

/* Another thread may hold the mutex when this one forks. */
static void lead_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* False: there is no place for it. */
static bool remember(int fd, const char *path, const struct fp_meta *m)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat st;
    struct source *copy = fd < DESCRIPTORS ? copy_source(path, m) : NULL, *former = NULL;

    if (copy == NULL || look_at(fd, &st) == -1) {
        free(copy);
        return false;
    }
    pthread_once(&once, lead_forks);
    atomic_store(&memfd_dev, st.st_dev);
    pthread_mutex_lock(&paths.mutex);
    former = paths.opened[fd].source;
    paths.opened[fd].source = copy;
    paths.opened[fd].ino = st.st_ino;
    pthread_mutex_unlock(&paths.mutex);
    free(former);
    return true;
}

bool fp_files_open(const char *path, int flags, int *fd_r)
{
    const int before = errno;
    struct fp_meta m;
    void *content = NULL;
    int found;

    if ((flags & ~(O_CLOEXEC | O_NOCTTY | O_LARGEFILE)) != O_RDONLY)
        return false;
    found = fp_files_read(path, &m, &content);
    *fd_r = -1;
    if (found != 0) {
        if (found != FP_FILES_UNKNOWN)
            errno = found;
        return found != FP_FILES_UNKNOWN;
    }
    if (content != NULL)
        *fd_r = make_copy(&m, content, flags);
    fp_copy_give_back(content, m.size);
    if (*fd_r != -1 && !remember(*fd_r, path, &m))
        fp_close(fd_r);
    errno = before;
    return *fd_r != -1;
}

/* ---- the file itself ---- */

static bool may_be_ours(int fd)
{
    return !fp_files_is_inside() && fd >= 0 && fd < DESCRIPTORS
           && atomic_load_explicit(&paths.opened[fd].ino, memory_order_relaxed) != 0;
}

/* A copy of the source of one of these descriptors, or NULL. st: what the kernel says of the descriptor. */
static struct source *source_of(int fd, const struct stat *st)
{
    struct source *s = NULL;

    if (!may_be_ours(fd) || !fp_files_is_copy(st->st_dev))
        return NULL;
    pthread_mutex_lock(&paths.mutex);
    if (paths.opened[fd].source != NULL && paths.opened[fd].ino == st->st_ino)
        s = copy_source(paths.opened[fd].source->path, &paths.opened[fd].source->meta);
    pthread_mutex_unlock(&paths.mutex);
    return s;
}

static bool is_unchanged(const char *path, const struct fp_meta *m)
{
    struct fp_meta now;

    return fp_files_find(path, true, &now) == 0 && now.dev == m->dev && now.ino == m->ino
           && now.size == m->size && fp_time_equal(&now.mtime, &m->mtime)
           && fp_time_equal(&now.ctime, &m->ctime);
}

/* True if this process has a record lock on the file, which the end of any of its descriptors would release (fcntl(2)).
 * Only another kind of lock finds it. */
static bool has_record_lock(int fd)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return syscall(SYS_fcntl, fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* Puts the file in the descriptor's place. False: the path leads to another file by now. */
static bool replace(int fd, const char *path, const struct fp_meta *m)
{
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const int flags = fcntl(fd, F_GETFD);
    struct stat st;
    bool done = file != -1 && look_at(file, &st) == 0 && st.st_dev == m->dev && st.st_ino == m->ino
                && fcntl(file, F_SETFL, fcntl(fd, F_GETFL)) == 0 && flags != -1
                && lseek(file, lseek(fd, 0, SEEK_CUR), SEEK_SET) != -1;

    done = done && dup3(file, fd, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) != -1;
    if (file != -1 && !has_record_lock(file))
        fp_close(&file);
    return done;
}

static bool reopen(int fd, const struct source *s)
{
    return s != NULL && !is_unchanged(s->path, &s->meta) && replace(fd, s->path, &s->meta);
}

/* A copy of the descriptor's source, or NULL. */
static struct source *find_source(int fd)
{
    struct stat st;

    return may_be_ours(fd) && look_at(fd, &st) == 0 ? source_of(fd, &st) : NULL;
}

bool fp_files_reopen(int fd)
{
    const int before = errno;
    struct source *s = find_source(fd);
    const bool done = reopen(fd, s);

    free(s);
    errno = before;
    return done;
}

bool fp_files_can_be_locked(int fd)
{
    const int before = errno;
    struct source *s = find_source(fd);
    const bool can = s == NULL || replace(fd, s->path, &s->meta);

    free(s);
    errno = can ? before : ENOLCK;
    return can;
}

bool fp_files_told(int fd, struct stat *st, struct fp_meta *m)
{
    const int before = errno;
    struct source *s = source_of(fd, st);
    bool told = false;

    if (reopen(fd, s)) {
        look_at(fd, st);
    } else if (s != NULL) {
        *m = s->meta;
        told = true;
    } else {
        told = told_by_name(fd, st, m);
    }
    free(s);
    errno = before;
    return told;
}
