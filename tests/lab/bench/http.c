/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "http.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum state {
    STATUS_LINE,
    HEADER,
    BODY_LENGTH,
    BODY_CLOSE,
    CHUNK_SIZE,
    CHUNK_DATA,
    CHUNK_END,
    TRAILER,
    DONE,
    FAILED,
};

struct bench_http {
    bench_http_body *body;
    void *context;
    enum state state;
    char *line; /* the beginning of a line whose end has not come */
    size_t line_used;
    size_t line_capacity;
    unsigned lines;
    int status;
    bool started;
    bool bodiless;
    bool keep_alive;
    bool chunked;
    bool has_length;
    uint64_t length;
    uint64_t left; /* of the body, or of the chunk */
    uint64_t body_bytes;
    const char *problem;
};

struct bench_http *bench_http_create(bench_http_body *body, void *context)
{
    struct bench_http *http = calloc(1, sizeof(*http));

    if (http == NULL)
        return NULL;
    http->body = body;
    http->context = context;
    bench_http_reset(http, false);
    return http;
}

void bench_http_destroy(struct bench_http **http)
{
    if (*http == NULL)
        return;
    free((*http)->line);
    free(*http);
    *http = NULL;
}

void bench_http_reset(struct bench_http *http, bool bodiless)
{
    const struct bench_http old = *http;

    *http = (struct bench_http){ .body = old.body,
                                 .context = old.context,
                                 .line = old.line,
                                 .line_capacity = old.line_capacity,
                                 .state = STATUS_LINE,
                                 .bodiless = bodiless };
}

static int fail(struct bench_http *http, const char *problem)
{
    http->state = FAILED;
    http->problem = problem;
    return -1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int on_status_line(struct bench_http *http, const char *line)
{
    if (strncmp(line, "HTTP/1.", 7) != 0 || !is_digit(line[7]) || line[8] != ' ')
        return fail(http, "the status line does not begin with HTTP/1.x");
    if (!is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11])
        || (line[12] != ' ' && line[12] != '\0') || line[9] == '0')
        return fail(http, "the status line has no status of three digits");
    http->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    http->keep_alive = line[7] != '0';
    http->state = HEADER;
    return 0;
}

static int parse_number(const char *text, int base, uint64_t *value_r, const char **end_r)
{
    uint64_t value = 0;
    const char *c = text;

    for (;; c++) {
        int digit = is_digit(*c) ? *c - '0' : 99;

        if (base == 16 && isxdigit((unsigned char)*c) && digit == 99)
            digit = tolower((unsigned char)*c) - 'a' + 10;
        if (digit >= base)
            break;
        if (value > (UINT64_MAX - (unsigned)digit) / (unsigned)base)
            return -1;
        value = value * (unsigned)base + (unsigned)digit;
    }
    *value_r = value;
    *end_r = c;
    return c == text ? -1 : 0;
}

static int on_content_length(struct bench_http *http, const char *value)
{
    uint64_t length;
    const char *end;

    if (parse_number(value, 10, &length, &end) != 0 || *end != '\0')
        return fail(http, "Content-Length is not a number");
    if (http->has_length && http->length != length)
        return fail(http, "Content-Length is there twice and differs");
    http->has_length = true;
    http->length = length;
    return 0;
}

/* True if the comma-separated list holds the token, in any case. */
static bool has_token(const char *list, const char *token)
{
    size_t size = strlen(token);

    while (*list != '\0') {
        list += strspn(list, " \t,");
        if (strncasecmp(list, token, size) == 0 && strchr(" \t,;", list[size]) != NULL)
            return true;
        list += strcspn(list, ",");
    }
    return false;
}

static int on_header(struct bench_http *http, char *line)
{
    char *value = strchr(line, ':');
    size_t size;

    if (value == NULL || value == line || value[-1] == ' ' || value[-1] == '\t')
        return fail(http, "a header line is not \"name: value\"");
    *value++ = '\0';
    value += strspn(value, " \t");
    size = strlen(value);
    while (size > 0 && (value[size - 1] == ' ' || value[size - 1] == '\t'))
        value[--size] = '\0';
    if (strcasecmp(line, "Content-Length") == 0)
        return on_content_length(http, value);
    if (strcasecmp(line, "Transfer-Encoding") == 0 && has_token(value, "chunked"))
        http->chunked = true;
    if (strcasecmp(line, "Connection") == 0) {
        if (has_token(value, "close"))
            http->keep_alive = false;
        else if (has_token(value, "keep-alive"))
            http->keep_alive = true;
    }
    return 0;
}

