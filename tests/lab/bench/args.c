/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EXIT_USAGE 2
#define MAX_CONNECTIONS 1000000
#define MAX_REQUESTS 1000000000000000.0
#define MAX_SECONDS 1e6
#define MAX_RATE 1e7
#define DEFAULT_DURATION_S 10.0
#define DEFAULT_TIMEOUT_S 30.0

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
        "  -c, --connections N         connections (default 1)\n"
        "  -n, --requests N            stop after N measured requests\n"
        "  -d, --duration S            stop after S seconds (default 10 when there is no -n)\n"
        "  -k, --per-connection N      requests per connection (default 0: no limit)\n"
        "  -u, --urls FILE             URL paths, one a line, besides those of the command line\n"
        "                              (default: the one path /)\n"
        "      --random SEED           choose paths at random, not in turn; also for arrivals\n"
        "  -r, --rate R                open loop: R requests a second, whatever the server does;\n"
        "                              latency counts from the intended start\n"
        "      --arrivals KIND         with -r: exponential (default) or constant\n"
        "      --warmup N              the first N requests do not count in the measurement\n"
        "  -t, --timeout S             seconds for one request (default 30)\n"
        "      --verify DIR            compare each body with the file DIR + path\n"
        "      --json FILE             write the results as JSON\n"
        "      --records FILE          write a line for each measured request (tab-separated)\n"
        "      --allow-errors          exit 0 also when requests failed\n"
        "  -h, --help                  this text\n"
        "\n"
        "Without -r each connection sends its next request when the last is answered. Latency is\n"
        "to the last byte of the body; it includes connecting where a request needs that.\n"
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

static int parse_connections(const char *text, unsigned *connections_r)
{
    uint64_t value = 0;
    int status = parse_whole("--connections", text, MAX_CONNECTIONS, &value);

    if (status >= 0)
        return status;
    if (value == 0)
        return complain("--connections", text, "at least 1");
    *connections_r = (unsigned)value;
    return -1;
}

static int parse_arrivals(const char *text, bool *constant_r)
{
    if (text[0] == 'c')
        *constant_r = true;
    else if (text[0] == 'e')
        *constant_r = false;
    else
        return complain("--arrivals", text, "exponential or constant");
    return -1;
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

static int parse_option(int opt, struct bench_args *a)
{
    int status = parse_number_option(opt, a);

    if (status != -2)
        return status;
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
        return parse_arrivals(optarg, &a->constant_arrivals);
    case OPT_VERIFY:
        a->verify = optarg;
        return -1;
    case OPT_JSON:
        a->json = optarg;
        return -1;
    case OPT_RECORDS:
        a->records = optarg;
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

int bench_args_parse(int argc, char **argv, struct bench_args *args_r)
{
    int status = -1;
    int opt;

    *args_r = (struct bench_args){
        .host = "127.0.0.1",
        .port = "80",
        .connections = 1,
        .seed = 1,
        .timeout_s = DEFAULT_TIMEOUT_S,
    };
    while (status < 0 &&
           (opt = getopt_long(argc, argv, "c:n:d:k:u:r:t:h", long_options, NULL)) != -1)
        status = parse_option(opt, args_r);
    if (status >= 0)
        return status;
    args_r->paths = argv + optind;
    args_r->path_count = argc - optind;
    if (args_r->requests == 0 && args_r->duration_s <= 0)
        args_r->duration_s = DEFAULT_DURATION_S;
    return -1;
}
