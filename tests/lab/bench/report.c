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
} percentiles[] = {
    { "p5", 5 }, { "p50", 50 }, { "p90", 90 }, { "p95", 95 }, { "p99", 99 }, { "p99.9", 99.9 }
};

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static const struct {
    const char *name;
    const char *meaning;
} limits[BENCH_LIMIT_COUNT] = {
    [BENCH_LIMIT_CPU] = { "cpu", "it had no time left, the server may be faster" },
    [BENCH_LIMIT_CPU_WAIT] = { "cpu wait", "it worked or waited for a core all the time" },
    [BENCH_LIMIT_LATE_SENDS] = { "late sends", "it sent late, and the latencies contain that" },
};

static double elapsed_s(const struct bench_tally *tally)
{
    return (double)(tally->end_ns - tally->start_ns) / 1e9;
}

static double rate_of(const struct bench_tally *tally, double amount)
{
    double elapsed = elapsed_s(tally);

    return elapsed > 0 ? amount / elapsed : 0.0;
}

static double percentile_ms(const struct bench_histogram *histogram, size_t i)
{
    return (double)bench_histogram_percentile(histogram, percentiles[i].percent) / 1e6;
}

static double max_ms(const struct bench_histogram *histogram)
{
    return (double)bench_histogram_max(histogram) / 1e6;
}

static void print_load(FILE *out, const struct bench_args *args)
{
    (void)fprintf(out, "%s://%s:%s/, %u connection%s, %s loop", args->tls ? "https" : "http", args->host,
                  args->port, args->connections, args->connections == 1 ? "" : "s", bench_args_loop(args));
    if (args->sessions > 0)
        (void)fprintf(out, ", %g sessions/s of %s%" PRIu64 " requests, think time %g s", args->sessions,
                      args->geometric_sessions ? "a mean of " : "", args->session_requests, args->think_s);
    if (args->rate > 0)
        (void)fprintf(out, ", %g requests/s", args->rate);
    if (bench_args_arrivals(args) > 0)
        (void)fprintf(out, ", %s arrivals", args->constant_arrivals ? "constant" : "exponential");
    (void)fputc('\n', out);
}

static void print_latency(FILE *out, const struct bench_tally *tally)
{
    (void)fprintf(out, "latency ms     mean %.3f", bench_histogram_mean(tally->latency) / 1e6);
    for (size_t i = 0; i < PERCENTILES; i++)
        (void)fprintf(out, "  %s %.3f", percentiles[i].name, percentile_ms(tally->latency, i));
    (void)fprintf(out, "  max %.3f\n", max_ms(tally->latency));
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

static void print_connections(FILE *out, const struct bench_args *args, const struct bench_tally *tally)
{
    (void)fprintf(out, "connections    %" PRIu64 " opened, %" PRIu64 " requests sent again\n",
                  tally->connections, tally->retries);
    if (tally->tls_protocol != NULL)
        (void)fprintf(out, "TLS            %s, %s, certificate not verified\n", tally->tls_protocol,
                      tally->tls_cipher);
    if (args->sessions > 0)
        (void)fprintf(out, "sessions       %" PRIu64 " started, %" PRIu64 " completed\n",
                      tally->sessions_started, tally->sessions_completed);
}

static void print_effort(FILE *out, const struct bench_args *args, const struct bench_tally *tally)
{
    const struct bench_effort *effort = &tally->effort;

    if (bench_args_arrivals(args) > 0) {
        (void)fprintf(out, "late           %" PRIu64 " sent over 1 ms after the intended start\n",
                      tally->late);
        (void)fprintf(out, "late by us ms  p50 %.3f  p99 %.3f  max %.3f\n",
                      (double)bench_histogram_percentile(effort->late_sends, 50) / 1e6,
                      (double)bench_histogram_percentile(effort->late_sends, 99) / 1e6,
                      max_ms(effort->late_sends));
    }
    (void)fprintf(out, "client         %.0f %% of a core used, %.0f %% of the time waiting for one\n",
                  effort->cpu * 100, effort->cpu_wait * 100);
    for (size_t i = 0; i < BENCH_LIMIT_COUNT; i++)
        if (bench_effort_limited(effort, tally->latency, (enum bench_limit)i))
            (void)fprintf(out, "LIMITED        by this client: %s\n", limits[i].meaning);
}

void bench_report_print(FILE *out, const struct bench_args *args, const struct bench_tally *tally)
{
    print_load(out, args);
    (void)fprintf(out, "answers        %" PRIu64 " in %.3f s, %.1f requests/s, %.2f MB/s\n", tally->answered,
                  elapsed_s(tally), rate_of(tally, (double)tally->answered),
                  rate_of(tally, (double)tally->bytes) / 1e6);
    print_latency(out, tally);
    print_statuses(out, tally);
    print_connections(out, args, tally);
    print_effort(out, args, tally);
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
                  args->connections, bench_args_loop(args), bench_args_arrivals(args),
                  args->constant_arrivals ? "constant" : "exponential");
    if (args->sessions > 0)
        (void)fprintf(out,
                      "  \"session_requests\": %" PRIu64 ",\n  \"session_length\": \"%s\",\n"
                      "  \"think_s\": %g,\n",
                      args->session_requests, args->geometric_sessions ? "geometric" : "fixed",
                      args->think_s);
}

