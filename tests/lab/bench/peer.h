/* SPDX-License-Identifier: Apache-2.0
 *
 * The server: its address, and how to talk to it.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "transport.h"

#include <stdint.h>
#include <sys/socket.h>

struct bench_args;

struct bench_peer {
    struct sockaddr_storage address;
    socklen_t address_size;
    const struct bench_transport *transport;
    const struct bench_transport *tls; /* NULL, or the TLS that `transport` is */
    uint64_t opened;                   /* connections so far */
};

/* 0, or -1 after an error, which was printed. */
int bench_peer_open(struct bench_peer *peer, const struct bench_args *args);
void bench_peer_close(struct bench_peer *peer);

#endif
