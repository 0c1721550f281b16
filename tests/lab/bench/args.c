/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE               2
#define MAX_CONNECTIONS          1000000
#define MAX_REQUESTS             1000000000000000.0
#define MAX_SECONDS              1e6
#define MAX_RATE                 1e7
#define DEFAULT_DURATION_S       10.0
#define DEFAULT_TIMEOUT_S        30.0
#define DEFAULT_SESSION_REQUESTS 5
#define DEFAULT_SESSIONS_AT_ONCE 1000

enum kind { FLAG, TEXT, REAL, REAL_OR_0, WHOLE, COUNT, CONNECTIONS, SEED, ARRIVALS, SESSION_LENGTH, HELP };

#define AT(member) offsetof(struct bench_args, member)

/* The options; letter 0: it has only its long name. max: the largest number. */
static const struct row {
    const char *name;
    char letter;
    enum kind kind;
    size_t offset;
    double max;
} rows[] = {
    { "host", 0, TEXT, AT(host), 0 },
    { "port", 0, TEXT, AT(port), 0 },
    { "connections", 'c', CONNECTIONS, AT(connections), MAX_CONNECTIONS },
    { "requests", 'n', WHOLE, AT(requests), MAX_REQUESTS },
    { "duration", 'd', REAL, AT(duration_s), MAX_SECONDS },
    { "per-connection", 'k', WHOLE, AT(per_connection), MAX_REQUESTS },
    { "urls", 'u', TEXT, AT(urls), 0 },
    { "random", 0, SEED, AT(seed), 1.8e19 },
    { "rate", 'r', REAL, AT(rate), MAX_RATE },
    { "arrivals", 0, ARRIVALS, AT(constant_arrivals), 0 },
    { "sessions", 0, REAL, AT(sessions), MAX_RATE },
    { "session-requests", 0, COUNT, AT(session_requests), MAX_REQUESTS },
    { "session-length", 0, SESSION_LENGTH, AT(geometric_sessions), 0 },
    { "think", 0, REAL_OR_0, AT(think_s), MAX_SECONDS },
    { "tls", 0, FLAG, AT(tls), 0 },
    { "once", 0, FLAG, AT(once), 0 },
    { "series", 0, TEXT, AT(series), 0 },
    { "interval", 0, REAL, AT(interval_s), MAX_SECONDS },
    { "timeout", 't', REAL, AT(timeout_s), MAX_SECONDS },
    { "verify", 0, TEXT, AT(verify), 0 },
    { "warmup", 0, WHOLE, AT(warmup), MAX_REQUESTS },
    { "json", 0, TEXT, AT(json), 0 },
    { "records", 0, TEXT, AT(records), 0 },
    { "allow-errors", 0, FLAG, AT(allow_errors), 0 },
    { "help", 'h', HELP, 0, 0 },
};

#define N_ROWS     (sizeof(rows) / sizeof(rows[0]))
#define FIRST_LONG 256 /* of row 0; smaller numbers are letters */

static void usage(void)
{
    (void)fputs("Usage: flashpache-bench [options] [PATH...]\n"
                "\n"
                "Sends GET and HEAD requests over HTTP/1.1 keep-alive connections and measures the answers.\n"
                "\n"
                "  --host HOST, --port PORT    the server (default 127.0.0.1, 80)\n"
                "      --tls                   HTTPS; the server's certificate is not verified, and each\n"
                "                              connection is a full handshake\n"
                "  -c, --connections N         connections at once (default 1; with --sessions at most,\n"
                "                              default 1000)\n"
                "  -n, --requests N            stop after N measured requests\n"
                "  -d, --duration S            stop after S seconds (default 10 when there is no -n)\n"
                "  -k, --per-connection N      requests per connection (default 0: no limit)\n"
                "  -u, --urls FILE             URL paths, one a line, besides those of the command line\n"
                "                              each may have http://HOST and GET or HEAD before it, and\n"
                "                              behind it the status to expect (default: any below 400)\n"
                "                              (default: the one path /)\n"
                "                              taken in turn over all connections, again from the first\n"
                "                              after the last\n"
                "      --once                  stop after the last path\n"
                "      --random SEED           choose paths at random, not in turn; also for arrivals\n"
                "  -r, --rate R                open loop: R requests a second, whatever the server does;\n"
                "                              latency counts from the intended start\n"
                "      --sessions R            partly open: R sessions a second, whatever the server does;\n"
                "                              each has a connection of its own\n"
                "      --session-requests N    requests of a session (default 5)\n"
                "      --session-length KIND   fixed (default), or geometric with the mean N\n"
                "      --think S               mean think time after each answer of a session, exponential\n"
                "                              (default: none)\n"
                "      --arrivals KIND         with -r and --sessions: exponential (default) or constant\n"
                "      --warmup N              the first N requests do not count in the measurement\n"
                "  -t, --timeout S             seconds for one request (default 30)\n"
                "      --verify DIR            compare each body with the file DIR + path\n"
                "      --json FILE             write the results as JSON\n"
                "      --records FILE          write a line for each measured request, see below\n"
                "      --series FILE           write a line for each interval, see below\n"
                "      --interval S            of the series, in seconds (default 1)\n"
                "      --allow-errors          exit 0 also when requests failed\n"
                "  -h, --help                  this text\n"
                "\n"
                "Without -r and --sessions each connection sends its next request when the last is\n"
                "answered. Latency is from the intended start to the last byte of the body; it includes\n"
                "connecting where a request needs that. When this program was the limit and not the\n"
                "server, the report says so.\n"
                "\n"
                "Both files are tab-separated and begin with a line of the columns' names.\n"
                "Records, in the order in which requests ended: start_us (intended) and sent_us, both\n"
                "since the begin of the measurement, latency_us, bytes of the body, status (0: none),\n"
                "result (ok, connect, closed, malformed, timeout, body, status), url (its number in the\n"
                "list, from 0, those of the command line first), connection (from 0), path.\n"
                "Series, by the intended start: start_s, requests, answered, errors, and mean_ms, p50_ms,\n"
                "p99_ms, max_ms of the latency (nan without an answer).\n"
                "\n"
                "Exit status: 0, 1 if a request failed or was answered wrongly (also by another status\n"
                "than expected), 2 if it could not be started.\n",
                stdout);
}

