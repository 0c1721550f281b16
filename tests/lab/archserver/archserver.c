/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archserver: one static HTTP/1.1 server whose architecture is an option.
 *
 * For comparisons of architectures: all else is the same. It shares no code
 * with Flashpache. It trusts its command line and the files, not its clients.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "conn.h"
#include "options.h"
#include "processes.h"
#include "turns.h"

#define BACKLOG 4096

static int complain(const char *what, const char *object, const char *why)
{
    (void)fprintf(stderr, "archserver: cannot %s %s: %s\n", what, object, why);
    return -1;
}

/* Options that accepted sockets inherit: no waiting for full segments, and bounds where calls wait. */
static void set_options(const struct options *o, int fd)
{
    struct timeval idle = { .tv_sec = (time_t)o->idle_s };
    int on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof(idle));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &idle, sizeof(idle));
}

/* Returns a listening socket, or -1. Loops share it and must not wait in accept. */
static int listen_at(const struct options *o, bool may_block)
{
    const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                                    .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    char port[8];
    int fd, error;

    (void)snprintf(port, sizeof(port), "%u", (unsigned)o->port);
    error = getaddrinfo(o->host, port, &hints, &found);
    if (error != 0)
        return complain("listen at", o->host, gai_strerror(error));
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | (may_block ? 0 : SOCK_NONBLOCK), 0);
    if (fd >= 0) {
        set_options(o, fd);
        if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
            (void)close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd >= 0 ? fd : complain("listen at port", port, strerror(errno));
}

/* The effect of an architecture's way of waiting on sockets and files. */
static void describe(struct server *s)
{
    const struct options *o = &s->options;
    bool is_thread_each = o->arch == ARCH_MP || o->arch == ARCH_MT;

    s->has_offload = o->arch == ARCH_AMPED || o->arch == ARCH_NEW_FLASH || o->arch == ARCH_PIPELINE;
    s->is_told_of_input = !is_thread_each;
    s->sockets_block =
        o->send_by == SEND_BLOCKING_SENDFILE || (is_thread_each && o->send_by != SEND_NONBLOCKING_SENDFILE);
}

/* Returns 0, or -1 if they cannot be counted as the command line wants. */
static int count_turns(struct server *s)
{
    if (s->options.turns_file == NULL)
        return 0;
    s->turns = turns_create(s->options.turns_file);
    return s->turns != NULL ? 0 : complain("count turns in", s->options.turns_file, strerror(errno));
}

int main(int argc, char **argv)
{
    struct server server = { .root_fd = -1, .listen_fd = -1 };
    int status = options_parse(argc, argv, &server.options);

    if (status >= 0)
        return status;
    describe(&server);
    (void)signal(SIGPIPE, SIG_IGN);
    server.root_fd = open(server.options.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (server.root_fd < 0) {
        (void)complain("serve", server.options.root, strerror(errno));
        return 1;
    }
    if (count_turns(&server) != 0)
        return 1;
    server.listen_fd =
        listen_at(&server.options, !server.is_told_of_input || server.options.arch == ARCH_PIPELINE);
    return server.listen_fd < 0 ? 1 : processes_run(&server);
}
