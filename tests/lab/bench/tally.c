/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tally.h"

#include "args.h"
#include "series.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

const char *bench_failure_name(enum bench_failure failure)
{
    static const char *const names[BENCH_FAIL_COUNT] = {
        [BENCH_FAIL_CONNECT] = "connect",     [BENCH_FAIL_CLOSED] = "closed",
        [BENCH_FAIL_MALFORMED] = "malformed", [BENCH_FAIL_TIMEOUT] = "timeout",
        [BENCH_FAIL_BODY] = "body",           [BENCH_FAIL_STATUS] = "status",
    };

    return names[failure];
}

static int open_records(struct bench_tally *tally, const char *file)
{
    tally->records = fopen(file, "we");
    if (tally->records == NULL) {
        (void)fprintf(stderr, "flashpache-bench: cannot write %s: %s\n", file, strerror(errno));
        return -1;
    }
    (void)fputs("start_us\tsent_us\tlatency_us\tbytes\tstatus\tresult\turl\tconnection\tpath\n",
                tally->records);
    return 0;
}

int bench_tally_open(struct bench_tally *tally, const struct bench_args *args)
{
    int status = 0;

    *tally = (struct bench_tally){ 0 };
    tally->latency = bench_histogram_create();
    if (bench_effort_open(&tally->effort) != 0 || tally->latency == NULL) {
        (void)fputs("flashpache-bench: out of memory\n", stderr);
        status = -1;
    }
    if (status == 0 && args->records != NULL)
        status = open_records(tally, args->records);
    if (status == 0 && args->series != NULL) {
        tally->series = bench_series_create(args->series, args->interval_s);
        status = tally->series == NULL ? -1 : 0;
    }
    if (status != 0)
        (void)bench_tally_close(tally);
    return status;
}

static int close_records(struct bench_tally *tally)
{
    int failed;

    if (tally->records == NULL)
        return 0;
    failed = ferror(tally->records);
    if (fclose(tally->records) != 0 || failed) {
        (void)fputs("flashpache-bench: could not write all records (disk full?)\n", stderr);
        return -1;
    }
    return 0;
}

int bench_tally_close(struct bench_tally *tally)
{
    int records = close_records(tally);
    int series = bench_series_close(&tally->series);

    tally->records = NULL;
    bench_effort_close(&tally->effort);
    bench_histogram_destroy(&tally->latency);
    return records != 0 ? records : series;
}

/* In us since the measurement's begin. */
static double since_begin_us(const struct bench_tally *tally, uint64_t ns)
{
    return ((double)ns - (double)tally->start_ns) / 1e3;
}

static void record(const struct bench_tally *tally, const struct bench_event *event)
{
    if (tally->records == NULL)
        return;
    (void)fprintf(tally->records, "%.1f\t%.1f\t%.1f\t%" PRIu64 "\t%d\t%s\t%zu\t%" PRIu64 "\t%s\n",
                  since_begin_us(tally, event->start_ns), since_begin_us(tally, event->sent_ns),
                  (double)(event->end_ns - event->start_ns) / 1e3, event->bytes, event->status,
                  event->failed ? bench_failure_name(event->failure) : "ok", event->line, event->connection,
                  event->path);
}

static void add_to_series(const struct bench_tally *tally, const struct bench_event *event)
{
    const struct bench_series_event point = {
        .start_ns = event->start_ns - tally->start_ns,
        .latency_ns = event->end_ns - event->start_ns,
        .answered = event->status > 0,
        .failed = event->failed,
    };

    if (tally->series != NULL)
        bench_series_add(tally->series, &point);
}

static void count_answer(struct bench_tally *tally, const struct bench_event *event)
{
    tally->answered++;
    tally->by_status[event->status]++;
    if (event->failed && event->failure == BENCH_FAIL_STATUS)
        tally->unexpected[event->status]++;
    tally->bytes += event->bytes;
    bench_histogram_add(tally->latency, event->end_ns - event->start_ns);
    tally->end_ns = event->end_ns;
}

void bench_tally_add(struct bench_tally *tally, const struct bench_event *event)
{
    if (event->warmup) {
        tally->warmup_failures += event->failed ? 1 : 0;
        return;
    }
    if (event->status > 0)
        count_answer(tally, event);
    if (event->failed)
        tally->failures[event->failure]++;
    record(tally, event);
    add_to_series(tally, event);
}

void bench_tally_add_unfinished(struct bench_tally *tally, uint64_t start_ns)
{
    const struct bench_event event = { .start_ns = start_ns, .end_ns = start_ns, .failed = true };

    tally->unfinished++;
    if (start_ns >= tally->start_ns) /* else of the warm-up */
        add_to_series(tally, &event);
}

uint64_t bench_tally_errors(const struct bench_tally *tally)
{
    uint64_t errors = tally->unfinished + tally->warmup_failures;

    for (int i = 0; i < BENCH_FAIL_COUNT; i++)
        errors += tally->failures[i];
    return errors;
}
