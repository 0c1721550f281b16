/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define MAX_CONNECTIONS 1000000
#define MAX_REQUESTS 1000000000000000.0
#define MAX_SECONDS 1e6
#define MAX_RATE 1e7
#define DEFAULT_DURATION_S 10.0
#define DEFAULT_TIMEOUT_S 30.0
#define DEFAULT_SESSION_REQUESTS 5
#define DEFAULT_SESSIONS_AT_ONCE 1000

enum {
    OPT_HOST = 256,
    OPT_PORT,
    OPT_RANDOM,
    OPT_ARRIVALS,
    OPT_VERIFY,
    OPT_WARMUP,
    OPT_JSON,
    OPT_RECORDS,
    OPT_ALLOW,
    OPT_SESSIONS,
    OPT_SESSION_REQUESTS,
    OPT_SESSION_LENGTH,
    OPT_THINK,
    OPT_TLS,
    OPT_ONCE,
    OPT_SERIES,
    OPT_INTERVAL,
};

static const struct option long_options[] = {
    {"host", required_argument, NULL, OPT_HOST},
    {"port", required_argument, NULL, OPT_PORT},
    {"connections", required_argument, NULL, 'c'},
    {"requests", required_argument, NULL, 'n'},
    {"duration", required_argument, NULL, 'd'},
    {"per-connection", required_argument, NULL, 'k'},
    {"urls", required_argument, NULL, 'u'},
    {"random", required_argument, NULL, OPT_RANDOM},
    {"rate", required_argument, NULL, 'r'},
    {"arrivals", required_argument, NULL, OPT_ARRIVALS},
    {"sessions", required_argument, NULL, OPT_SESSIONS},
    {"session-requests", required_argument, NULL, OPT_SESSION_REQUESTS},
    {"session-length", required_argument, NULL, OPT_SESSION_LENGTH},
    {"think", required_argument, NULL, OPT_THINK},
    {"tls", no_argument, NULL, OPT_TLS},
    {"once", no_argument, NULL, OPT_ONCE},
    {"series", required_argument, NULL, OPT_SERIES},
    {"interval", required_argument, NULL, OPT_INTERVAL},
    {"timeout", required_argument, NULL, 't'},
    {"verify", required_argument, NULL, OPT_VERIFY},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"json", required_argument, NULL, OPT_JSON},
    {"records", required_argument, NULL, OPT_RECORDS},
    {"allow-errors", no_argument, NULL, OPT_ALLOW},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void usage(void)
{
    (void)fputs(
        "Usage: flashpache-bench [options] [PATH...]\n"
        "\n"
        "Sends GET requests over HTTP/1.1 keep-alive connections and measures the answers.\n"
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
        "Exit status: 0, 1 if a request failed or was answered wrongly (also by status 400 and\n"
        "above), 2 if it could not be started.\n",
        stdout);
}