static int complain(const char *name, const char *text, const char *expected)
{
    (void)fprintf(stderr, "flashpache-bench: --%s %s: must be %s\n", name, text, expected);
    return EXIT_USAGE;
}

static int parse_real(const char *name, const char *text, double max, double *value_r)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value <= 0 || value > max)
        return complain(name, text, "a positive number (and not absurdly large)");
    *value_r = value;
    return -1;
}

static int parse_whole(const char *name, const char *text, double max, uint64_t *value_r)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || (double)value > max)
        return complain(name, text, "a whole number (and not absurdly large)");
    *value_r = value;
    return -1;
}

/* The default, or the other choice; their first letters are enough. */
static int parse_choice(const char *name, const char *text, const char *usual, const char *other,
                        bool *is_other_r)
{
    *is_other_r = text[0] == other[0];
    if (*is_other_r || text[0] == usual[0])
        return -1;
    (void)fprintf(stderr, "flashpache-bench: --%s %s: must be %s or %s\n", name, text, usual, other);
    return EXIT_USAGE;
}

static int parse_row(const struct row *row, struct bench_args *a)
{
    void *at = (char *)a + row->offset;
    uint64_t count = 0;
    int status;

    switch (row->kind) {
    case FLAG: *(bool *)at = true; return -1;
    case TEXT: *(const char **)at = optarg; return -1;
    case REAL_OR_0:
        if (strcmp(optarg, "0") == 0)
            return -1;
        return parse_real(row->name, optarg, row->max, at);
    case REAL: return parse_real(row->name, optarg, row->max, at);
    case SEED: a->random = true; return parse_whole(row->name, optarg, row->max, at);
    case WHOLE: return parse_whole(row->name, optarg, row->max, at);
    case CONNECTIONS:
    case COUNT:
        status = parse_whole(row->name, optarg, row->max, &count);
        if (row->kind == COUNT)
            *(uint64_t *)at = count;
        else
            *(unsigned *)at = (unsigned)count;
        return status < 0 && count == 0 ? complain(row->name, optarg, "at least 1") : status;
    case ARRIVALS: return parse_choice(row->name, optarg, "exponential", "constant", at);
    case SESSION_LENGTH: return parse_choice(row->name, optarg, "fixed", "geometric", at);
    case HELP: usage(); return 0;
    }
    return EXIT_USAGE;
}

static int parse_option(int opt, struct bench_args *a)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (opt == (int)i + FIRST_LONG || opt == rows[i].letter)
            return parse_row(&rows[i], a);
    }
    (void)fputs("flashpache-bench: see flashpache-bench --help\n", stderr);
    return EXIT_USAGE;
}

static int refuse(const char *why)
{
    (void)fprintf(stderr, "flashpache-bench: %s\n", why);
    return EXIT_USAGE;
}

/* Checks that depend on several options. */
static int settle(struct bench_args *a)
{
    if (a->rate > 0 && a->sessions > 0)
        return refuse("--rate and --sessions exclude each other");
    if (a->sessions <= 0 && (a->session_requests != 0 || a->geometric_sessions || a->think_s > 0))
        return refuse("--session-requests, --session-length and --think are for --sessions");
    if (a->once && (a->random || a->requests > 0))
        return refuse("--once excludes --random and --requests");
    if (a->session_requests == 0)
        a->session_requests = DEFAULT_SESSION_REQUESTS;
    if (a->connections == 0)
        a->connections = a->sessions > 0 ? DEFAULT_SESSIONS_AT_ONCE : 1;
    if (a->requests == 0 && a->duration_s <= 0 && !a->once)
        a->duration_s = DEFAULT_DURATION_S;
    return -1;
}

double bench_args_arrivals(const struct bench_args *args)
{
    return args->sessions > 0 ? args->sessions : args->rate;
}

const char *bench_args_loop(const struct bench_args *args)
{
    if (args->sessions > 0)
        return "partly-open";
    return args->rate > 0 ? "open" : "closed";
}

int bench_args_parse(int argc, char **argv, struct bench_args *args_r)
{
    struct option options[N_ROWS + 1] = { { NULL, 0, NULL, 0 } };
    int status = -1, opt;

    for (size_t i = 0; i < N_ROWS; i++)
        options[i] =
            (struct option){ rows[i].name,
                             rows[i].kind == FLAG || rows[i].kind == HELP ? no_argument : required_argument,
                             NULL, (int)i + FIRST_LONG };
    *args_r = (struct bench_args){
        .host = "127.0.0.1",
        .port = "80",
        .seed = 1,
        .interval_s = 1,
        .timeout_s = DEFAULT_TIMEOUT_S,
    };
    while (status < 0 && (opt = getopt_long(argc, argv, "c:n:d:k:u:r:t:h", options, NULL)) != -1)
        status = parse_option(opt, args_r);
    if (status >= 0)
        return status;
    args_r->paths = argv + optind;
    args_r->path_count = argc - optind;
    return settle(args_r);
}
