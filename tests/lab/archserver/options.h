/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: one architecture, one way of sending, one kind of cache,
 * and the bounds.  Combinations that make no sense are refused here.
 */
#ifndef ARCHSERVER_OPTIONS_H
#define ARCHSERVER_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum arch {
    ARCH_MP,
    ARCH_MT,
    ARCH_SPED,
    ARCH_SYMPED,
    ARCH_SHARED_SYMPED,
    ARCH_AMPED,
    ARCH_NEW_FLASH,
    ARCH_PIPELINE
};
enum send_by { SEND_BLOCKING_SENDFILE, SEND_NONBLOCKING_SENDFILE, SEND_WRITEV, SEND_MMAP, SEND_WAYS };
enum cache_kind { CACHE_NONE, CACHE_FD, CACHE_CONTENT, CACHE_KINDS };

struct options {
    enum arch arch;
    enum send_by send_by;
    enum cache_kind cache;
    const char *root;
    const char *host;
    uint16_t port;
    unsigned connections;   /* at most, of the whole server */
    unsigned workers;       /* processes, threads or helpers: what the architecture has several of */
    unsigned cache_entries; /* of one cache */
    uint64_t cache_bytes;   /* of contents in one cache */
    const char *turns_file; /* NULL: turns of event loops are not counted */
    unsigned idle_s;        /* a client that neither sends nor reads for so long is left */
};

/* Returns -1 to go on; otherwise the program ends with this status, and the reason was printed. */
int options_parse(int argc, char **argv, struct options *options_r);

const char *options_arch_name(enum arch arch);

#endif
