/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/task.h"

#include "wire/walk_result.h"

enum { HAS_KNOWN = 1, NAMES_KNOWN = 2, LOOKS_ONLY = 4 };

fp_status fp_task_encode(struct fp_writer *w, uint64_t id, const struct fp_task *t)
{
    fp_frame_begin(w, FP_FRAME_TASK, id);
    fp_put_u16(w, (uint16_t)t->base_len);
    fp_put_u8(w, t->base_links);
    fp_put_u32(w, t->content_max);
    fp_put_u64(w, t->clock_dev);
    fp_put_u64(w, (uint64_t)t->clock_ms);
    fp_put_u8(w, (uint8_t)((t->has_known ? HAS_KNOWN : 0) | (t->names_known ? NAMES_KNOWN : 0)
                           | (t->looks_only ? LOOKS_ONLY : 0)));
    if (t->has_known)
        fp_put_meta(w, &t->known);
    fp_put_names(w, &t->names);
    fp_put_lookup(w, &t->lookup);
    return fp_frame_end(w);
}

fp_status fp_task_decode(struct fp_reader *r, struct fp_task *t)
{
    unsigned flags;

    t->base_len = fp_get_u16(r);
    t->base_links = fp_get_u8(r);
    t->content_max = fp_get_u32(r);
    t->clock_dev = fp_get_u64(r);
    t->clock_ms = (int64_t)fp_get_u64(r);
    flags = fp_get_u8(r);
    t->has_known = (flags & HAS_KNOWN) != 0;
    t->names_known = (flags & NAMES_KNOWN) != 0;
    t->looks_only = (flags & LOOKS_ONLY) != 0;
    if (t->has_known)
        fp_get_meta(r, &t->known);
    fp_get_names(r, &t->names);
    if (fp_lookup_decode(r, &t->lookup) != FP_OK)
        return FP_PROTOCOL;
    if (t->base_links > (t->base_len == 0 ? 0 : FP_MAX_LINKS) || flags > (HAS_KNOWN | NAMES_KNOWN | LOOKS_ONLY)
        || (t->names_known && t->base_len == 0))
        return FP_PROTOCOL;
    if (t->base_len == 0)
        return FP_OK;
    /* The base is a proper part of the path that ends at a component. */
    if (t->base_len >= t->lookup.path_len || (t->base_len > 1 && t->lookup.path[t->base_len] != '/'))
        return FP_PROTOCOL;
    return FP_OK;
}

bool fp_result_is_closed_later(const struct fp_answer *a)
{
    return a->fd != -1 && !a->local && a->n_steps > 0 && !fp_step_is_dir(&a->steps[a->n_steps - 1]);
}

fp_status fp_result_encode(struct fp_writer *w, uint64_t id, const struct fp_answer *a,
                           const struct fp_walk_result *result)
{
    fp_frame_begin(w, FP_FRAME_ANSWER, id);
    fp_put_answer(w, a);
    fp_put_walk_result(w, result);
    return fp_frame_end(w);
}

fp_status fp_result_decode(struct fp_reader *r, const struct fp_task *t, int fd, struct fp_answer *a,
                           struct fp_walk_result *result)
{
    fp_status st = fp_get_answer(r, t->lookup.path_len, t->base_len, fd, a);

    if (st == FP_OK)
        st = fp_get_walk_result(r, result, a->n_steps);
    if (st == FP_OK && a->status == FP_OK && a->n_names != t->names.n)
        st = FP_PROTOCOL;
    if (st == FP_OK && a->content && fp_step_target(&a->steps[a->n_steps - 1])->size > t->content_max)
        st = FP_PROTOCOL;
    return st;
}
