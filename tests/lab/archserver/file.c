/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MIN_PAGE 4096u

/* Linux 6.5's; Debian 12's headers have neither number nor types. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
struct cache_range {
    uint64_t offset, length;
};
struct cache_pages {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

char *file_scratch(void)
{
    static _Thread_local char buffer[FILE_CHUNK];

    return buffer;
}

int file_describe(const struct stat *st, struct file *file)
{
    uid_t us = geteuid();

    if (!S_ISREG(st->st_mode))
        return 403;
    file->size = (uint64_t)st->st_size;
    file->may_mincore = us == 0 || us == st->st_uid;
    http_date(st->st_mtime, file->modified);
    return 0;
}

static int status_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG: return 404;
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENXIO: return 403;
    default: return 500;
    }
}

int file_open(int root_fd, const char *path, struct file *file_r)
{
    struct stat st;
    int status;

    *file_r = FILE_NONE;
    /* Without waiting for the other side of a FIFO. */
    file_r->fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file_r->fd < 0)
        return status_of(errno);
    status = fstat(file_r->fd, &st) != 0 ? 500 : file_describe(&st, file_r);
    if (status != 0)
        file_end(file_r);
    return status;
}

bool file_map(struct file *file)
{
    void *mapping;

    if (file->size == 0)
        return true;
    mapping = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
    if (mapping == MAP_FAILED)
        return false;
    file->mapping = mapping;
    return true;
}

bool file_load(struct file *file)
{
    uint64_t done = 0;

    file->content = malloc(file->size + 1);
    while (file->content != NULL && done < file->size) {
        ssize_t n = pread(file->fd, file->content + done, file->size - done, (off_t)done);

        if (n <= 0) {
            free(file->content);
            file->content = NULL;
        }
        done += n > 0 ? (uint64_t)n : 0;
    }
    if (file->content == NULL)
        return false;
    (void)close(file->fd);
    file->fd = -1;
    return true;
}

void file_read_in(int fd, uint64_t offset, uint64_t length)
{
    while (length > 0) {
        size_t part = length < FILE_CHUNK ? (size_t)length : FILE_CHUNK;
        ssize_t n = pread(fd, file_scratch(), part, (off_t)offset);

        if (n <= 0)
            return;
        offset += (uint64_t)n;
        length -= (uint64_t)n;
    }
}

static bool mapping_resident(const struct file *file, uint64_t offset, uint64_t length)
{
    unsigned char pages[FILE_CHUNK / MIN_PAGE + 2];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t from = offset - offset % page;
    size_t count = (size_t)((offset + length - from + page - 1) / page);

    if (count > sizeof(pages) || mincore(file->mapping + from, (size_t)(offset + length - from), pages) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if ((pages[i] & 1) == 0)
            return false;
    return true;
}

/* True if the page cache has all pages, read or still being read: for file systems without RWF_NOWAIT. */
static bool pages_present(int fd, uint64_t offset, uint64_t length)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct cache_range range = { offset, length };
    struct cache_pages pages;

    return syscall(SYS_cachestat, fd, &range, &pages, 0) == 0
           && pages.cached >= (offset + length + page - 1) / page - offset / page;
}

ssize_t file_read_resident(const struct file *file, char *buffer, size_t length, uint64_t offset)
{
    struct iovec part = { buffer, length };
    ssize_t n = preadv2(file->fd, &part, 1, (off_t)offset, RWF_NOWAIT);

    if (n >= 0 || errno != EOPNOTSUPP)
        return n;
    if (pages_present(file->fd, offset, length))
        return pread(file->fd, buffer, length, (off_t)offset);
    errno = EAGAIN;
    return -1;
}

bool file_resident(const struct file *file, uint64_t offset, uint64_t length)
{
    if (file->mapping != NULL && file->may_mincore)
        return length == 0 || mapping_resident(file, offset, length);
    for (uint64_t done = 0; done < length;) {
        size_t part = length - done < FILE_CHUNK ? (size_t)(length - done) : FILE_CHUNK;
        ssize_t n = file_read_resident(file, file_scratch(), part, offset + done);

        if (n < 0)
            return false;
        if (n == 0)
            return true; /* the file became shorter: sending it will show */
        done += (uint64_t)n;
    }
    return true;
}

void file_end(struct file *file)
{
    if (file->mapping != NULL)
        (void)munmap(file->mapping, file->size);
    free(file->content);
    if (file->fd >= 0)
        (void)close(file->fd);
    *file = FILE_NONE;
}
