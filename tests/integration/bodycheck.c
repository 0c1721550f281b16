// SPDX-License-Identifier: Apache-2.0
/*
 * bodycheck: fetches files with many concurrent transfers and compares every decoded body, byte by
 * byte, with the local file.
 *
 * It reads the local copies once at its start, so that the comparison asks no file system. SIGTERM
 * or SIGINT ends it early, with its summary: a fault test runs it in the background until the fault
 * is over.
 */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CONCURRENCY    1024
#define MAX_COMPLAINTS     20
#define TRANSFER_TIMEOUT_S 60L
#define POLL_MS            1000
/* Fewer than transfers, so that HTTP/2 uses several connections too. */
#define STREAMS_PER_CONNECTION 16L

struct target {
    char *path; /* as in the URL and below --dir */
    char *url;
    unsigned char *content;
    size_t size;
    unsigned weight;
    long status; /* of the answer; only a 200's body is compared */
};

struct transfer {
    CURL *easy;
    const struct target *target;
    size_t received;
    bool differs;
    size_t differs_at;
};

struct options {
    const char *base, *dir, *encoding;
    bool http2, insecure;
    unsigned concurrency;
    unsigned renew;    /* one transfer in so many has a connection of its own; 0: none */
    unsigned pause_us; /* between two looks at the transfers, for others who need the processor */
    unsigned long total;
    uint64_t seed;
};

struct run {
    struct options opt;
    struct target *targets;
    size_t target_count;
    unsigned weight_sum;
    unsigned long started, bodies, wrong, failed;
    unsigned long cut, refused; /* among the failed: those whose connection ended */
    uint64_t random;
};

static volatile sig_atomic_t stopping;

static void stop(int signo)
{
    (void)signo;
    stopping = 1;
}

static void die(const char *what, const char *object)
{
    fprintf(stderr, "bodycheck: %s: %s\n", what, object);
    exit(2);
}

static void *must(void *memory)
{
    if (memory == NULL)
        die("out of memory", "give it fewer or smaller files");
    return memory;
}

/* splitmix64: the same seed asks for the same files in the same order. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static const struct target *pick(struct run *run)
{
    uint64_t at = next_random(&run->random) % run->weight_sum;
    size_t i = 0;

    while (at >= run->targets[i].weight)
        at -= run->targets[i++].weight;
    return &run->targets[i];
}

static void read_content(struct target *t, const char *name)
{
    struct stat st;
    size_t done = 0;
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        die(strerror(errno), name);
    t->size = (size_t)st.st_size;
    t->content = must(malloc(t->size + 1));
    while (done < t->size) {
        ssize_t n = read(fd, t->content + done, t->size - done);

        if (n <= 0)
            die("short read", name);
        done += (size_t)n;
    }
    close(fd);
}

static char *joined(const char *a, const char *b)
{
    char *both;

    if (asprintf(&both, "%s/%s", a, b) < 0)
        die("out of memory", b);
    return both;
}

/* path[:weight[:status]] */
static void add_target(struct run *run, const char *argument)
{
    struct target *t = &run->targets[run->target_count++];
    char *colon, *name;

    t->path = must(strdup(argument));
    t->weight = 1;
    t->status = 200;
    colon = strchr(t->path, ':');
    if (colon != NULL) {
        *colon = '\0';
        t->weight = (unsigned)strtoul(colon + 1, &colon, 10);
        if (*colon == ':')
            t->status = strtol(colon + 1, NULL, 10);
    }
    if (t->weight == 0 || t->status == 0)
        die("weight and status must be positive numbers", argument);
    run->weight_sum += t->weight;
    t->url = joined(run->opt.base, t->path);
    if (t->status != 200)
        return;
    name = joined(run->opt.dir, t->path);
    read_content(t, name);
    free(name);
}

static size_t on_body(char *data, size_t one, size_t length, void *user)
{
    struct transfer *x = user;
    const struct target *t = x->target;

    (void)one;
    if (t->status != 200)
        return length;
    if (!x->differs) {
        size_t left = t->size - x->received;
        size_t n = length < left ? length : left;

        if (memcmp(t->content + x->received, data, n) != 0 || n < length) {
            x->differs = true;
            x->differs_at = x->received;
        }
    }
    x->received += length;
    if (x->received > t->size)
        x->received = t->size;
    return length;
}

static void set_up(CURL *easy, const struct options *opt, struct transfer *x)
{
    curl_easy_setopt(easy, CURLOPT_PRIVATE, x);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, TRANSFER_TIMEOUT_S);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (opt->http2) {
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    }
    if (opt->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (opt->encoding != NULL)
        curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, opt->encoding);
}

/* Start one transfer, unless enough were started. */
static void launch(struct run *run, CURLM *multi, struct transfer *x)
{
    long alone;

    if (stopping || run->started >= run->opt.total)
        return;
    run->started++;
    x->target = pick(run);
    x->received = 0;
    x->differs = false;
    alone = run->opt.renew != 0 && next_random(&run->random) % run->opt.renew == 0;
    curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, alone);
    curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, alone);
    curl_easy_setopt(x->easy, CURLOPT_URL, x->target->url);
    if (curl_multi_add_handle(multi, x->easy) != CURLM_OK)
        die("cannot start a transfer", x->target->url);
}

