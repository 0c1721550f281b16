/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/snapshot.h"

#include <ap_mpm.h>
#include <apr_strings.h>
#include <http_log.h>
#include <http_main.h>
#include <stdlib.h>
#include <string.h>

#include "shared/client.h"
#include "wire/wire.h"

APLOG_USE_MODULE(flashpache);

#define PATIENCE_MS 500u /* to connect, and once more for each answer */
#define MOST_ROWS   4096 /* of a report: the page compares rows with one another */

static apr_array_header_t *names; /* of the hosts that have counters */
static const char *daemon_socket;
static fp_snapshot_client *new_client;

static const char *name_of(apr_pool_t *p, const server_rec *s)
{
    const char *name = s->server_hostname != NULL ? s->server_hostname : "main";
    apr_port_t port = s->is_virtual && s->addrs != NULL ? s->addrs->host_port : s->port;

    return port != 0 ? apr_psprintf(p, "%s:%u", name, port) : name;
}

/* Hosts of one name share their counters. */
static unsigned number_of(const char *name)
{
    int i = 0;

    while (i < names->nelts && strcmp(APR_ARRAY_IDX(names, i, const char *), name) != 0)
        i++;
    if (i == names->nelts)
        APR_ARRAY_PUSH(names, const char *) = name;
    return (unsigned)i;
}

/* httpd keeps it over restarts, for this release of the module alone. */
static struct fp_counters *kept_counters(apr_pool_t *p)
{
    const char *key = apr_psprintf(p, "mod_flashpache-counters-%s-%d", FP_RELEASE, FP_COUNTS);
    struct fp_counters *kept = ap_retained_data_get(key);

    return kept != NULL ? kept : ap_retained_data_create(key, sizeof(*kept));
}

void fp_snapshot_init(apr_pool_t *pconf, server_rec *s, const char *socket, fp_snapshot_client *make_client,
                      unsigned *(*counted_as)(const server_rec *s))
{
    int children = 1;
    apr_status_t rv;

    daemon_socket = socket;
    new_client = make_client;
    names = apr_array_make(pconf, 8, sizeof(const char *));
    for (const server_rec *each = s; each != NULL; each = each->next) {
        unsigned *number = counted_as(each);

        if (number != NULL)
            *number = number_of(name_of(pconf, each));
    }
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &children);
    rv = fp_counters_init(kept_counters(pconf), s->process->pool, names, children);
    if (rv != APR_SUCCESS)
        ap_log_error(APLOG_MARK, APLOG_WARNING, rv, s,
                     "FP0121: no shared memory: nothing is "
                     "counted for the status page");
}

void fp_snapshot_count(request_rec *r, struct fp_snapshot *f)
{
    apr_array_header_t *hosts = apr_array_make(r->pool, names->nelts, sizeof(struct fp_snapshot_host));

    memset(f, 0, sizeof(*f));
    for (int i = 0; i < names->nelts; i++) {
        struct fp_snapshot_host *h = apr_array_push(hosts);

        h->name = APR_ARRAY_IDX(names, i, const char *);
        for (unsigned what = 0; what < FP_COUNTS; what++) {
            h->counts[what] = fp_counters_sum((unsigned)i, (enum fp_count)what);
            f->total.counts[what] += h->counts[what];
        }
    }
    f->hosts = hosts;
    f->total.name = "all";
    f->children = fp_counters_usage(&f->usage);
}

/* ---- the daemon's ---- */

/* Appends a report's line to rows. A line of another form is of a later release. */
typedef void read_line(char *line, apr_array_header_t *rows);

/* "NAME VALUE" */
static void read_counter(char *line, apr_array_header_t *rows)
{
    const apr_size_t len = strcspn(line, " ");

    for (unsigned i = 0; i < FP_STATS; i++) {
        if (strncmp(fp_stat_rows[i].name, line, len) == 0 && fp_stat_rows[i].name[len] == '\0')
            APR_ARRAY_PUSH(rows, struct fp_snapshot_counter) =
                (struct fp_snapshot_counter){ &fp_stat_rows[i], strtoull(line + len, NULL, 10) };
    }
}

static void read_mount(char *line, apr_array_header_t *rows)
{
    struct fp_report_mount m;
    int i = 0;

    if (!fp_report_read(fp_mount_form, line, &m))
        return;
    /* More than one may be mounted at a point: the last one covers the others. */
    while (i < rows->nelts && strcmp(APR_ARRAY_IDX(rows, i, struct fp_report_mount).point, m.point) != 0)
        i++;
    if (i == rows->nelts)
        apr_array_push(rows);
    APR_ARRAY_IDX(rows, i, struct fp_report_mount) = m;
}

static void read_latency(char *line, apr_array_header_t *rows)
{
    struct fp_report_latency l;

    if (fp_report_read(fp_latency_form, line, &l))
        APR_ARRAY_PUSH(rows, struct fp_report_latency) = l;
}

/* "KEY VALUE" */
static void read_fact(char *line, apr_array_header_t *rows)
{
    const char *key = strsep(&line, " ");

    if (line != NULL)
        APR_ARRAY_PUSH(rows, struct fp_snapshot_fact) = (struct fp_snapshot_fact){ key, line };
}

static fp_status ask(struct fp_client *client, enum fp_report what, read_line *read, apr_array_header_t *rows)
{
    struct fp_control question = { .op = FP_CONTROL_REPORT, .what = what };
    uint8_t *buf = apr_palloc(rows->pool, FP_MAX_FRAME);
    struct fp_reply reply;

    for (int i = 0; i < FP_MAX_PARTS && (i == 0 || question.from != 0); i++) {
        fp_status st = fp_client_control(client, &question, &reply, buf);
        char *rest, *line;

        if (st == FP_OK)
            st = reply.status;
        if (st != FP_OK)
            return st;
        rest = apr_pstrmemdup(rows->pool, reply.text, reply.text_len);
        while (rows->nelts < MOST_ROWS && (line = apr_strtok(rest, "\n", &rest)) != NULL)
            read(line, rows);
        question.from = reply.next;
    }
    return FP_OK;
}

/* Uses a connection of its own: requests wait longer, and the page must not use their back-off. */
void fp_snapshot_ask(request_rec *r, struct fp_snapshot *f, bool all)
{
    struct fp_client *client = new_client(&(struct fp_client_settings){
        .path = daemon_socket, .timeout_ms = PATIENCE_MS, .max_idle = 1 });
    const struct {
        enum fp_report what;
        read_line *read;
        apr_array_header_t **rows;
        apr_size_t size;
    } reports[] = {
        { FP_REPORT_STATS, read_counter, &f->from_daemon, sizeof(struct fp_snapshot_counter) },
        { FP_REPORT_MOUNTS, read_mount, &f->mounts, sizeof(struct fp_report_mount) },
        { FP_REPORT_LATENCY, read_latency, &f->latencies, sizeof(struct fp_report_latency) },
        { FP_REPORT_ABOUT, read_fact, &f->about, sizeof(struct fp_snapshot_fact) },
    };

    f->socket = daemon_socket;
    f->daemon = client != NULL ? FP_OK : FP_NOMEM;
    for (unsigned i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
        *reports[i].rows = apr_array_make(r->pool, 16, (int)reports[i].size);
        if (f->daemon == FP_OK && (all || i == 0))
            f->daemon = ask(client, reports[i].what, reports[i].read, *reports[i].rows);
    }
    fp_client_destroy(&client);
}
