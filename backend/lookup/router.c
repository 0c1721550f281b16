/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/router.h"

#include "admin/control.h"
#include "base/turn.h"
#include "cache/cache.h"
#include "ipc/connection.h"
#include "lookup/dispatch.h"
#include "lookup/questions.h"
#include "wire/wire.h"

static fp_status route_lookup(const struct fp_router *r, struct fp_connection *conn, const struct fp_frame *f)
{
    struct fp_reader body = f->body;
    struct fp_lookup l;

    if (fp_lookup_decode(&body, &l) != FP_OK)
        return FP_PROTOCOL;
    if (l.hint) {
        fp_dispatch_hint(r->dispatch, &l);
        fp_connection_pass(conn);
    } else {
        fp_dispatch_lookup(r->dispatch, conn, f->id, &l);
    }
    return FP_OK;
}

static fp_status route_control(const struct fp_router *r, struct fp_connection *conn,
                               const struct fp_frame *f)
{
    struct fp_reader body = f->body;
    struct fp_control question;
    struct fp_reply reply;

    if (fp_control_decode(&body, &question) != FP_OK)
        return FP_PROTOCOL;
    fp_control_answer(r->control, &question, &reply);
    fp_connection_reply(conn, f->id, &reply);
    return FP_OK;
}

static fp_status on_question(void *ctx, struct fp_connection *conn, const struct fp_frame *f)
{
    fp_turn_work(f->type == FP_FRAME_LOOKUP ? FP_WORK_QUESTION : FP_WORK_CONTROL);
    switch (f->type) {
    case FP_FRAME_LOOKUP: return route_lookup(ctx, conn, f);
    case FP_FRAME_CONTROL: return route_control(ctx, conn, f);
    default: return FP_PROTOCOL;
    }
}

static const struct fp_names *on_names(void *ctx, const struct fp_names *brought)
{
    const struct fp_router *r = ctx;

    return fp_dispatch_add_names(r->dispatch, brought);
}

static void on_closed(void *ctx, struct fp_connection *conn)
{
    (void)ctx;
    fp_question_leave(conn);
}

const struct fp_connection_ops fp_router_ops = { on_question, on_names, on_closed };

void fp_router_out_of_descriptors(void *ctx)
{
    const struct fp_router *r = ctx;

    fp_cache_evict_files(r->cache, FP_EVICT_FILES);
}