static void json_tls(FILE *out, const struct bench_tally *tally)
{
    if (tally->tls_protocol == NULL)
        (void)fputs("  \"tls\": null,\n", out);
    else
        (void)fprintf(out, "  \"tls\": {\"protocol\": \"%s\", \"cipher\": \"%s\"},\n", tally->tls_protocol,
                      tally->tls_cipher);
}

static void json_durations(FILE *out, const char *name, const struct bench_histogram *histogram)
{
    (void)fprintf(out, "  \"%s\": {\"mean\": %.6f, \"min\": %.6f", name,
                  bench_histogram_mean(histogram) / 1e6, (double)bench_histogram_min(histogram) / 1e6);
    for (size_t i = 0; i < PERCENTILES; i++)
        (void)fprintf(out, ", \"%s\": %.6f", percentiles[i].name, percentile_ms(histogram, i));
    (void)fprintf(out, ", \"max\": %.6f},\n", max_ms(histogram));
}

static void json_effort(FILE *out, const struct bench_tally *tally)
{
    const struct bench_effort *effort = &tally->effort;
    const char *separator = "";

    (void)fprintf(out, "  \"client_cpu\": %.4f,\n  \"client_cpu_wait\": %.4f,\n", effort->cpu,
                  effort->cpu_wait);
    json_durations(out, "late_sends_ms", effort->late_sends);
    (void)fputs("  \"client_limited_by\": [", out);
    for (size_t i = 0; i < BENCH_LIMIT_COUNT; i++) {
        if (!bench_effort_limited(effort, tally->latency, (enum bench_limit)i))
            continue;
        (void)fprintf(out, "%s\"%s\"", separator, limits[i].name);
        separator = ", ";
    }
    (void)fprintf(out, "],\n  \"client_limited\": %s,\n", *separator != '\0' ? "true" : "false");
}

static void json_statuses(FILE *out, const char *name, const uint64_t *counts)
{
    const char *separator = "";

    (void)fprintf(out, "  \"%s\": {", name);
    for (int i = 0; i < BENCH_MAX_STATUS; i++) {
        if (counts[i] == 0)
            continue;
        (void)fprintf(out, "%s\"%d\": %" PRIu64, separator, i, counts[i]);
        separator = ", ";
    }
    (void)fputs("},\n", out);
}

static void json_errors(FILE *out, const struct bench_tally *tally)
{
    (void)fprintf(out, "  \"errors\": %" PRIu64 ",\n  \"by_error\": {", bench_tally_errors(tally));
    for (int i = 0; i < BENCH_FAIL_COUNT; i++)
        (void)fprintf(out, "\"%s\": %" PRIu64 ", ", bench_failure_name((enum bench_failure)i),
                      tally->failures[i]);
    (void)fprintf(out, "\"unfinished\": %" PRIu64 ", \"warmup\": %" PRIu64 "}\n", tally->unfinished,
                  tally->warmup_failures);
}

int bench_report_json(const char *file, const struct bench_args *args, const struct bench_tally *tally)
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
                  tally->answered, elapsed_s(tally), rate_of(tally, (double)tally->answered), tally->bytes);
    json_tls(out, tally);
    json_durations(out, "latency_ms", tally->latency);
    json_effort(out, tally);
    json_statuses(out, "by_status", tally->by_status);
    json_statuses(out, "unexpected", tally->unexpected);
    (void)fprintf(
        out,
        "  \"connections_opened\": %" PRIu64 ",\n  \"retries\": %" PRIu64 ",\n  \"late_starts\": %" PRIu64
        ",\n  \"sessions\": {\"started\": %" PRIu64 ", \"completed\": %" PRIu64 "},\n",
        tally->connections, tally->retries, tally->late, tally->sessions_started, tally->sessions_completed);
    json_errors(out, tally);
    (void)fputs("}\n", out);
    failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        (void)fprintf(stderr, "flashpache-bench: could not write %s (disk full?)\n", file);
        return -1;
    }
    return 0;
}
