/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that PHP finds in the place of the C library's, by import tables that are led here. With
 * FP_PRELOADED they are a library's, and php-fpm's own calls lead here by their names. Its extensions
 * are loaded with RTLD_DEEPBIND, which looks for names in the C library first, so their import tables
 * are led here when they come.
 *
 * All other functions are the C library's: statx() tells more than an answer has.
 */
#include "config.h"
#include "files/calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/imports.h"
#include "files/answers.h"
#include "files/devices.h"
#include "files/directories.h"
#include "files/opens.h"

#ifdef FP_PRELOADED
#define EXPORTED  __attribute__((visibility("default")))
#define OWN(name) name

/* The C library's own functions. */
static struct {
    int (*stat)(const char *, struct stat *);
    int (*lstat)(const char *, struct stat *);
    int (*fstatat)(int, const char *, struct stat *, int);
    int (*fstat)(int, struct stat *);
    int (*open)(const char *, int, ...);
    ssize_t (*read)(int, void *, size_t);
    ssize_t (*pread)(int, void *, size_t, off_t);
    off_t (*lseek)(int, off_t, int);
    int (*flock)(int, int);
    int (*lockf)(int, int, off_t);
    int (*fcntl)(int, int, ...);
    int (*access)(const char *, int);
    int (*faccessat)(int, const char *, int, int);
    void *(*dlopen)(const char *, int);
    DIR *(*opendir)(const char *);
    struct dirent *(*readdir)(DIR *);
    int (*readdir_r)(DIR *, struct dirent *, struct dirent **);
    void (*rewinddir)(DIR *);
    void (*seekdir)(DIR *, long);
    long (*telldir)(DIR *);
    int (*dirfd)(DIR *);
    int (*closedir)(DIR *);
    int (*glob)(const char *, int, int (*)(const char *, int), glob_t *);
    int (*unshare)(int);
    int (*setns)(int, int);
    int (*chroot)(const char *);
} libc;

