/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/packet.h"

/* A system may demand that data are sealed against execution
 * (vm.memfd_noexec), and an older one does not know the seal. */
int fp_memfd_create(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | FP_MFD_NOEXEC_SEAL);

    return fd != -1 || errno != EINVAL ? fd : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* True if the kernel may refuse a page of an area when a process touches it first (vm.overcommit_memory):
 * SIGBUS. As it was at the first call: later a filter may allow no look. */
static bool is_memory_counted(void)
{
    static char mode;
    int fd;

    if (mode == '\0') {
        fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
        if (fd == -1 || read(fd, &mode, 1) != 1)
            mode = '0';
        fp_close(&fd);
    }
    return mode == '2';
}

static int reserve(int fd, size_t size)
{
    int rc;

    do {
        rc = fallocate(fd, 0, 0, (off_t)size);
    } while (rc == -1 && errno == EINTR);
    return rc;
}

void *fp_area_create(const char *name, size_t size, unsigned seals, int *fd_r)
{
    void *p = MAP_FAILED;
    int fd = fp_memfd_create(name);

    if (fd != -1 && ftruncate(fd, (off_t)size) == 0 && (!is_memory_counted() || reserve(fd, size) == 0))
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED && fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == -1) {
        munmap(p, size);
        p = MAP_FAILED;
    }
    if (p == MAP_FAILED)
        fp_close(&fd);
    *fd_r = fd;
    return p == MAP_FAILED ? NULL : p;
}

static size_t in_pages(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (size + page - 1) / page * page;
}

/* The mapping that is written, and behind it another one, which the seal makes read-only for good. */
void *fp_area_publish(const char *name, size_t size)
{
    const size_t whole = in_pages(size);
    int fd;
    void *first = fp_area_create(name, whole, F_SEAL_FUTURE_WRITE, &fd);
    char *both = mmap(NULL, 2 * whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool done = first != NULL && both != MAP_FAILED
                      && mmap(both + whole, whole, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED
                      && mremap(first, whole, whole, MREMAP_MAYMOVE | MREMAP_FIXED, both) != MAP_FAILED;

    fp_close(&fd);
    return done ? both : NULL;
}

int fp_area_end_writing(void *area, size_t size)
{
    const size_t whole = in_pages(size);

    return mremap((char *)area + whole, whole, whole, MREMAP_MAYMOVE | MREMAP_FIXED, area) != MAP_FAILED ? 0
                                                                                                         : -1;
}

size_t fp_area_sealed_size(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &st) == -1 || st.st_size < 0)
        return 0;
    return (size_t)st.st_size;
}

static const void *map_area(int fd, size_t size)
{
    const void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

bool fp_area_read(int fd, size_t from, void *to, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(fd, (uint8_t *)to + done, n - done, (off_t)(from + done));

        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

bool fp_area_view_open(struct fp_area_view *v, int fd, size_t head, bool map)
{
    const size_t size = fp_area_sealed_size(fd);

    *v = (struct fp_area_view){ NULL, size, map ? size : head, -1 };
    if (size <= head)
        return false;
    v->bytes = map_area(fd, v->mapped);
    if (v->bytes != NULL && (map || (v->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) != -1))
        return true;
    fp_area_view_close(v);
    return false;
}

void fp_area_view_close(struct fp_area_view *v)
{
    if (v->bytes == NULL)
        return;
    fp_area_unmap(v->bytes, v->mapped);
    fp_close(&v->fd);
    v->bytes = NULL;
}

bool fp_area_view_copy(const struct fp_area_view *v, size_t from, void *to, size_t n)
{
    if (v->fd != -1)
        return fp_area_read(v->fd, from, to, n);
    memcpy(to, v->bytes + from, n);
    return true;
}

void fp_area_unmap(const void *area, size_t size)
{
    if (area != NULL)
        munmap((void *)(uintptr_t)area, size);
}
