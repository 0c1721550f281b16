/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "report.h"

#include "args.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    double percent;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}};

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static double elapsed_s(const struct bench_tally *tally)
{
    return (double)(tally->end_ns - tally->start_ns) / 1e9;
}

static double rate_of(const struct bench_tally *tally, double amount)
{
    double elapsed = elapsed_s(tally);

    return elapsed > 0 ? amount / elapsed : 0.0;
}

static double percentile_ms(const struct bench_tally *tally, size_t i)
{
    return (double)bench_histogram_percentile(tally->latency, percentiles[i].percent) / 1e6;
}

static void print_load(FILE *out, const struct bench_args *args)
{
    (void)fprintf(out, "http://%s:%s/, %u connection%s, ", args->host, args->port,
                  args->connections, args->connections == 1 ? "" : "s");
    if (args->rate > 0)
        (void)fprintf(out, "open loop, %g requests/s, %s arrivals\n", args->rate,
                      args->constant_arrivals ? "constant" : "exponential");
    else
        (void)fputs("closed loop\n", out);
}

static void print_latency(FILE *out, const struct bench_tally *tally)
{
    (void)fprintf(out, "latency ms     mean %.3f", bench_histogram_mean(tally->latency) / 1e6);
    for (size_t i = 0; i < PERCENTILES; i++)
        (void)fprintf(out, "  %s %.3f", percentiles[i].name, percentile_ms(tally, i));
    (void)fprintf(out, "  max %.3f\n", (double)bench_histogram_max(tally->latency) / 1e6);
}

static void print_statuses(FILE *out, const struct bench_tally *tally)
{
    (void)fputs("statuses      ", out);
    for (int i = 0; i < BENCH_MAX_STATUS; i++)
        if (tally->by_status[i] > 0)
            (void)fprintf(out, " %d: %" PRIu64, i, tally->by_status[i]);
    (void)fputc('\n', out);
}

static void print_errors(FILE *out, const struct bench_tally *tally)
{
    (void)fprintf(out, "errors         %" PRIu64, bench_tally_errors(tally));
    for (int i = 0; i < BENCH_FAIL_COUNT; i++)
        if (tally->failures[i] > 0)
            (void)fprintf(out, "  %s %" PRIu64, bench_failure_name((enum bench_failure)i),
                          tally->failures[i]);
    if (tally->unfinished > 0)
        (void)fprintf(out, "  unfinished %" PRIu64, tally->unfinished);
    if (tally->warmup_failures > 0)
        (void)fprintf(out, "  warm-up %" PRIu64, tally->warmup_failures);
    (void)fputc('\n', out);
}

void bench_report_print(FILE *out, const struct bench_args *args, const struct bench_tally *tally)
{
    print_load(out, args);
    (void)fprintf(out, "answers        %" PRIu64 " in %.3f s, %.1f requests/s, %.2f MB/s\n",
                  tally->answered, elapsed_s(tally), rate_of(tally, (double)tally->answered),
                  rate_of(tally, (double)tally->bytes) / 1e6);
    print_latency(out, tally);
    print_statuses(out, tally);
    (void)fprintf(out, "connections    %" PRIu64 " opened, %" PRIu64 " requests sent again\n",
                  tally->connections, tally->retries);
    if (args->rate > 0)
        (void)fprintf(out, "late           %" PRIu64 " sent over 1 ms after the intended start\n",
                      tally->late);
    print_errors(out, tally);
}

static void json_string(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\' || (unsigned char)*c < 0x20)
            (void)fprintf(out, "\\u%04x", (unsigned)(unsigned char)*c);
        else
            (void)fputc(*c, out);
    }
    (void)fputc('"', out);
}

static void json_load(FILE *out, const struct bench_args *args)
{
    (void)fputs("  \"host\": ", out);
    json_string(out, args->host);
    (void)fputs(",\n  \"port\": ", out);
    json_string(out, args->port);
    (void)fprintf(out,
                  ",\n  \"connections\": %u,\n  \"loop\": \"%s\",\n  \"rate\": %g,\n"
                  "  \"arrivals\": \"%s\",\n",
                  args->connections, args->rate > 0 ? "open" : "closed", args->rate,
                  args->constant_arrivals ? "constant" : "exponential");
}

static void json_latency(FILE *out, const struct bench_tally *tally)
{
    (void)fprintf(out, "  \"latency_ms\": {\"mean\": %.6f, \"min\": %.6f",
                  bench_histogram_mean(tally->latency) / 1e6,
                  (double)bench_histogram_min(tally->latency) / 1e6);
    for (size_t i = 0; i < PERCENTILES; i++)
        (void)fprintf(out, ", \"%s\": %.6f", percentiles[i].name, percentile_ms(tally, i));
    (void)fprintf(out, ", \"max\": %.6f},\n", (double)bench_histogram_max(tally->latency) / 1e6);
}

static void json_statuses(FILE *out, const struct bench_tally *tally)
{
    const char *separator = "";

    (void)fputs("  \"by_status\": {", out);
    for (int i = 0; i < BENCH_MAX_STATUS; i++) {
        if (tally->by_status[i] == 0)
            continue;
        (void)fprintf(out, "%s\"%d\": %" PRIu64, separator, i, tally->by_status[i]);
        separator = ", ";
    }
    (void)fputs("},\n", out);
}

static void json_errors(FILE *out, const struct bench_tally *tally)
{
    (void)fprintf(out, "  \"errors\": %" PRIu64 ",\n  \"by_error\": {",
                  bench_tally_errors(tally));
    for (int i = 0; i < BENCH_FAIL_COUNT; i++)
        (void)fprintf(out, "\"%s\": %" PRIu64 ", ", bench_failure_name((enum bench_failure)i),
                      tally->failures[i]);
    (void)fprintf(out, "\"unfinished\": %" PRIu64 ", \"warmup\": %" PRIu64 "}\n",
                  tally->unfinished, tally->warmup_failures);
}

int bench_report_json(const char *file, const struct bench_args *args,
                      const struct bench_tally *tally)
{
    FILE *out = fopen(file, "we");
    int failed;

    if (out == NULL) {
        (void)fprintf(stderr, "flashpache-bench: cannot write %s: %s\n", file, strerror(errno));
        return -1;
    }
    (void)fputs("{\n", out);
    json_load(out, args);
    (void)fprintf(out,
                  "  \"requests\": %" PRIu64 ",\n  \"duration_s\": %.6f,\n"
                  "  \"requests_per_s\": %.3f,\n  \"bytes\": %" PRIu64 ",\n",
                  tally->answered, elapsed_s(tally), rate_of(tally, (double)tally->answered),
                  tally->bytes);
    json_latency(out, tally);
    json_statuses(out, tally);
    (void)fprintf(out,
                  "  \"connections_opened\": %" PRIu64 ",\n  \"retries\": %" PRIu64
                  ",\n  \"late_starts\": %" PRIu64 ",\n",
                  tally->connections, tally->retries, tally->late);
    json_errors(out, tally);
    (void)fputs("}\n", out);
    failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        (void)fprintf(stderr, "flashpache-bench: could not write %s (disk full?)\n", file);
        return -1;
    }
    return 0;
}
