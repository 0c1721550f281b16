/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The rest of a text that is read from its beginning. */
struct text {
    const char *at, *end;
};

static bool is_word(struct text t, const char *word)
{
    size_t length = (size_t)(t.end - t.at);

    return length == strlen(word) && strncasecmp(t.at, word, length) == 0;
}

/* Takes what is before a separator, or all. */
static struct text take_until(struct text *t, char separator)
{
    const char *found = memchr(t->at, separator, (size_t)(t->end - t->at));
    struct text taken = { t->at, found != NULL ? found : t->end };

    t->at = found != NULL ? found + 1 : t->end;
    return taken;
}

static struct text trimmed(struct text t)
{
    while (t.at < t.end && (*t.at == ' ' || *t.at == '\t'))
        t.at++;
    while (t.at < t.end && (t.end[-1] == ' ' || t.end[-1] == '\t' || t.end[-1] == '\r'))
        t.end--;
    return t;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of a path, which %XX may stand for; -1 if there is no such byte. */
static int take_byte(struct text *t)
{
    int high, low;

    if (*t->at != '%')
        return (unsigned char)*t->at++;
    if (t->end - t->at < 3)
        return -1;
    high = hex_digit(t->at[1]);
    low = hex_digit(t->at[2]);
    t->at += 3;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* True if a decoded path has a segment that leads up. */
static bool leads_up(const char *path)
{
    for (const char *at = path; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
    }
    return false;
}

/* The path of a target, decoded into the request. Returns 0, or the status of an error. */
static int decode_path(struct text target, struct http_request *r)
{
    size_t used = 0;

    if (target.at == target.end || *target.at != '/')
        return 400;
    while (target.at < target.end && *target.at == '/')
        target.at++;
    while (target.at < target.end) {
        int byte = take_byte(&target);

        if (byte <= 0)
            return 400;
        if (used + 1 >= sizeof(r->path))
            return 414;
        r->path[used++] = (char)byte;
    }
    if (used == 0)
        r->path[used++] = '.';
    r->path[used] = '\0';
    /* %2F at the beginning would make it absolute. */
    return leads_up(r->path) || r->path[0] == '/' ? 403 : 0;
}

/* A target may name scheme and host (RFC 9112, 3.2.2). */
static struct text without_host(struct text target)
{
    static const char scheme[] = "http://";
    const char *slash;

    if (target.end - target.at <= (ptrdiff_t)strlen(scheme)
        || strncasecmp(target.at, scheme, strlen(scheme)) != 0)
        return target;
    target.at += strlen(scheme);
    slash = memchr(target.at, '/', (size_t)(target.end - target.at));
    target.at = slash != NULL ? slash : target.end;
    return target;
}

/* "GET /path HTTP/1.1". Returns 0, or the status of an error. */
static int parse_line(struct text line, struct http_request *r)
{
    struct text method = take_until(&line, ' ');
    struct text target = take_until(&line, ' ');
    struct text version = trimmed(line);

    r->keep_alive = is_word(version, "HTTP/1.1");
    if (!r->keep_alive && !is_word(version, "HTTP/1.0"))
        return version.end - version.at > 5 && strncmp(version.at, "HTTP/", 5) == 0 ? 505 : 400;
    r->is_head = is_word(method, "HEAD");
    if (!r->is_head && !is_word(method, "GET"))
        return 405;
    target = without_host(target);
    return decode_path(take_until(&target, '?'), r);
}

static void read_connection(struct text value, struct http_request *r)
{
    while (value.at < value.end) {
        struct text word = trimmed(take_until(&value, ','));

        if (is_word(word, "close"))
            r->keep_alive = false;
        else if (is_word(word, "keep-alive"))
            r->keep_alive = true;
    }
}

/* One field. Returns 0, or the status of an error. */
static int parse_field(struct text line, struct http_request *r, bool *has_host)
{
    struct text name = take_until(&line, ':');
    struct text value = trimmed(line);

    if (name.end == line.end || name.at == name.end || name.end[-1] == ' ')
        return 400;
    if (is_word(name, "Host"))
        *has_host = true;
    else if (is_word(name, "Connection"))
        read_connection(value, r);
    else if (is_word(name, "Transfer-Encoding") || (is_word(name, "Content-Length") && !is_word(value, "0")))
        return 400; /* a body, which is not read */
    return 0;
}

static int parse_head(struct text head, struct http_request *r)
{
    struct text line = take_until(&head, '\n');
    bool has_host = false;
    int status = parse_line(line, r);
    bool needs_host = r->keep_alive; /* so far: of HTTP/1.1 */

    while (head.at < head.end) {
        line = trimmed(take_until(&head, '\n'));
        if (line.at < line.end) {
            int wrong = parse_field(line, r, &has_host);

            status = wrong != 0 ? wrong : status;
        }
    }
    return status == 0 && needs_host && !has_host ? 400 : status;
}

size_t http_parse(const char *data, size_t length, struct http_request *r)
{
    const char *end = memmem(data, length, "\r\n\r\n", 4);

    if (end == NULL)
        return 0;
    end += 4;
    r->is_head = false;
    r->status = parse_head((struct text){ data, end }, r);
    /* Only a path that leads up leaves no doubt where the next request begins. */
    if (r->status != 0 && r->status != 403)
        r->keep_alive = false;
    return (size_t)(end - data);
}

static const char *reason(int status)
{
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 414: return "URI Too Long";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
    }
}

void http_date(time_t when, char date_r[HTTP_DATE_MAX])
{
    struct tm tm;

    gmtime_r(&when, &tm);
    if (strftime(date_r, HTTP_DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        date_r[0] = '\0';
}

/* Now; written once a second in each thread. */
static const char *date_now(void)
{
    static _Thread_local char text[HTTP_DATE_MAX];
    static _Thread_local time_t of = -1;
    time_t now = time(NULL);

    if (now != of)
        http_date(now, text);
    of = now;
    return text;
}

size_t http_reply(const struct http_request *r, int status, uint64_t length, const char *modified,
                  char reply_r[HTTP_REPLY_MAX])
{
    const char *text = reason(status);
    bool is_error = status != 200;
    int used;

    if (is_error)
        length = strlen(text) + 1;
    used = snprintf(reply_r, HTTP_REPLY_MAX,
                    "HTTP/1.1 %d %s\r\nDate: %s\r\nServer: archserver\r\n%s%s%s%s"
                    "Content-Type: %s\r\nContent-Length: %llu\r\nConnection: %s\r\n\r\n%s%s",
                    status, text, date_now(), is_error ? "" : "Last-Modified: ", is_error ? "" : modified,
                    is_error ? "" : "\r\n", status == 405 ? "Allow: GET, HEAD\r\n" : "",
                    is_error ? "text/plain" : "application/octet-stream", (unsigned long long)length,
                    r->keep_alive ? "keep-alive" : "close", is_error && !r->is_head ? text : "",
                    is_error && !r->is_head ? "\n" : "");
    return used > 0 ? (size_t)used : 0;
}