/* Another library's constructor may call before ours. */
#define REAL(name) \
    (libc.name != NULL ? libc.name : (*(void **)&libc.name = dlsym(RTLD_NEXT, #name), libc.name))
#else
#define EXPORTED   static
#define OWN(name)  own_##name
#define REAL(name) name
#endif

/* ---- metadata ---- */

static struct timespec time_of(const struct fp_time *t)
{
    return (struct timespec){ t->sec, (long)t->nsec };
}

/* False: the answer lacks something of it. */
static bool fill(struct stat *st, const struct fp_meta *m)
{
    if (S_ISCHR(m->mode) || S_ISBLK(m->mode))
        return false;
    *st = (struct stat){ .st_dev = m->dev,
                         .st_ino = m->ino,
                         .st_mode = m->mode,
                         .st_nlink = (nlink_t)m->nlink,
                         .st_uid = m->uid,
                         .st_gid = m->gid,
                         .st_size = (off_t)m->size,
                         .st_blksize = (blksize_t)m->blksize,
                         .st_blocks = (blkcnt_t)m->blocks,
                         .st_atim = time_of(&m->atime),
                         .st_mtim = time_of(&m->mtime),
                         .st_ctim = time_of(&m->ctime) };
    return true;
}

/* found: 0 or an errno. */
static int result_of(int found)
{
    if (found != 0)
        errno = found;
    return found == 0 ? 0 : -1;
}

/* True if that was the answer to the call: *result_r, and errno. */
static bool answer_stat(const char *path, struct stat *st, bool follow, int *result_r)
{
    struct fp_meta m;
    const int found = fp_files_find(path, follow, &m);

    if (found == FP_FILES_UNKNOWN || (found == 0 && !fill(st, &m)))
        return false;
    *result_r = result_of(found);
    return true;
}

/* What the C library said, which had to be called. */
static int called(int result)
{
    fp_files_called();
    return result;
}

EXPORTED int OWN(stat)(const char *path, struct stat *st)
{
    int result;

    return answer_stat(path, st, true, &result) ? result : called(REAL(stat)(path, st));
}

EXPORTED int OWN(lstat)(const char *path, struct stat *st)
{
    int result;

    return answer_stat(path, st, false, &result) ? result : called(REAL(lstat)(path, st));
}

EXPORTED int OWN(fstatat)(int dir, const char *path, struct stat *st, int flags)
{
    int result;

    if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) == 0
        && answer_stat(path, st, (flags & AT_SYMLINK_NOFOLLOW) == 0, &result))
        return result;
    return called(REAL(fstatat)(dir, path, st, flags));
}

static int accessed(const char *path, int mode, int result)
{
    fp_files_accessed(path, mode, result == 0 ? 0 : errno);
    return result;
}

EXPORTED int OWN(access)(const char *path, int mode)
{
    const int found = fp_files_access(path, mode);

    return found != FP_FILES_UNKNOWN ? result_of(found) : accessed(path, mode, called(REAL(access)(path, mode)));
}

/* The effective ids are the real ones, or there is no answer. */
EXPORTED int OWN(faccessat)(int dir, const char *path, int mode, int flags)
{
    const int found = (flags & ~AT_EACCESS) == 0 ? fp_files_access(path, mode) : FP_FILES_UNKNOWN;

    return found != FP_FILES_UNKNOWN ? result_of(found)
                                     : accessed(path, mode, called(REAL(faccessat)(dir, path, mode, flags)));
}

/* ---- files opened for reading ---- */

/* The program's own name for its file: fstat() of a copy tells of the file. */
EXPORTED int OWN(fstat)(int fd, struct stat *st)
{
    const int result = REAL(fstat)(fd, st);
    struct fp_meta m;

    if (result == 0 && fp_files_is_copy(st->st_dev) && fp_files_told(fd, st, &m))
        fill(st, &m);
    return result;
}

static int open_file(const char *path, int flags, mode_t mode)
{
    int fd;

    if (fp_files_open(path, flags, &fd))
        return fd;
    fd = called(REAL(open)(path, flags, mode));
    if (fd != -1)
        fp_files_opened(fd);
    return fd;
}

EXPORTED int OWN(open)(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list more;

    va_start(more, flags);
    if (__OPEN_NEEDS_MODE(flags))
        mode = va_arg(more, mode_t);
    va_end(more);
    return open_file(path, flags, mode);
}

EXPORTED int OWN(__open_2)(const char *path, int flags);

EXPORTED int OWN(__open_2)(const char *path, int flags)
{
    return open_file(path, flags, 0);
}

/* Others may have written more behind its end. */
EXPORTED ssize_t OWN(read)(int fd, void *buf, size_t size)
{
    ssize_t n = REAL(read)(fd, buf, size);

    return n == 0 && size > 0 && fp_files_reopen(fd) ? REAL(read)(fd, buf, size) : n;
}

EXPORTED ssize_t OWN(pread)(int fd, void *buf, size_t size, off_t at)
{
    ssize_t n = REAL(pread)(fd, buf, size, at);

    return n == 0 && size > 0 && fp_files_reopen(fd) ? REAL(pread)(fd, buf, size, at) : n;
}

EXPORTED off_t OWN(lseek)(int fd, off_t at, int whence)
{
    if (whence != SEEK_SET && whence != SEEK_CUR)
        fp_files_reopen(fd);
    return REAL(lseek)(fd, at, whence);
}

/* A lock is to keep others from the file, not from a copy. */
EXPORTED int OWN(flock)(int fd, int operation)
{
    return fp_files_can_be_locked(fd) ? REAL(flock)(fd, operation) : -1;
}

EXPORTED int OWN(lockf)(int fd, int operation, off_t size)
{
    return fp_files_can_be_locked(fd) ? REAL(lockf)(fd, operation, size) : -1;
}

EXPORTED int OWN(fcntl)(int fd, int operation, ...)
{
    va_list more;
    void *argument;

    va_start(more, operation);
    argument = va_arg(more, void *);
    va_end(more);
    switch (operation) {
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_SETLEASE:
    case F_GETLEASE: return fp_files_can_be_locked(fd) ? REAL(fcntl)(fd, operation, argument) : -1;
    default: return REAL(fcntl)(fd, operation, argument);
    }
}

/* ---- directories ---- */

#if __SIZEOF_POINTER__ == 8
/* The kernel's stream in the place of ours. False if there is none. */
static bool make_real(struct fp_files_stream *s)
{
    DIR *real = REAL(opendir)(fp_files_stream_path(s));

    if (real != NULL && !fp_files_stream_take(s, real, REAL(dirfd)(real))) {
        REAL(closedir)(real);
        real = NULL;
    }
    return real != NULL;
}

/* The stream that the C library is to be called with. */
static DIR *real_of(DIR *d)
{
    const struct fp_files_stream *s = fp_files_stream(d);

    return s != NULL ? fp_files_stream_real(s) : d;
}

EXPORTED DIR *OWN(opendir)(const char *path)
{
    DIR *d;

    if (fp_files_opendir(path, &d))
        return d;
    d = REAL(opendir)(path);
    fp_files_called();
    return d;
}

EXPORTED struct dirent *OWN(readdir)(DIR *d)
{
    DIR *real = real_of(d);

    return real != NULL ? REAL(readdir)(real) : fp_files_stream_next(fp_files_stream(d));
}

EXPORTED void OWN(rewinddir)(DIR *d)
{
    DIR *real = real_of(d);

    if (real != NULL)
        REAL(rewinddir)(real);
    else if (!fp_files_stream_rewind(fp_files_stream(d)) && !make_real(fp_files_stream(d)))
        fp_files_stream_seek(fp_files_stream(d), 0);
}

EXPORTED int OWN(closedir)(DIR *d)
{
    struct fp_files_stream *s = fp_files_stream(d);
    DIR *real = real_of(d);

    if (s != NULL)
        fp_files_stream_close(s);
    return real != NULL ? REAL(closedir)(real) : 0;
}

static void *open_directory(const char *path)
{
    return OWN(opendir)(path);
}

static struct dirent *read_directory(void *d)
{
    return OWN(readdir)(d);
}

static void close_directory(void *d)
{
    OWN(closedir)(d);
}

/* The C library's own calls in glob() cannot be led, but it takes others. */
EXPORTED int OWN(glob)(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *g)
{
    int result;

    if ((flags & GLOB_ALTDIRFUNC) != 0)
        return REAL(glob)(pattern, flags, failed, g);
    g->gl_opendir = open_directory;
    g->gl_readdir = read_directory;
    g->gl_closedir = close_directory;
    g->gl_stat = OWN(stat);
    g->gl_lstat = OWN(lstat);
    result = REAL(glob)(pattern, flags | GLOB_ALTDIRFUNC, failed, g);
    g->gl_flags &= ~GLOB_ALTDIRFUNC;
    return result;
}

#ifdef FP_PRELOADED
/* PHP calls none of these, but other libraries may that meet the C library's names here. */

EXPORTED int dirfd(DIR *d)
{
    struct fp_files_stream *s = fp_files_stream(d);
    DIR *real = real_of(d);
    long at;

    if (real != NULL)
        return REAL(dirfd)(real);
    at = fp_files_stream_count(s);
    if (!make_real(s)) {
        errno = EINVAL;
        return -1;
    }
    while (at-- > 0 && REAL(readdir)(fp_files_stream_real(s)) != NULL)
        ;
    return REAL(dirfd)(fp_files_stream_real(s));
}

EXPORTED long telldir(DIR *d)
{
    DIR *real = real_of(d);

    return real != NULL ? REAL(telldir)(real) : fp_files_stream_tell(fp_files_stream(d));
}

EXPORTED void seekdir(DIR *d, long at)
{
    DIR *real = real_of(d);

    if (real != NULL)
        REAL(seekdir)(real, at);
    else
        fp_files_stream_seek(fp_files_stream(d), at);
}

static int read_into(DIR *d, struct dirent *entry, struct dirent **result)
{
    DIR *real = real_of(d);
    const struct dirent *next;

    if (real != NULL)
        return REAL(readdir_r)(real, entry, result);
    next = fp_files_stream_next(fp_files_stream(d));
    *result = next != NULL ? memcpy(entry, next, next->d_reclen) : NULL;
    return 0;
}

EXPORTED struct dirent64 *readdir64(DIR *d) __attribute__((alias("readdir")));
EXPORTED int readdir_r(DIR *d, struct dirent *entry, struct dirent **result)
    __attribute__((alias("read_into")));
EXPORTED int readdir64_r(DIR *d, struct dirent64 *entry, struct dirent64 **result)
    __attribute__((alias("read_into")));
EXPORTED int glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob64_t *g)
    __attribute__((alias("glob")));
