/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file as it is served: its descriptor, and where it is asked for, its
 * mapping or its contents.  All calls here may wait for the disk but
 * file_resident.
 */
#ifndef ARCHSERVER_FILE_H
#define ARCHSERVER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "http.h"

/* A cache keeps the contents of no larger file: the limit of SPECweb99's largest class is below. */
#define FILE_CONTENT_MAX (1u << 20)
/* Read at once, by helpers too. */
#define FILE_CHUNK (128u << 10)

struct file {
    int fd;           /* -1: none */
    int entry;        /* of the cache that has a reference counted for this copy; 0: this copy owns all */
    bool may_mincore; /* the kernel tells of pages only who could write the file */
    uint64_t size;
    char *mapping; /* of all of it, or NULL */
    char *content; /* all of it, or NULL */
    char modified[HTTP_DATE_MAX];
};

#define FILE_NONE ((struct file){ .fd = -1 })

/* Opens a path below root_fd. Returns 0, or the status of an error: 403, 404, 500. */
int file_open(int root_fd, const char *path, struct file *file_r);

/* Fills all but the descriptor from what fstat said. Returns as file_open. */
int file_describe(const struct stat *st, struct file *file);

/* Maps all of it. Returns false if that fails. */
bool file_map(struct file *file);

/* Reads all of it into memory, and closes it. Returns false if that fails. */
bool file_load(struct file *file);

/* Reads a part of it and forgets it: the page cache has it then. */
void file_read_in(int fd, uint64_t offset, uint64_t length);

/*
 * True if a part of it, at most FILE_CHUNK, is in memory, so that sending it
 * does not wait. Never waits itself. A mapping is asked by mincore. Else the part is read without waiting,
 * which is exact and costs a copy: cachestat counts pages that are still being read.
 */
bool file_resident(const struct file *file, uint64_t offset, uint64_t length);

/* As pread, but fails with EAGAIN where it would wait. */
ssize_t file_read_resident(const struct file *file, char *buffer, size_t length, uint64_t offset);

/* FILE_CHUNK bytes, one buffer for each thread. */
char *file_scratch(void);

/* Closes, unmaps and frees what a copy owns, whatever its entry. */
void file_end(struct file *file);

#endif
