/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/walk_result.h"

#include <string.h>

const char *fp_call_text(enum fp_call call)
{
    static const char *const names[FP_CALLS] = { "unknown", "open", "stat", "readlink", "read", "watch" };

    return names[call];
}

void fp_walk_result_init(struct fp_walk_result *t)
{
    t->effort = (struct fp_effort){ .call = FP_CALL_NONE };
    t->settled = false;
    memset(t->step_watches, 0, sizeof(t->step_watches));
    t->n_steps = t->unwatched = t->n_traversed = 0;
    t->names_len = 0;
}

/* A link that leads through the same names twice, or in a circle, depends on each once. */
static bool has(const struct fp_walk_result *t, unsigned step, const struct fp_watch_key *watch,
                const char *name, size_t len)
{
    for (unsigned i = 0; i < t->n_traversed; i++) {
        const struct fp_traversed_name *v = &t->traversed[i];

        if (v->step == step && v->len == len && v->watch.len == watch->len
            && memcmp(t->names + v->at, name, len) == 0
            && memcmp(v->watch.bytes, watch->bytes, watch->len) == 0)
            return true;
    }
    return false;
}

void fp_walk_result_judge(struct fp_walk_result *t, unsigned step, enum fp_verdict v)
{
    t->step_watches[step].verdict = fp_verdict_both(t->step_watches[step].verdict, v);
}

bool fp_walk_result_has_room(const struct fp_walk_result *t, size_t len)
{
    return t->n_traversed < FP_MAX_TRAVERSED && len <= FP_MAX_NAME && len <= sizeof(t->names) - t->names_len;
}

bool fp_walk_result_add(struct fp_walk_result *t, unsigned step, const struct fp_watch_key *watch,
                        const char *name, size_t len)
{
    struct fp_traversed_name *v = &t->traversed[t->n_traversed];

    if (has(t, step, watch, name, len))
        return true;
    if (!fp_walk_result_has_room(t, len)) {
        fp_walk_result_judge(t, step, FP_EACH_REQUEST);
        return false;
    }
    v->step = (uint8_t)step;
    v->len = (uint8_t)len;
    v->at = (uint16_t)t->names_len;
    v->watch = *watch;
    memcpy(t->names + t->names_len, name, len);
    t->names_len += len;
    t->n_traversed++;
    return true;
}

static void put_key(struct fp_writer *w, const struct fp_watch_key *k)
{
    fp_put_u8(w, k->len);
    fp_put_bytes(w, k->bytes, k->len);
    if (k->len == 0)
        return;
    fp_put_u64(w, k->dev);
    fp_put_u64(w, k->ino);
    fp_put_u32(w, k->uid);
}

void fp_put_walk_result(struct fp_writer *w, const struct fp_walk_result *t)
{
    fp_put_u8(w, (uint8_t)t->n_steps);
    for (unsigned i = 0; i < t->n_steps; i++) {
        const struct fp_step_watch *o = &t->step_watches[i];

        fp_put_u32(w, o->mount);
        fp_put_u8(w, (uint8_t)o->verdict);
        fp_put_u8(w, o->links);
        put_key(w, &o->watch);
    }
    fp_put_u32(w, t->unwatched);
    fp_put_u8(w, (uint8_t)t->n_traversed);
    for (unsigned i = 0; i < t->n_traversed; i++) {
        const struct fp_traversed_name *v = &t->traversed[i];

        fp_put_u8(w, v->step);
        put_key(w, &v->watch);
        fp_put_u8(w, v->len);
        fp_put_bytes(w, t->names + v->at, v->len);
    }
    fp_put_u8(w, t->settled);
    fp_put_u32(w, t->effort.us);
    fp_put_u32(w, t->effort.longest_us);
    fp_put_u32(w, t->effort.calls);
    fp_put_u8(w, (uint8_t)t->effort.call);
}

static void get_key(struct fp_reader *r, struct fp_watch_key *k)
{
    const uint8_t *p;

    k->len = fp_get_u8(r);
    if (k->len > sizeof(k->bytes))
        r->bad = true;
    p = fp_get_bytes(r, r->bad ? 0 : k->len);
    if (p != NULL)
        memcpy(k->bytes, p, k->len);
    k->dev = k->ino = k->uid = 0;
    if (p == NULL || k->len == 0)
        return;
    k->dev = fp_get_u64(r);
    k->ino = fp_get_u64(r);
    k->uid = fp_get_u32(r);
}

static void get_traversed(struct fp_reader *r, struct fp_walk_result *t)
{
    unsigned step = fp_get_u8(r);
    struct fp_watch_key key;
    const uint8_t *name;
    size_t len;

    get_key(r, &key);
    len = fp_get_u8(r);
    name = fp_get_bytes(r, len);
    if (name == NULL || step >= t->n_steps || !fp_walk_result_add(t, step, &key, (const char *)name, len))
        r->bad = true;
}

fp_status fp_get_walk_result(struct fp_reader *r, struct fp_walk_result *t, unsigned n_steps)
{
    const unsigned n = fp_get_u8(r);
    unsigned n_traversed, call;

    fp_walk_result_init(t);
    if (n > FP_MAX_STEPS || (n_steps != 0 && n != n_steps))
        return FP_PROTOCOL;
    t->n_steps = n;
    for (unsigned i = 0; i < t->n_steps; i++) {
        struct fp_step_watch *o = &t->step_watches[i];
        uint8_t verdict;

        o->mount = fp_get_u32(r);
        verdict = fp_get_u8(r);
        o->links = fp_get_u8(r);
        if (verdict >= FP_VERDICTS || o->links > FP_MAX_LINKS)
            r->bad = true;
        else
            o->verdict = (enum fp_verdict)verdict;
        get_key(r, &o->watch);
    }
    t->unwatched = fp_get_u32(r);
    n_traversed = fp_get_u8(r);
    for (unsigned i = 0; i < n_traversed && !r->bad; i++)
        get_traversed(r, t);
    t->settled = fp_get_u8(r) != 0;
    t->effort.us = fp_get_u32(r);
    t->effort.longest_us = fp_get_u32(r);
    t->effort.calls = fp_get_u32(r);
    call = fp_get_u8(r);
    if (call >= FP_CALLS)
        return FP_PROTOCOL;
    t->effort.call = (enum fp_call)call;
    return fp_reader_done(r) ? FP_OK : FP_PROTOCOL;
}