#endif
#endif

/* ---- the same by other names: of programs for large files, and of those built before glibc 2.33 ---- */

#if __SIZEOF_POINTER__ == 8
#define ALSO(type, name, parameters, call) \
    EXPORTED type OWN(name) parameters; \
    EXPORTED type OWN(name) parameters \
    { \
        return call; \
    }

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "there is one struct stat");

#ifdef FP_PRELOADED
EXPORTED int open64(const char *path, int flags, ...) __attribute__((alias("open")));
EXPORTED int fcntl64(int fd, int operation, ...) __attribute__((alias("fcntl")));
EXPORTED off64_t lseek64(int fd, off64_t at, int whence) __attribute__((alias("lseek")));
#endif
ALSO(int, stat64, (const char *path, struct stat64 *st), OWN(stat)(path, (struct stat *)st))
ALSO(int, lstat64, (const char *path, struct stat64 *st), OWN(lstat)(path, (struct stat *)st))
ALSO(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags),
       OWN(fstatat)(dir, path, (struct stat *)st, flags))
ALSO(int, fstat64, (int fd, struct stat64 *st), OWN(fstat)(fd, (struct stat *)st))
ALSO(int, __fxstat, (int version, int fd, struct stat *st), ((void)version, OWN(fstat)(fd, st)))
ALSO(int, __fxstat64, (int version, int fd, struct stat *st), ((void)version, OWN(fstat)(fd, st)))
ALSO(int, __open64_2, (const char *path, int flags), OWN(__open_2)(path, flags))
ALSO(ssize_t, pread64, (int fd, void *buf, size_t size, off_t at), OWN(pread)(fd, buf, size, at))
ALSO(int, lockf64, (int fd, int operation, off_t size), OWN(lockf)(fd, operation, size))
ALSO(int, __xstat, (int version, const char *path, struct stat *st), ((void)version, OWN(stat)(path, st)))
ALSO(int, __lxstat, (int version, const char *path, struct stat *st), ((void)version, OWN(lstat)(path, st)))
ALSO(int, __fxstatat, (int version, int dir, const char *path, struct stat *st, int flags),
       ((void)version, OWN(fstatat)(dir, path, st, flags)))