static void complain(const struct run *run, const char *what, const struct transfer *x, size_t number)
{
    if (run->wrong + run->failed <= MAX_COMPLAINTS)
        fprintf(stderr, "bodycheck: %s: %s (%zu; received %zu of %zu)\n", x->target->url, what, number,
                x->received, x->target->size);
}

static bool is_cut(CURLcode result)
{
    return result == CURLE_GOT_NOTHING || result == CURLE_PARTIAL_FILE || result == CURLE_RECV_ERROR
           || result == CURLE_SEND_ERROR;
}

static void judge(struct run *run, struct transfer *x, CURLcode result)
{
    long status = 0, version = 0;

    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(x->easy, CURLINFO_HTTP_VERSION, &version);
    run->cut += is_cut(result);
    run->refused += result == CURLE_COULDNT_CONNECT;
    if (result != CURLE_OK) {
        run->failed++;
        complain(run, curl_easy_strerror(result), x, (size_t)result);
    } else if (status != x->target->status) {
        run->failed++;
        complain(run, "another status", x, (size_t)status);
    } else if (run->opt.http2 && version != CURL_HTTP_VERSION_2_0) {
        run->failed++;
        complain(run, "not HTTP/2", x, (size_t)version);
    } else {
        run->bodies++;
        if (x->differs || x->received != x->target->size) {
            run->wrong++;
            complain(run, "body differs, looked at offset", x, x->differs ? x->differs_at : x->received);
        }
    }
}

static void reap(struct run *run, CURLM *multi)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        CURL *easy = message->easy_handle;
        CURLcode result = message->data.result;
        struct transfer *x;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&x);
        judge(run, x, result);
        curl_multi_remove_handle(multi, easy);
        launch(run, multi, x);
    }
}

static void fetch_all(struct run *run)
{
    CURLM *multi = must(curl_multi_init());
    struct transfer *x = must(calloc(run->opt.concurrency, sizeof(*x)));
    int running = 1;

    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, STREAMS_PER_CONNECTION);
    for (unsigned i = 0; i < run->opt.concurrency; i++) {
        x[i].easy = must(curl_easy_init());
        set_up(x[i].easy, &run->opt, &x[i]);
        launch(run, multi, &x[i]);
    }
    while (running > 0) {
        curl_multi_perform(multi, &running);
        reap(run, multi);
        /* reap may have started new ones */
        if (run->bodies + run->failed == run->started)
            break;
        running = 1;
        curl_multi_poll(multi, NULL, 0, POLL_MS, NULL);
        if (run->opt.pause_us > 0)
            usleep(run->opt.pause_us);
    }
    for (unsigned i = 0; i < run->opt.concurrency; i++)
        curl_easy_cleanup(x[i].easy);
    curl_multi_cleanup(multi);
    free(x);
}

static void usage(void)
{
    fputs("usage: bodycheck --base URL --dir DIR [--http2] [--insecure]\n"
          "       [--accept-encoding LIST] [-c CONCURRENCY] [-n BODIES]\n"
          "       [--renew ONE-IN] [--pause MICROSECONDS] [--seed NUMBER] path[:weight[:status]]...\n",
          stderr);
    exit(2);
}

static void parse_options(struct options *opt, int argc, char **argv)
{
    static const struct option longs[] = {
        { "base", required_argument, NULL, 'b' },
        { "dir", required_argument, NULL, 'd' },
        { "http2", no_argument, NULL, '2' },
        { "insecure", no_argument, NULL, 'k' },
        { "accept-encoding", required_argument, NULL, 'e' },
        { "renew", required_argument, NULL, 'r' },
        { "pause", required_argument, NULL, 'p' },
        { "seed", required_argument, NULL, 's' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    while ((c = getopt_long(argc, argv, "c:n:", longs, NULL)) != -1) {
        switch (c) {
        case 'b': opt->base = optarg; break;
        case 'd': opt->dir = optarg; break;
        case '2': opt->http2 = true; break;
        case 'k': opt->insecure = true; break;
        case 'e': opt->encoding = optarg; break;
        case 'r': opt->renew = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'p': opt->pause_us = (unsigned)strtoul(optarg, NULL, 10); break;
        case 's': opt->seed = strtoull(optarg, NULL, 10); break;
        case 'c': opt->concurrency = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'n': opt->total = strtoul(optarg, NULL, 10); break;
        default: usage();
        }
    }
    if (opt->base == NULL || opt->dir == NULL || optind == argc || opt->total == 0 || opt->concurrency == 0
        || opt->concurrency > MAX_CONCURRENCY)
        usage();
}

static void free_targets(struct run *run)
{
    for (size_t i = 0; i < run->target_count; i++) {
        free(run->targets[i].path);
        free(run->targets[i].url);
        free(run->targets[i].content);
    }
    free(run->targets);
}

int main(int argc, char **argv)
{
    struct run run = { .opt = { .concurrency = 64, .total = 1000, .seed = 1 } };

    parse_options(&run.opt, argc, argv);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    run.random = run.opt.seed;
    run.targets = must(calloc((size_t)(argc - optind), sizeof(*run.targets)));
    for (int i = optind; i < argc; i++)
        add_target(&run, argv[i]);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        die("libcurl", "curl_global_init failed");
    fetch_all(&run);
    printf("bodies=%lu wrong=%lu failed=%lu cut=%lu refused=%lu\n", run.bodies, run.wrong, run.failed,
           run.cut, run.refused);
    free_targets(&run);
    curl_global_cleanup();
    return run.wrong || run.failed ? 1 : 0;
}