static int on_headers_end(struct bench_http *http)
{
    if (http->chunked && http->has_length)
        return fail(http, "both Content-Length and Transfer-Encoding: chunked");
    if (http->status < 200) {
        bench_http_reset(http, http->bodiless);
        http->started = true;
    } else if (http->bodiless || http->status == 204 || http->status == 304) {
        http->state = DONE;
    } else if (http->chunked) {
        http->state = CHUNK_SIZE;
    } else if (http->has_length) {
        http->left = http->length;
        http->state = http->left > 0 ? BODY_LENGTH : DONE;
    } else {
        http->keep_alive = false;
        http->state = BODY_CLOSE;
    }
    return 0;
}

static int on_chunk_size(struct bench_http *http, const char *line)
{
    const char *end;

    if (parse_number(line, 16, &http->left, &end) != 0 || strchr(" \t;", *end) == NULL)
        return fail(http, "a chunk size is not a hexadecimal number");
    http->state = http->left > 0 ? CHUNK_DATA : TRAILER;
    return 0;
}

static int on_line(struct bench_http *http, char *line)
{
    if (++http->lines > BENCH_HTTP_MAX_LINES && http->state <= HEADER)
        return fail(http, "too many header lines");
    switch (http->state) {
    case STATUS_LINE: return on_status_line(http, line);
    case HEADER: return line[0] == '\0' ? on_headers_end(http) : on_header(http, line);
    case CHUNK_SIZE: return on_chunk_size(http, line);
    case CHUNK_END:
        http->state = CHUNK_SIZE;
        return line[0] == '\0' ? 0 : fail(http, "a chunk is longer than its size");
    case TRAILER:
        if (line[0] == '\0')
            http->state = DONE;
        return 0;
    default: return fail(http, "a line where none belongs");
    }
}

static int keep_line(struct bench_http *http, const char *data, size_t size)
{
    size_t needed = http->line_used + size + 1;

    if (needed > BENCH_HTTP_MAX_LINE)
        return fail(http, "a line is too long");
    if (needed > http->line_capacity) {
        size_t capacity = needed < 512 ? 512 : needed * 2;
        char *line = realloc(http->line, capacity);

        if (line == NULL)
            return fail(http, "out of memory");
        http->line = line;
        http->line_capacity = capacity;
    }
    memcpy(http->line + http->line_used, data, size);
    http->line_used += size;
    return 0;
}

/* Takes input up to the end of the line, and handles the line when it is complete. */
static int feed_line(struct bench_http *http, const char *data, size_t size, size_t *used_r)
{
    const char *newline = memchr(data, '\n', size);

    *used_r = newline == NULL ? size : (size_t)(newline - data) + 1;
    if (keep_line(http, data, newline == NULL ? size : (size_t)(newline - data)) != 0)
        return -1;
    if (newline == NULL)
        return 0;
    if (http->line_used > 0 && http->line[http->line_used - 1] == '\r')
        http->line_used--;
    if (memchr(http->line, '\0', http->line_used) != NULL)
        return fail(http, "a NUL byte in a header");
    http->line[http->line_used] = '\0';
    http->line_used = 0;
    return on_line(http, http->line);
}

static void feed_body(struct bench_http *http, const char *data, size_t size, size_t *used_r)
{
    size_t part = size;

    if (http->state != BODY_CLOSE && part > http->left)
        part = (size_t)http->left;
    if (http->body != NULL)
        http->body(http->context, data, part);
    http->body_bytes += part;
    *used_r = part;
    if (http->state == BODY_CLOSE)
        return;
    http->left -= part;
    if (http->left == 0)
        http->state = http->state == BODY_LENGTH ? DONE : CHUNK_END;
}

static enum bench_http_result result_of(const struct bench_http *http)
{
    if (http->state == FAILED)
        return BENCH_HTTP_ERROR;
    return http->state == DONE ? BENCH_HTTP_DONE : BENCH_HTTP_MORE;
}

enum bench_http_result bench_http_feed(struct bench_http *http, const char *data, size_t size, size_t *used_r)
{
    *used_r = 0;
    if (size > 0)
        http->started = true;
    while (*used_r < size && http->state < DONE) {
        size_t used;

        if (http->state == BODY_LENGTH || http->state == BODY_CLOSE || http->state == CHUNK_DATA)
            feed_body(http, data + *used_r, size - *used_r, &used);
        else if (feed_line(http, data + *used_r, size - *used_r, &used) != 0)
            break;
        *used_r += used;
    }
    return result_of(http);
}

enum bench_http_result bench_http_eof(struct bench_http *http)
{
    if (http->state == BODY_CLOSE)
        http->state = DONE;
    else if (http->state < DONE)
        (void)fail(http, "the connection was closed before the end of the response");
    return result_of(http);
}

bool bench_http_started(const struct bench_http *http)
{
    return http->started;
}

int bench_http_status(const struct bench_http *http)
{
    return http->status;
}

uint64_t bench_http_body_bytes(const struct bench_http *http)
{
    return http->body_bytes;
}

bool bench_http_keep_alive(const struct bench_http *http)
{
    return http->keep_alive;
}

const char *bench_http_problem(const struct bench_http *http)
{
    return http->problem;
}