ALSO(int, __xstat64, (int version, const char *path, struct stat *st), ((void)version, OWN(stat)(path, st)))
ALSO(int, __lxstat64, (int version, const char *path, struct stat *st), ((void)version, OWN(lstat)(path, st)))
ALSO(int, __fxstatat64, (int version, int dir, const char *path, struct stat *st, int flags),
       ((void)version, OWN(fstatat)(dir, path, st, flags)))
#endif

/* ---- what the process sees of the file system ---- */

EXPORTED int OWN(unshare)(int flags)
{
    fp_files_end();
    return REAL(unshare)(flags);
}

EXPORTED int OWN(setns)(int fd, int type)
{
    fp_files_end();
    return REAL(setns)(fd, type);
}

EXPORTED int OWN(chroot)(const char *path)
{
    fp_files_end();
    return REAL(chroot)(path);
}

/* ---- import tables ---- */

#define LED(name)        LED_TO(name, name)
#define LED_TO(name, to) { #name, NULL, (fp_function *)OWN(to) }

EXPORTED void *OWN(dlopen)(const char *name, int flags);

static int lead(const void *inside, const char **why_r)
{
    static const struct fp_import imports[] = {
        LED(stat), LED(lstat), LED(fstatat), LED(access), LED(faccessat),
        LED(fstat), LED(open), LED(__open_2), LED(read), LED(pread), LED(lseek), LED(flock),
        LED(lockf), LED(fcntl),
#if __SIZEOF_POINTER__ == 8
        LED(stat64), LED(lstat64), LED(fstatat64), LED(__xstat), LED(__lxstat), LED(__fxstatat),
        LED(__xstat64), LED(__lxstat64), LED(__fxstatat64), LED(fstat64), LED(__fxstat), LED(__fxstat64),
        LED_TO(open64, open), LED(__open64_2), LED(pread64), LED_TO(lseek64, lseek), LED(lockf64),
        LED_TO(fcntl64, fcntl), LED(opendir), LED(readdir), LED_TO(readdir64, readdir), LED(rewinddir),
        LED(closedir), LED(glob), LED_TO(glob64, glob),
#ifdef FP_PRELOADED
        LED(dirfd), LED(telldir), LED(seekdir), LED_TO(readdir_r, read_into), LED_TO(readdir64_r, read_into),
#endif
#endif
        LED(unshare), LED(setns), LED(chroot), LED(dlopen),
    };

    return fp_imports_lead(inside, imports, sizeof(imports) / sizeof(imports[0]), why_r);
}

EXPORTED void *OWN(dlopen)(const char *name, int flags)
{
    void *handle = REAL(dlopen)(name, flags);
    const char *why;

    if (handle != NULL && name != NULL)
        lead(((struct link_map *)handle)->l_ld, &why);
    return handle;
}

#ifndef FP_PRELOADED
/* What makes a library an extension of PHP. */
static const void *extension(void *handle)
{
    const void *symbol = dlsym(handle, "get_module");

    return symbol != NULL ? symbol : dlsym(handle, "zend_extension_entry");
}

int fp_files_lead_php(const void *php, const char **why_r)
{
    struct link_map *object = dlopen(NULL, RTLD_LAZY);
    const char *why;

    for (; object != NULL; object = object->l_next) {
        void *handle = object->l_name[0] == '/' ? dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;

        if (handle != NULL && extension(handle) != NULL)
            lead(extension(handle), &why);
        if (handle != NULL)
            dlclose(handle);
    }
    return lead(php, why_r);
}
#endif
