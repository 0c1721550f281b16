/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Areas as a client maps them, each with an untouchable page behind it, so that reading on is
 * noticed. For programs that are linked with --wrap=mmap.
 */
#ifndef FP_AREA_KIT_H
#define FP_AREA_KIT_H

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);

/* The page stays reserved when the area is unmapped. */
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
    uint8_t *reserved;

    if (at != NULL || fd == -1 || (prot & PROT_WRITE) != 0)
        return __real_mmap(at, size, prot, flags, fd, offset);
    reserved = __real_mmap(NULL, whole + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED)
        return MAP_FAILED;
    return __real_mmap(reserved, size, prot, flags | MAP_FIXED, fd, offset);
}

/* A copy of an area with these seals, in which bytes may be changed; -1. */
static inline int area_kit_copy(const void *bytes, size_t size, int seals)
{
    int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd == -1 || pwrite(fd, bytes, size, 0) != (ssize_t)size || fcntl(fd, F_ADD_SEALS, seals) == -1)
        return -1;
    return fd;
}

#endif
