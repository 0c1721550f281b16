/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conn.h"

#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

time_t conn_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

int conn_accept(const struct server *s)
{
    return accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | (s->sockets_block ? 0 : SOCK_NONBLOCK));
}

bool conn_is_idle(const struct server *s, const struct conn *c, time_t now)
{
    return now - c->active_at > (time_t)s->options.idle_s;
}

void conn_begin(struct conn *c, int fd)
{
    unsigned slot = c->slot, generation = c->generation;

    /* All but the input, of which in_used bytes mean something. */
    memset(c, 0, offsetof(struct conn, in));
    c->slot = slot;
    c->generation = generation;
    c->fd = fd;
    c->has_input = true;
    c->file = FILE_NONE;
    c->active_at = conn_now();
}

void conn_end(const struct server *s, struct conn *c)
{
    cache_release(s->cache, &c->file);
    if (c->is_last) {
        /* Input that nobody read would make close cut the response off. */
        (void)shutdown(c->fd, SHUT_WR);
        (void)recv(c->fd, c->in, sizeof(c->in), MSG_DONTWAIT);
    }
    (void)close(c->fd);
    c->fd = -1;
}

/* A request */

static void take_request(struct conn *c, size_t length)
{
    c->in_used -= length;
    memmove(c->in, c->in + length, c->in_used);
    c->is_last = !c->request.keep_alive;
    c->was_opened = false;
    c->sent = c->end = c->assured = 0;
    c->head_used = c->head_sent = 0;
    c->status = c->request.status;
    c->step = c->status != 0 ? STEP_PREPARE : STEP_FIND;
}

static void refuse_long_head(struct conn *c)
{
    c->request = (struct http_request){ .status = 431 };
    take_request(c, c->in_used);
}

static enum conn_want read_more(const struct server *s, struct conn *c)
{
    size_t room = sizeof(c->in) - c->in_used;
    ssize_t n;

    if (s->is_told_of_input && !c->has_input)
        return CONN_INPUT;
    n = recv(c->fd, c->in + c->in_used, room, s->sockets_block && !s->is_told_of_input ? 0 : MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
        return CONN_GO_ON;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        c->has_input = false;
        return CONN_INPUT;
    }
    if (n <= 0)
        return CONN_CLOSE;
    /* Less than asked for: all that there was. */
    c->has_input = (size_t)n == room || c->hung_up;
    c->in_used += (size_t)n;
    c->active_at = conn_now();
    return CONN_GO_ON;
}

/* True if a request is there; if not, *want_r says what is to be done. */
static bool read_request(const struct server *s, struct conn *c, enum conn_want *want_r)
{
    for (;;) {
        size_t length = c->in_used > 0 ? http_parse(c->in, c->in_used, &c->request) : 0;

        if (length > 0) {
            take_request(c, length);
            return true;
        }
        if (c->in_used == sizeof(c->in)) {
            refuse_long_head(c);
            return true;
        }
        *want_r = read_more(s, c);
        if (*want_r != CONN_GO_ON)
            return false;
    }
}

/* Its file */

void conn_give_file(struct conn *c, int status, const struct file *file)
{
    c->status = status;
    if (status == 0)
        c->file = *file;
    c->step = STEP_PREPARE;
}

void conn_open(const struct server *s, struct conn *c)
{
    struct file file;
    int status = file_open(s->root_fd, c->request.path, &file);

    conn_give_file(c, status, &file);
}

void conn_has_data(struct conn *c)
{
    c->assured = c->data_from + c->data_length;
}

void conn_read_in(struct conn *c)
{
    file_read_in(c->file.fd, c->data_from, c->data_length);
    conn_has_data(c);
}

static enum conn_want want_data(struct conn *c, uint64_t from, uint64_t length)
{
    c->data_from = from;
    c->data_length = length;
    return CONN_DATA;
}

/* Returns false if a helper has to open it first. */
static bool find_file(const struct server *s, struct conn *c)
{
    if (s->cache != NULL && cache_find(s->cache, c->request.path, &c->file)) {
        c->step = STEP_PREPARE;
        return true;
    }
    if (s->has_offload && !c->was_opened)
        return false;
    conn_open(s, c);
    return true;
}

/* True if all of a file that is to be kept whole is in memory, or nobody else could read it in. */
static bool may_load(const struct server *s, const struct conn *c)
{
    if (!s->has_offload || c->assured >= c->file.size)
        return true;
    for (uint64_t at = 0; at < c->file.size; at += FILE_CHUNK) {
        uint64_t rest = c->file.size - at;

        if (!file_resident(&c->file, at, rest < FILE_CHUNK ? rest : FILE_CHUNK))
            return false;
    }
    return true;
}

/* Makes of an opened file what is sent, and keeps it. Returns false if its data have to be read in first. */
static bool prepare_file(const struct server *s, struct conn *c)
{
    bool is_content = s->options.cache == CACHE_CONTENT && c->file.size <= FILE_CONTENT_MAX;

    if (c->file.entry != 0)
        return true;
    if (is_content && !may_load(s, c))
        return false;
    if ((is_content && !file_load(&c->file)) || (s->options.send_by == SEND_MMAP && !file_map(&c->file))) {
        file_end(&c->file);
        c->status = 500;
        return true;
    }
    if (s->cache != NULL && (s->options.cache == CACHE_FD || is_content))
        cache_keep(s->cache, c->request.path, &c->file);
    return true;
}

