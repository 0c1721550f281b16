/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tally.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

const char *bench_failure_name(enum bench_failure failure)
{
    static const char *const names[BENCH_FAIL_COUNT] = {
        [BENCH_FAIL_CONNECT] = "connect", [BENCH_FAIL_CLOSED] = "closed",
        [BENCH_FAIL_MALFORMED] = "malformed", [BENCH_FAIL_TIMEOUT] = "timeout",
        [BENCH_FAIL_BODY] = "body", [BENCH_FAIL_STATUS] = "status",
    };

    return names[failure];
}

int bench_tally_open(struct bench_tally *tally, const char *records_file)
{
    *tally = (struct bench_tally){0};
    tally->latency = bench_histogram_create();
    if (tally->latency == NULL) {
        (void)fputs("flashpache-bench: out of memory\n", stderr);
        return -1;
    }
    if (records_file == NULL)
        return 0;
    tally->records = fopen(records_file, "we");
    if (tally->records == NULL) {
        (void)fprintf(stderr, "flashpache-bench: cannot write %s: %s\n", records_file,
                      strerror(errno));
        bench_histogram_destroy(&tally->latency);
        return -1;
    }
    (void)fputs("start_us\tlatency_us\tbytes\tstatus\tresult\tpath\n", tally->records);
    return 0;
}

int bench_tally_close(struct bench_tally *tally)
{
    int status = 0;

    if (tally->records != NULL) {
        status = ferror(tally->records) ? -1 : 0;
        if (fclose(tally->records) != 0)
            status = -1;
        tally->records = NULL;
        if (status != 0)
            (void)fputs("flashpache-bench: could not write all records (disk full?)\n", stderr);
    }
    bench_histogram_destroy(&tally->latency);
    return status;
}

static void record(const struct bench_tally *tally, const struct bench_event *event)
{
    if (tally->records == NULL)
        return;
    (void)fprintf(tally->records, "%.1f\t%.1f\t%" PRIu64 "\t%d\t%s\t%s\n",
                  ((double)event->start_ns - (double)tally->start_ns) / 1e3,
                  (double)(event->end_ns - event->start_ns) / 1e3, event->bytes, event->status,
                  event->failed ? bench_failure_name(event->failure) : "ok", event->path);
}

static void count_answer(struct bench_tally *tally, const struct bench_event *event)
{
    tally->answered++;
    tally->by_status[event->status]++;
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
}

uint64_t bench_tally_errors(const struct bench_tally *tally)
{
    uint64_t errors = tally->unfinished + tally->warmup_failures;

    for (int i = 0; i < BENCH_FAIL_COUNT; i++)
        errors += tally->failures[i];
    return errors;
}
