/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl shadow: what Flashpache would save, as FlashpacheEngine Shadow has measured it.
 *
 * httpd has these numbers, not the daemon.  So this reads httpd's status page in its form for scripts.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/packet.h"
#include "ctl/ctl_json.h"
#include "ctl/ctl_out.h"

#define USUAL_PAGE "http://localhost/flashpache-status" /* as conf/flashpache.conf has it */
#define MOST_PAGE  (4u << 20)                           /* bytes */
#define PREFIX     "FlashpacheShadow"

/* A URL's parts. */
struct page {
    char host[256], port[8];
    const char *authority; /* host and port as they stand in the URL */
    size_t authority_len;
    const char *path;
    size_t path_len;
};

/* The numbers of a virtual host. */
struct forecast {
    uint64_t requests, stock_us, remaining_us;
};

/* ---- reading the page ---- */

/* Takes "HOST", "HOST:PORT", "[ADDRESS]" or "[ADDRESS]:PORT", an IPv6 address standing in brackets. */
static bool take_authority(struct page *p)
{
    const char *host = p->authority, *end = host + p->authority_len;
    const bool bracket = p->authority_len > 0 && host[0] == '[';
    const char *host_end = memchr(host, bracket ? ']' : ':', p->authority_len);
    const char *port = host_end == NULL ? end : host_end + bracket;
    size_t len;

    host += bracket;
    len = (size_t)((host_end != NULL ? host_end : end) - host);
    if ((bracket && host_end == NULL) || len == 0 || len >= sizeof(p->host) || (port != end && *port != ':')
        || (size_t)(end - port) > sizeof(p->port))
        return false;
    snprintf(p->host, sizeof(p->host), "%.*s", (int)len, host);
    snprintf(p->port, sizeof(p->port), "%.*s", port != end ? (int)(end - port - 1) : 2,
             port != end ? port + 1 : "80");
    return true;
}

static bool parse_url(const char *url, struct page *p)
{
    static const char scheme[] = "http://";

    if (strncasecmp(url, scheme, sizeof(scheme) - 1) != 0) {
        ctl_complain("%s: give a URL that begins with http://, or pass the page on: curl -s 'URL?auto' | "
                     "flashpachectl shadow -",
                     url);
        return false;
    }
    p->authority = url + sizeof(scheme) - 1;
    p->authority_len = strcspn(p->authority, "/?#");
    if (memchr(p->authority, '@', p->authority_len) != NULL) {
        ctl_complain("a password in a URL is not sent: pass the page on: curl -s -u USER 'URL?auto' | "
                     "flashpachectl shadow -");
        return false;
    }
    if (!take_authority(p)) {
        ctl_complain("%s: no host in it, too long a one, or no port: http://HOST:PORT/, http://[ADDRESS]:PORT/",
                     url);
        return false;
    }
    p->path = p->authority + p->authority_len;
    if (*p->path != '/')
        p->path = "/";
    p->path_len = strcspn(p->path, "?#");
    return true;
}

/* Returns the connected socket, or -1 with errno. */
static int connect_to(const struct addrinfo *at)
{
    int fd = -1;

    for (; at != NULL; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd == -1)
            continue;
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            return fd;
        close(fd);
    }
    return -1;
}

/* Asks for the page; the stream has the response. */
static FILE *open_page(const char *url)
{
    const struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    struct page p;
    FILE *stream;
    int fd, rc;

    if (!parse_url(url, &p))
        return NULL;
    rc = getaddrinfo(p.host, p.port, &wanted, &found);
    if (rc != 0) {
        ctl_complain("%s: %s", url, gai_strerror(rc));
        return NULL;
    }
    fd = connect_to(found);
    freeaddrinfo(found);
    stream = fd != -1 ? fdopen(fd, "r+") : NULL;
    if (stream == NULL) {
        ctl_complain(
            "%s: no connection: %s; give the URL of httpd's status page (SetHandler flashpache-status)", url,
            strerror(errno));
        if (fd != -1)
            close(fd);
        return NULL;
    }
    fprintf(stream, "GET %.*s?auto HTTP/1.0\r\nHost: %.*s\r\n\r\n", (int)p.path_len, p.path,
            (int)p.authority_len, p.authority);
    fflush(stream);
    return stream;
}

/* Skips a response's head.  False after saying why it has no page. */
static bool skip_head(FILE *stream, const char *url)
{
    char line[1024];
    int status = 0;

    if (fgets(line, sizeof(line), stream) == NULL || sscanf(line, "HTTP/%*d.%*d %d", &status) != 1) {
        ctl_complain("%s: no answer by HTTP", url);
        return false;
    }
    while (fgets(line, sizeof(line), stream) != NULL && strcmp(line, "\r\n") != 0)
        continue;
    if (status == 200)
        return true;
    ctl_complain(
        "%s: status %d; give the URL of httpd's status page (SetHandler flashpache-status), which must let "
        "this machine in",
        url, status);
    return false;
}

/* A stream's text, terminated; NULL after saying why not. */
static char *read_text(FILE *stream, const char *from)
{
    char *text = malloc(MOST_PAGE + 1);
    size_t len = text != NULL ? fread(text, 1, MOST_PAGE, stream) : 0;

    if (text != NULL && ferror(stream) == 0) {
        text[len] = '\0';
        return text;
    }
    ctl_complain("%s: cannot be read: %s", from, strerror(errno));
    free(text);
    return NULL;
}

