/* SPDX-License-Identifier: Apache-2.0
 *
 * flashpache-bench: a load generator for HTTP/1.1 servers.
 */
#include "config.h"
#include "args.h"
#include "load.h"
#include "plan.h"
#include "report.h"
#include "tally.h"
#include "verify.h"

#include <signal.h>
#include <stdio.h>

#define EXIT_ERRORS     1
#define EXIT_IMPOSSIBLE 2

static volatile int stop_asked;

static void ask_stop(int number)
{
    (void)number;
    stop_asked = 1;
}

/* Ctrl-C ends the load in order, with a report; a second one ends at once. */
static void catch_interrupt(void)
{
    struct sigaction action = { .sa_handler = ask_stop, .sa_flags = (int)SA_RESETHAND };

    (void)sigaction(SIGINT, &action, NULL);
}

static int report(const struct bench_args *args, struct bench_tally *tally)
{
    bool wrong = bench_tally_errors(tally) > 0 || tally->answered == 0;
    int status = wrong && !args->allow_errors ? EXIT_ERRORS : 0;

    bench_report_print(stdout, args, tally);
    if (args->json != NULL && bench_report_json(args->json, args, tally) != 0)
        status = EXIT_IMPOSSIBLE;
    return status;
}

/* --once: as many requests as there are lines. */
static int count_once(struct bench_args *args, const struct bench_plan *plan)
{
    size_t lines = bench_plan_size(plan);

    if (!args->once)
        return 0;
    if (args->warmup >= lines) {
        (void)fprintf(stderr, "flashpache-bench: --once: no path is left after --warmup\n");
        return -1;
    }
    args->requests = lines - args->warmup;
    return 0;
}

static int measure(const struct bench_args *args, struct bench_plan *plan, struct bench_verify *verify)
{
    struct bench_tally tally;
    int status = EXIT_IMPOSSIBLE;

    if (bench_tally_open(&tally, args) != 0)
        return EXIT_IMPOSSIBLE;
    if (bench_load_run(args, plan, verify, &tally, &stop_asked) == 0)
        status = report(args, &tally);
    if (bench_tally_close(&tally) != 0)
        status = EXIT_IMPOSSIBLE;
    return status;
}

int main(int argc, char **argv)
{
    struct bench_args args;
    struct bench_plan *plan;
    struct bench_verify *verify = NULL;
    int status = bench_args_parse(argc, argv, &args);

    if (status >= 0)
        return status;
    plan = bench_plan_create(&args);
    if (plan == NULL || count_once(&args, plan) != 0) {
        bench_plan_destroy(&plan);
        return EXIT_IMPOSSIBLE;
    }
    if (args.verify != NULL)
        verify = bench_verify_create(args.verify, plan);
    catch_interrupt();
    if (args.verify != NULL && verify == NULL) {
        (void)fputs("flashpache-bench: out of memory for --verify\n", stderr);
        status = EXIT_IMPOSSIBLE;
    } else {
        status = measure(&args, plan, verify);
    }
    bench_verify_destroy(&verify);
    bench_plan_destroy(&plan);
    return status;
}