static int complain(const char *name, const char *text, const char *expected)
{
    (void)fprintf(stderr, "flashpache-bench: %s %s: must be %s\n", name, text, expected);
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

static int parse_count(const char *name, const char *text, double max, uint64_t *value_r)
{
    int status = parse_whole(name, text, max, value_r);

    return status < 0 && *value_r == 0 ? complain(name, text, "at least 1") : status;
}

static int parse_connections(const char *text, unsigned *connections_r)
{
    uint64_t value = 0;
    int status = parse_count("--connections", text, MAX_CONNECTIONS, &value);

    *connections_r = (unsigned)value;
    return status;
}

/* The default, or the other choice; their first letters are enough. */
static int parse_choice(const char *name, const char *text, const char *usual, const char *other,
                        bool *is_other_r)
{
    *is_other_r = text[0] == other[0];
    if (*is_other_r || text[0] == usual[0])
        return -1;
    (void)fprintf(stderr, "flashpache-bench: %s %s: must be %s or %s\n", name, text, usual, other);
    return EXIT_USAGE;
}

static int parse_number_option(int opt, struct bench_args *a)
{
    switch (opt) {
    case 'c':
        return parse_connections(optarg, &a->connections);
    case 'n':
        return parse_whole("--requests", optarg, MAX_REQUESTS, &a->requests);
    case 'd':
        return parse_real("--duration", optarg, MAX_SECONDS, &a->duration_s);
    case 'k':
        return parse_whole("--per-connection", optarg, MAX_REQUESTS, &a->per_connection);
    case 'r':
        return parse_real("--rate", optarg, MAX_RATE, &a->rate);
    case OPT_SESSIONS:
        return parse_real("--sessions", optarg, MAX_RATE, &a->sessions);
    case OPT_SESSION_REQUESTS:
        return parse_count("--session-requests", optarg, MAX_REQUESTS, &a->session_requests);
    case OPT_THINK:
        return strcmp(optarg, "0") == 0
                   ? -1
                   : parse_real("--think", optarg, MAX_SECONDS, &a->think_s);
    case OPT_INTERVAL:
        return parse_real("--interval", optarg, MAX_SECONDS, &a->interval_s);
    case 't':
        return parse_real("--timeout", optarg, MAX_SECONDS, &a->timeout_s);
    case OPT_WARMUP:
        return parse_whole("--warmup", optarg, MAX_REQUESTS, &a->warmup);
    case OPT_RANDOM:
        a->random = true;
        return parse_whole("--random", optarg, 1.8e19, &a->seed);
    default:
        return -2;
    }
}

static int parse_text_option(int opt, struct bench_args *a)
{
    switch (opt) {
    case OPT_HOST:
        a->host = optarg;
        return -1;
    case OPT_PORT:
        a->port = optarg;
        return -1;
    case 'u':
        a->urls = optarg;
        return -1;
    case OPT_ARRIVALS:
        return parse_choice("--arrivals", optarg, "exponential", "constant", &a->constant_arrivals);
    case OPT_SESSION_LENGTH:
        return parse_choice("--session-length", optarg, "fixed", "geometric",
                            &a->geometric_sessions);
    case OPT_VERIFY:
        a->verify = optarg;
        return -1;
    case OPT_JSON:
        a->json = optarg;
        return -1;
    case OPT_RECORDS:
        a->records = optarg;
        return -1;
    case OPT_SERIES:
        a->series = optarg;
        return -1;
    default:
        return -2;
    }
}

static int parse_option(int opt, struct bench_args *a)
{
    int status = parse_number_option(opt, a);

    if (status == -2)
        status = parse_text_option(opt, a);
    if (status != -2)
        return status;
    switch (opt) {
    case OPT_TLS:
        a->tls = true;
        return -1;
    case OPT_ONCE:
        a->once = true;
        return -1;
    case OPT_ALLOW:
        a->allow_errors = true;
        return -1;
    case 'h':
        usage();
        return 0;
    default:
        (void)fputs("flashpache-bench: see flashpache-bench --help\n", stderr);
        return EXIT_USAGE;
    }
}

static int refuse(const char *why)
{
    (void)fprintf(stderr, "flashpache-bench: %s\n", why);
    return EXIT_USAGE;
}

/* What depends on more than one option. */
static int settle(struct bench_args *a)
{
    if (a->rate > 0 && a->sessions > 0)
        return refuse("--rate and --sessions exclude each other");
    if (a->sessions <= 0 &&
        (a->session_requests != 0 || a->geometric_sessions || a->think_s > 0))
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
    int status = -1;
    int opt;

    *args_r = (struct bench_args){
        .host = "127.0.0.1",
        .port = "80",
        .seed = 1,
        .interval_s = 1,
        .timeout_s = DEFAULT_TIMEOUT_S,
    };
    while (status < 0 &&
           (opt = getopt_long(argc, argv, "c:n:d:k:u:r:t:h", long_options, NULL)) != -1)
        status = parse_option(opt, args_r);
    if (status >= 0)
        return status;
    args_r->paths = argv + optind;
    args_r->path_count = argc - optind;
    return settle(args_r);
}
