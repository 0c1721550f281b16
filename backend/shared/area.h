/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory that one process makes and others map: a memfd of fixed size.
 */
#ifndef FP_AREA_H
#define FP_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FP_MFD_NOEXEC_SEAL 0x0008u /* of memfd_create: since Linux 6.3; older headers lack it */

/* An empty memfd for data, which takes seals; close-on-exec and the caller's.  -1 with errno. */
int fp_memfd_create(const char *name);

/* Makes bytes of zero, mapped to be written. Where the system counts memory, it
 * promises all of them now. seals (F_SEAL_*) go beside those that fix size and seals.
 * *fd_r, close-on-exec, and the mapping are the caller's; NULL with errno, and -1. */
void *fp_area_create(const char *name, size_t size, unsigned seals, int *fd_r);

/* Zeroed memory that this process writes for as long as it lives.  A process that it forks sees it, too, and
 * gives up the right to write by fp_area_end_writing().  NULL with errno: the process should end. */
void *fp_area_publish(const char *name, size_t size);

/* This process can never write the area again, whatever calls it makes.  0, or -1 with errno. */
int fp_area_end_writing(void *area, size_t size);

/* The size of a memfd that cannot become smaller; 0 if it could. */
size_t fp_area_sealed_size(int fd);

/* Reads so many bytes of a memfd.  False: it has no more, or cannot be read. */
bool fp_area_read(int fd, size_t from, void *to, size_t n);

/*
 * A reader's view of a memfd that cannot become smaller. If there are many processes, each mapping costs page
 * tables, and a page fault for each few pages that it touches. Such a process reads by pread(2).
 */
struct fp_area_view {
    const uint8_t *bytes; /* mapped: all, or the first ones */
    size_t size, mapped;
    int fd; /* to read the rest; -1: all is mapped */
};

/* map: maps all, else only its first head bytes.  The descriptor stays the caller's.  False: the memfd could
 * become smaller, or has no more than these, or the system refuses. */
bool fp_area_view_open(struct fp_area_view *v, int fd, size_t head, bool map);
/* The view may be one of zeros, or one that could not be opened. */
void fp_area_view_close(struct fp_area_view *v);
/* Copies bytes, which lie inside.  The copy may have bytes of
 * different moments, in a word as well.  False: they cannot be read. */
bool fp_area_view_copy(const struct fp_area_view *v, size_t from, void *to, size_t n);

/* Ends either mapping; NULL is allowed. */
void fp_area_unmap(const void *area, size_t size);

#endif