/* The page of a URL, written to the pipe; an exit status. */
static int fetch(const char *url, int to)
{
    FILE *stream = open_page(url);
    char *text = stream != NULL && skip_head(stream, url) ? read_text(stream, url) : NULL;

    return text != NULL && fp_write_all(to, text, strlen(text)) ? 0 : 1;
}

/* What comes through the pipe until its other end is closed, terminated; *late_r: that took too long. */
static char *read_until(int from, uint64_t end_ms, bool *late_r)
{
    struct pollfd p = { .fd = from, .events = POLLIN };
    char *text = malloc(MOST_PAGE + 1);
    size_t len = 0;
    ssize_t n = 1;

    while (text != NULL && n > 0 && len < MOST_PAGE) {
        const uint64_t now_ms = fp_now_ms();
        const int ready = now_ms < end_ms ? poll(&p, 1, (int)(end_ms - now_ms)) : 0;

        *late_r = ready == 0;
        n = ready > 0 ? read(from, text + len, MOST_PAGE - len) : 0;
        len += n > 0 ? (size_t)n : 0;
    }
    if (text != NULL)
        text[len] = '\0';
    return text;
}

/* The page of a URL.  Looking up names, too, may take long, so a process of its own does it all. */
static char *page_in_time(const struct ctl *ctl, const char *url)
{
    const uint64_t end_ms = fp_now_ms() + ctl->timeout_ms;
    int ends[2], status = 1;
    bool late = false;
    char *text;
    pid_t pid;

    fflush(stdout);
    if (pipe2(ends, O_CLOEXEC) == -1 || (pid = fork()) == -1) {
        ctl_complain("cannot ask for %s: %s", url, strerror(errno));
        return NULL;
    }
    if (pid == 0) {
        close(ends[0]);
        _exit(fetch(url, ends[1]));
    }
    close(ends[1]);
    text = read_until(ends[0], end_ms, &late);
    close(ends[0]);
    if (late)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (late)
        ctl_complain("%s: not all of the page came in %" PRIu32 " ms: -T allows more", url, ctl->timeout_ms);
    else if (text == NULL)
        ctl_complain("no memory for the page of %s", url);
    else if (status == 0)
        return text;
    free(text);
    return NULL;
}

/* The page of a URL, or of standard input (-). */
static char *page_of(const struct ctl *ctl, const char *url)
{
    return strcmp(url, "-") == 0 ? read_text(stdin, "standard input") : page_in_time(ctl, url);
}

/* ---- its numbers ---- */

/* The number in the line "FlashpacheShadowNAME[HOST]: N"; host is not terminated.  0: there is none. */
static uint64_t number(const char *text, const char *name, const char *host, size_t len)
{
    char key[512];
    const char *at;

    snprintf(key, sizeof(key), "\n" PREFIX "%s[%.*s]: ", name, (int)len, host);
    at = strstr(text, key);
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void print_host(struct ctl_json *j, const char *host, size_t len, const struct forecast *f)
{
    const uint64_t stock_us = f->stock_us / f->requests, remaining_us = f->remaining_us / f->requests;

    if (j == NULL) {
        printf("%s: %.3f ms a request in the file system, %.3f ms would remain (%" PRIu64 " requests)\n",
               ctl_name(host, len), (double)stock_us / 1e3, (double)remaining_us / 1e3, f->requests);
        return;
    }
    ctl_json_begin(j, NULL, '{');
    ctl_json_path(j, "host", host, len);
    ctl_json_number(j, "requests", f->requests);
    ctl_json_number(j, "file_system_us", stock_us);
    ctl_json_number(j, "remaining_us", remaining_us);
    ctl_json_end(j, '}');
}

/* Returns the number of virtual hosts in which requests were timed.  j NULL: as text. */
static unsigned print_hosts(struct ctl_json *j, const char *text)
{
    static const char line[] = "\n" PREFIX "Timed[";
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, line)) != NULL;) {
        const char *host = at += sizeof(line) - 1;
        const size_t len = strcspn(host, "]\n");
        const struct forecast f = { number(text, "Timed", host, len), number(text, "StockUs", host, len),
                                    number(text, "RemainingUs", host, len) };

        if (f.requests == 0)
            continue;
        print_host(j, host, len, &f);
        n++;
    }
    return n;
}

enum ctl_exit ctl_shadow(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl_json j = { .to = stdout };
    const char *url = argc == 2 ? argv[1] : USUAL_PAGE;
    unsigned n;
    char *text;

    if (argc > 2)
        return ctl_misused("shadow takes one URL of httpd's status page, or - for standard input");
    text = page_of(ctl, url);
    if (text == NULL)
        return CTL_FAILED;
    if (strstr(text, "\n" PREFIX "Timed") == NULL) {
        ctl_complain("%s: no status page of mod_flashpache for scripts (URL?auto)", url);
        free(text);
        return CTL_FAILED;
    }
    if (ctl->json) {
        ctl_json_begin(&j, NULL, '{');
        ctl_json_begin(&j, "hosts", '[');
    }
    n = print_hosts(ctl->json ? &j : NULL, text);
    if (ctl->json) {
        ctl_json_end(&j, ']');
        ctl_json_finish(&j, '}');
    }
    free(text);
    if (n > 0)
        return CTL_DONE;
    ctl_complain("%s: no request was timed: set FlashpacheEngine Shadow, and let some requests come", url);
    return CTL_FAILED;
}
