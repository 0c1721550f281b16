/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct job {
    unsigned slot;
    bool is_data; /* to be read in; else to be opened */
    uint64_t from, length;
    char path[HTTP_PATH_MAX];
};

struct reply {
    unsigned slot;
    bool is_data;
    int status;
    struct file file; /* new-flash: its descriptor comes along */
};

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int helpers_socket(int fds_r[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds_r) == 0 ? 0 : errno;
}

/* A helper */

static void work(const struct server *s, const struct job *job, struct reply *reply)
{
    *reply = (struct reply){ .slot = job->slot, .is_data = job->is_data };
    reply->status = file_open(s->root_fd, job->path, &reply->file);
    if (reply->status == 0 && job->is_data)
        file_read_in(reply->file.fd, job->from, job->length);
}

/* In new-flash a descriptor goes along; the receiver has its own then. */
static bool send_reply(const struct server *s, int fd, struct reply *reply)
{
    struct iovec part = { reply, sizeof(*reply) };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    union control control = { 0 };
    ssize_t n;

    if (s->options.arch == ARCH_NEW_FLASH && reply->status == 0 && !reply->is_data) {
        struct cmsghdr *header;

        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &reply->file.fd, sizeof(int));
    }
    do {
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    file_end(&reply->file);
    return n >= 0;
}

int helpers_process(struct server *s, void *user)
{
    const int *fd = user;
    struct job job;
    struct reply reply;

    for (;;) {
        ssize_t n = recv(*fd, &job, sizeof(job), 0);

        if (n == 0)
            return ECONNRESET;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        work(s, &job, &reply);
        if (!send_reply(s, *fd, &reply))
            return errno;
    }
}

/* The loop */

/* Returns false if the socket is full. */
static bool send_job(const struct helpers *h, const struct conn *c)
{
    struct job job = {
        .slot = c->slot, .is_data = c->step != STEP_FIND, .from = c->data_from, .length = c->data_length
    };
    size_t path = strlen(c->request.path) + 1;

    memcpy(job.path, c->request.path, path);
    return send(h->fd, &job, offsetof(struct job, path) + path, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void helpers_ask(struct helpers *h, struct conn *c, enum conn_want want)
{
    c->is_offloaded = true;
    if (want == CONN_FILE)
        c->data_from = c->data_length = 0;
    if (h->first == NULL && send_job(h, c))
        return;
    c->next = NULL;
    *(h->first != NULL ? &h->last->next : &h->first) = c;
    h->last = c;
}

static void send_waiting(struct helpers *h)
{
    while (h->first != NULL && send_job(h, h->first))
        h->first = h->first->next;
}

static bool receive(const struct helpers *h, struct reply *reply_r)
{
    struct iovec part = { reply_r, sizeof(*reply_r) };
    union control control;
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    struct cmsghdr *header;

    if (recvmsg(h->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*reply_r))
        return false;
    header = CMSG_FIRSTHDR(&message);
    reply_r->file.fd = -1;
    if (header != NULL && header->cmsg_type == SCM_RIGHTS)
        memcpy(&reply_r->file.fd, CMSG_DATA(header), sizeof(int));
    return true;
}

struct conn *helpers_take(const struct server *s, struct helpers *h, struct conn *const *table)
{
    struct reply reply;
    struct conn *c;

    if (!receive(h, &reply))
        return NULL;
    send_waiting(h);
    c = table[reply.slot];
    c->is_offloaded = false;
    if (reply.is_data)
        conn_has_data(c);
    else if (reply.status != 0)
        conn_give_file(c, reply.status, NULL);
    else if (s->options.arch == ARCH_NEW_FLASH)
        conn_give_file(c, reply.file.fd >= 0 ? 0 : 500, &reply.file);
    else
        c->was_opened = true; /* Flash opens it again itself: the names are in memory now */
    return c;
}
