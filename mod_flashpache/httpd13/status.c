/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/status.h"

#include <stdbool.h>

#include <http_main.h>
#include <http_protocol.h>

#include "httpd13/counters.h"
#include "httpd13/lookup13.h"
#include "question/trouble.h"
#include "shared/client.h"
#include "wire/wire.h"

static void write_outcomes(request_rec *r)
{
    for (unsigned i = 0; i < FP_OUTCOMES; i++) {
        const struct fp_outcome *o = &fp_outcomes[i];

        ap_rprintf(r, "%s%s%s %lu\n", o->word, o->reason != NULL ? "_" : "",
                   o->reason != NULL ? o->reason : "", (unsigned long)fp_counters13_get((enum fp_count)i));
    }
    ap_rprintf(r, "absent_paths %lu\n", (unsigned long)fp_counters13_get(FP_COUNT_ABSENT));
}

/* A report comes in parts; each says where the next one begins. */
static void write_daemon(request_rec *r)
{
    struct fp_control question = { .op = FP_CONTROL_REPORT, .what = FP_REPORT_STATS };
    uint8_t *buf = ap_palloc(r->pool, FP_MAX_FRAME);
    struct fp_reply reply;

    for (unsigned i = 0; i < FP_MAX_PARTS && (i == 0 || question.from != 0); i++) {
        fp_status st;

        ap_block_alarms();
        st = fp_client_control(fp_child_client, &question, &reply, buf);
        ap_unblock_alarms();
        if (st == FP_OK)
            st = reply.status;
        if (st != FP_OK) {
            ap_rprintf(r, "# flashpached does not answer: %s\n", fp_trouble_text(fp_child_client, st));
            return;
        }
        ap_rwrite((void *)(uintptr_t)reply.text, (int)reply.text_len, r);
        question.from = reply.next;
    }
}

int fp_status13_respond(request_rec *r)
{
    if (r->method_number != M_GET)
        return DECLINED;
    r->content_type = "text/plain; charset=utf-8";
    ap_table_setn(r->headers_out, "Cache-Control", "no-store");
    ap_hard_timeout("send the status of Flashpache", r);
    ap_send_http_header(r);
    if (!r->header_only) {
        write_outcomes(r);
        if (fp_child_client != NULL)
            write_daemon(r);
    }
    ap_kill_timeout(r);
    return OK;
}
