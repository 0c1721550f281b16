/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "common/area.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/packet.h"

void *fp_area_create(const char *name, size_t size, unsigned seals, int *fd_r)
{
    void *p = MAP_FAILED;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd != -1 && ftruncate(fd, (off_t)size) == 0)
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

size_t fp_area_sealed_size(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &st) == -1 || st.st_size < 0)
        return 0;
    return (size_t)st.st_size;
}

const void *fp_area_map(int fd, size_t size)
{
    const void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

void fp_area_unmap(const void *area, size_t size)
{
    if (area != NULL)
        munmap((void *)(uintptr_t)area, size);
}
