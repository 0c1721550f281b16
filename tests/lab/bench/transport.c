/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transport.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static int begin(const struct bench_transport *transport, struct bench_stream *stream)
{
    (void)transport;
    (void)stream;
    return 0;
}

static int handshake(struct bench_stream *stream)
{
    (void)stream;
    return 0;
}

static ssize_t receive(struct bench_stream *stream, char *data, size_t size)
{
    return recv(stream->fd, data, size, 0);
}

static ssize_t transmit(struct bench_stream *stream, const char *data, size_t size)
{
    return send(stream->fd, data, size, MSG_NOSIGNAL);
}

static void end(struct bench_stream *stream)
{
    (void)stream;
}

static const char *problem(void)
{
    return strerror(errno);
}

const struct bench_transport bench_plain = {
    .begin = begin,
    .handshake = handshake,
    .receive = receive,
    .send = transmit,
    .end = end,
    .problem = problem,
};
