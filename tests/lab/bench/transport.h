/* SPDX-License-Identifier: Apache-2.0
 *
 * How bytes travel over a connected, non-blocking socket: as they are, or through TLS.
 */
#ifndef BENCH_TRANSPORT_H
#define BENCH_TRANSPORT_H

#include <stddef.h>
#include <sys/types.h>

struct bench_stream {
    int fd;
    void *state; /* the transport's, from begin to end */
};

/*
 * receive and send are like recv and send; handshake returns 0 or -1. EAGAIN means: call again
 * after the next event. After another error problem() describes it.
 */
struct bench_transport {
    int (*begin)(const struct bench_transport *transport, struct bench_stream *stream);
    int (*handshake)(struct bench_stream *stream);
    ssize_t (*receive)(struct bench_stream *stream, char *data, size_t size);
    ssize_t (*send)(struct bench_stream *stream, const char *data, size_t size);
    void (*end)(struct bench_stream *stream);
    const char *(*problem)(void);
};

extern const struct bench_transport bench_plain;

#endif
