/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "peer.h"

#include "args.h"
#include "tls.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

static int resolve(struct bench_peer *peer, const struct bench_args *args)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    struct addrinfo *found;
    int error = getaddrinfo(args->host, args->port, &hints, &found);

    if (error != 0) {
        (void)fprintf(stderr, "flashpache-bench: %s port %s: %s\n", args->host, args->port,
                      gai_strerror(error));
        return -1;
    }
    memcpy(&peer->address, found->ai_addr, found->ai_addrlen);
    peer->address_size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int bench_peer_open(struct bench_peer *peer, const struct bench_args *args)
{
    *peer = (struct bench_peer){ .transport = &bench_plain };
    if (resolve(peer, args) != 0)
        return -1;
    if (!args->tls)
        return 0;
    peer->tls = bench_tls_create(args->host);
    peer->transport = peer->tls;
    return peer->tls == NULL ? -1 : 0;
}

void bench_peer_close(struct bench_peer *peer)
{
    bench_tls_destroy(&peer->tls);
}