static bool prepare(const struct server *s, struct conn *c)
{
    bool is_error;

    if (c->status == 0 && !prepare_file(s, c))
        return false;
    is_error = c->status != 0;
    c->status = is_error ? c->status : 200;
    c->head_used = http_reply(&c->request, c->status, c->file.size, c->file.modified, c->head);
    c->end = is_error || c->request.is_head ? 0 : c->file.size;
    c->step = STEP_SEND;
    return true;
}

/* Its response */

/* Of what was written: first the head, then the body. */
static void count_sent(struct conn *c, size_t n)
{
    size_t head = c->head_used - c->head_sent;

    head = n < head ? n : head;
    c->head_sent += head;
    c->sent += n - head;
    c->active_at = conn_now();
}

static enum conn_want of_error(ssize_t n)
{
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return CONN_OUTPUT;
    return n < 0 && errno == EINTR ? CONN_GO_ON : CONN_CLOSE;
}

/* Head and body by one call. CONN_GO_ON: something was sent. */
static enum conn_want write_both(struct conn *c, char *body, size_t length)
{
    struct iovec parts[2] = { { c->head + c->head_sent, c->head_used - c->head_sent }, { body, length } };
    ssize_t n = writev(c->fd, parts, 2);

    if (n < 0)
        return of_error(n);
    count_sent(c, (size_t)n);
    return CONN_GO_ON;
}

static enum conn_want send_head(struct conn *c)
{
    int more = c->sent < c->end ? MSG_MORE : 0;
    ssize_t n = send(c->fd, c->head + c->head_sent, c->head_used - c->head_sent, more | MSG_NOSIGNAL);

    if (n < 0)
        return of_error(n);
    count_sent(c, (size_t)n);
    return CONN_GO_ON;
}

static enum conn_want send_by_sendfile(struct conn *c, size_t length)
{
    off_t offset = (off_t)c->sent;
    ssize_t n;

    if (c->head_sent < c->head_used) {
        enum conn_want want = send_head(c);

        if (want != CONN_GO_ON || c->head_sent < c->head_used)
            return want;
    }
    if (length == 0)
        return CONN_GO_ON;
    n = sendfile(c->fd, c->file.fd, &offset, length);
    if (n <= 0) /* 0: the file became shorter than its head says */
        return of_error(n);
    count_sent(c, (size_t)n);
    return CONN_GO_ON;
}

static enum conn_want send_by_reading(const struct server *s, struct conn *c, size_t length)
{
    bool may_wait = !s->has_offload || c->sent + length <= c->assured;
    ssize_t n = 0;

    if (length > 0) {
        n = may_wait ? pread(c->file.fd, file_scratch(), length, (off_t)c->sent)
                     : file_read_resident(&c->file, file_scratch(), length, c->sent);
        if (n < 0 && !may_wait && errno == EAGAIN)
            return want_data(c, c->sent, length);
        if (n <= 0)
            return CONN_CLOSE;
    }
    return write_both(c, file_scratch(), (size_t)n);
}

/* One call's worth. CONN_GO_ON: something was sent. */
static enum conn_want send_part(const struct server *s, struct conn *c)
{
    uint64_t rest = c->end - c->sent;
    size_t length = rest < FILE_CHUNK ? (size_t)rest : FILE_CHUNK;

    if (c->file.content != NULL)
        return write_both(c, c->file.content + c->sent, length);
    if (s->options.send_by == SEND_WRITEV)
        return send_by_reading(s, c, length);
    if (s->has_offload && c->sent + length > c->assured) {
        if (!file_resident(&c->file, c->sent, length))
            return want_data(c, c->sent, length);
        c->assured = c->sent + length;
    }
    if (c->file.mapping != NULL || length == 0)
        return write_both(c, c->file.mapping != NULL ? c->file.mapping + c->sent : NULL, length);
    return send_by_sendfile(c, length);
}

static enum conn_want send_response(const struct server *s, struct conn *c)
{
    while (c->head_sent < c->head_used || c->sent < c->end) {
        enum conn_want want = send_part(s, c);

        if (want != CONN_GO_ON)
            return want;
    }
    cache_release(s->cache, &c->file);
    c->step = STEP_READ;
    return c->is_last ? CONN_CLOSE : CONN_GO_ON;
}

enum conn_want conn_advance(const struct server *s, struct conn *c)
{
    for (;;) {
        enum conn_want want = CONN_GO_ON;

        switch (c->step) {
        case STEP_READ:
            if (!read_request(s, c, &want))
                return want;
            break;
        case STEP_FIND:
            if (!find_file(s, c))
                return CONN_FILE;
            break;
        case STEP_PREPARE:
            if (!prepare(s, c))
                return want_data(c, 0, c->file.size);
            break;
        case STEP_SEND:
            want = send_response(s, c);
            if (want != CONN_GO_ON)
                return want;
            break;
        }
    }
}
