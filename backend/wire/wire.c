/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/wire.h"

#include <endian.h>
#include <string.h>

void fp_writer_init(struct fp_writer *w, void *memory, size_t cap)
{
    w->data = memory;
    w->len = 0;
    w->cap = cap;
    w->bad = false;
}

void fp_put_bytes(struct fp_writer *w, const void *p, size_t n)
{
    if (w->bad || n > w->cap - w->len) {
        w->bad = true;
        return;
    }
    if (n > 0)
        memcpy(w->data + w->len, p, n);
    w->len += n;
}

static void put_be(struct fp_writer *w, uint64_t v, size_t n)
{
    uint8_t b[8];

    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    fp_put_bytes(w, b, n);
}

/* clang-format off */
void fp_put_u8(struct fp_writer *w, uint8_t v) { put_be(w, v, 1); }
void fp_put_u16(struct fp_writer *w, uint16_t v) { put_be(w, v, 2); }
void fp_put_u32(struct fp_writer *w, uint32_t v) { put_be(w, v, 4); }
void fp_put_u64(struct fp_writer *w, uint64_t v) { put_be(w, v, 8); }
/* clang-format on */

void fp_reader_init(struct fp_reader *r, const void *p, size_t n)
{
    r->pos = p;
    r->end = r->pos + n;
    r->bad = false;
}

const uint8_t *fp_get_bytes(struct fp_reader *r, size_t n)
{
    const uint8_t *p = r->pos;

    if (r->bad || n > (size_t)(r->end - r->pos)) {
        r->bad = true;
        return NULL;
    }
    r->pos += n;
    return p;
}

/* Each is one load: answers have hundreds of fields. */
uint8_t fp_get_u8(struct fp_reader *r)
{
    const uint8_t *p = fp_get_bytes(r, 1);

    return p != NULL ? *p : 0;
}

#define GETTER(bits) \
    uint##bits##_t fp_get_u##bits(struct fp_reader *r) \
    { \
        const uint8_t *p = fp_get_bytes(r, bits / 8); \
        uint##bits##_t v = 0; \
\
        if (p != NULL) \
            memcpy(&v, p, sizeof(v)); \
        return be##bits##toh(v); \
    }
GETTER(16)
GETTER(32)
GETTER(64)

bool fp_reader_done(const struct fp_reader *r)
{
    return !r->bad && r->pos == r->end;
}

void fp_frame_begin(struct fp_writer *w, enum fp_frame_type type, uint64_t id)
{
    fp_put_u32(w, 0); /* length, filled in by fp_frame_end() */
    fp_put_u8(w, (uint8_t)type);
    fp_put_u8(w, 0);
    fp_put_u16(w, 0);
    fp_put_u64(w, id);
}

fp_status fp_frame_end(struct fp_writer *w)
{
    struct fp_writer head;

    if (w->bad || w->len < FP_FRAME_HEADER || w->len > FP_MAX_FRAME)
        return FP_PROTOCOL;
    fp_writer_init(&head, w->data, 4);
    fp_put_u32(&head, (uint32_t)w->len);
    return FP_OK;
}

fp_status fp_frame_parse(struct fp_frame *f, const void *p, size_t n)
{
    struct fp_reader r;
    uint32_t len;
    uint8_t zero8;
    uint16_t zero16;

    fp_reader_init(&r, p, n);
    len = fp_get_u32(&r);
    f->type = fp_get_u8(&r);
    zero8 = fp_get_u8(&r);
    zero16 = fp_get_u16(&r);
    f->id = fp_get_u64(&r);
    if (r.bad || len != n || n > FP_MAX_FRAME || zero8 != 0 || zero16 != 0)
        return FP_PROTOCOL;
    f->body = r;
    return FP_OK;
}

fp_status fp_hello_encode(struct fp_writer *w, const struct fp_hello *h)
{
    fp_frame_begin(w, FP_FRAME_HELLO, 0);
    fp_put_u32(w, FP_WIRE_MAGIC);
    fp_put_u16(w, h->version_min);
    fp_put_u16(w, h->version_max);
    fp_put_names(w, &h->names);
    return fp_frame_end(w);
}

fp_status fp_hello_decode(struct fp_reader *r, struct fp_hello *h)
{
    uint32_t magic = fp_get_u32(r);

    h->version_min = fp_get_u16(r);
    h->version_max = fp_get_u16(r);
    h->names.n = 0;
    if (h->version_min <= FP_WIRE_VERSION && h->version_max >= FP_WIRE_VERSION)
        fp_get_names(r, &h->names);
    /* A later version may append fields to its HELLO. */
    if (r->bad || magic != FP_WIRE_MAGIC || h->version_min > h->version_max)
        return FP_PROTOCOL;
    return FP_OK;
}

fp_status fp_welcome_encode(struct fp_writer *w, const struct fp_welcome *h)
{
    const struct fp_sight *view = &h->sight;
    const uint64_t fields[] = { view->root_dev, view->root_ino, view->root_mount, view->mounts_ns,
                                view->users_ns, view->time_ns,  view->mounts };

    fp_frame_begin(w, FP_FRAME_WELCOME, 0);
    fp_put_u32(w, FP_WIRE_MAGIC);
    fp_put_u16(w, h->version);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        fp_put_u64(w, fields[i]);
    fp_put_names(w, &h->names);
    return fp_frame_end(w);
}

fp_status fp_welcome_decode(struct fp_reader *r, struct fp_welcome *h)
{
    struct fp_sight *view = &h->sight;
    uint64_t *const fields[] = { &view->root_dev, &view->root_ino, &view->root_mount, &view->mounts_ns,
                                 &view->users_ns, &view->time_ns,  &view->mounts };
    uint32_t magic = fp_get_u32(r);

    h->version = fp_get_u16(r);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        *fields[i] = fp_get_u64(r);
    fp_get_names(r, &h->names);
    return !fp_reader_done(r) || magic != FP_WIRE_MAGIC ? FP_PROTOCOL : FP_OK;
}

fp_status fp_empty_encode(struct fp_writer *w, enum fp_frame_type type, uint64_t id)
{
    fp_frame_begin(w, type, id);
    return fp_frame_end(w);
}

void fp_put_names(struct fp_writer *w, const struct fp_names *n)
{
    fp_put_u8(w, (uint8_t)n->n);
    for (unsigned i = 0; i < n->n; i++) {
        fp_put_u8(w, (uint8_t)n->list[i].len);
        fp_put_bytes(w, n->list[i].name, n->list[i].len);
    }
}

static void put_path(struct fp_writer *w, const char *path, size_t len)
{
    if (len > FP_MAX_PATH)
        w->bad = true;
    fp_put_u16(w, (uint16_t)len);
    fp_put_bytes(w, path, len);
}

enum { LOOKUP_FRESH = 1, LOOKUP_NO_STALE_FD = 2, LOOKUP_HINT = 4 }; /* flags of a LOOKUP */
#define LOOKUP_FLAGS (LOOKUP_FRESH | LOOKUP_NO_STALE_FD | LOOKUP_HINT)

void fp_put_lookup(struct fp_writer *w, const struct fp_lookup *l)
{
    fp_put_u32(w, l->deadline_ms);
    fp_put_u8(w, (uint8_t)((l->fresh ? LOOKUP_FRESH : 0) | (l->no_stale_fd ? LOOKUP_NO_STALE_FD : 0)
                           | (l->hint ? LOOKUP_HINT : 0)));
    put_path(w, l->path, l->path_len);
}

fp_status fp_lookup_encode(struct fp_writer *w, uint64_t id, const struct fp_lookup *l)
{
    fp_frame_begin(w, FP_FRAME_LOOKUP, id);
    fp_put_lookup(w, l);
    return fp_frame_end(w);
}

void fp_get_names(struct fp_reader *r, struct fp_names *n)
{
    n->n = fp_get_u8(r);
    if (n->n > FP_MAX_NAMES) {
        n->n = 0;
        r->bad = true;
    }
    for (unsigned i = 0; i < n->n && !r->bad; i++) {
        n->list[i].len = fp_get_u8(r);
        n->list[i].name = (const char *)fp_get_bytes(r, n->list[i].len);
        if (!r->bad && !fp_name_is_single(n->list[i].name, n->list[i].len))
            r->bad = true;
    }
}

fp_status fp_lookup_decode(struct fp_reader *r, struct fp_lookup *l)
{
    uint8_t flags;

    l->deadline_ms = fp_get_u32(r);
    flags = fp_get_u8(r);
    l->fresh = (flags & LOOKUP_FRESH) != 0;
    l->no_stale_fd = (flags & LOOKUP_NO_STALE_FD) != 0;
    l->hint = (flags & LOOKUP_HINT) != 0;
    l->path_len = fp_get_u16(r);
    l->path = (const char *)fp_get_bytes(r, l->path_len);
    if (!fp_reader_done(r) || (flags & ~LOOKUP_FLAGS) != 0 || !fp_path_is_normal(l->path, l->path_len))
        return FP_PROTOCOL;
    return FP_OK;
}

fp_status fp_control_encode(struct fp_writer *w, uint64_t id, const struct fp_control *c)
{
    fp_frame_begin(w, FP_FRAME_CONTROL, id);
    fp_put_u8(w, (uint8_t)c->op);
    if (c->op == FP_CONTROL_PURGE) {
        fp_put_u8(w, (uint8_t)c->scope);
        put_path(w, c->path, c->path_len);
    } else if (c->op == FP_CONTROL_EXPLAIN) {
        put_path(w, c->path, c->path_len);
    } else {
        fp_put_u8(w, (uint8_t)c->what);
        fp_put_u32(w, c->from);
    }
    return fp_frame_end(w);
}

static bool get_purge(struct fp_reader *r, struct fp_control *c)
{
    uint8_t scope = fp_get_u8(r);

    c->scope = (enum fp_scope)scope;
    c->path_len = fp_get_u16(r);
    c->path = (const char *)fp_get_bytes(r, c->path_len);
    if (!fp_reader_done(r))
        return false;
    if (scope == FP_SCOPE_ALL) {
        c->path = NULL;
        return c->path_len == 0;
    }
    return (scope == FP_SCOPE_PATH || scope == FP_SCOPE_TREE) && fp_path_is_normal(c->path, c->path_len);
}

static bool get_report(struct fp_reader *r, struct fp_control *c)
{
    uint8_t what = fp_get_u8(r);

    c->what = (enum fp_report)what;
    c->from = fp_get_u32(r);
    return fp_reader_done(r) && what >= 1 && what <= FP_REPORTS;
}

static bool get_explain(struct fp_reader *r, struct fp_control *c)
{
    c->path_len = fp_get_u16(r);
    c->path = (const char *)fp_get_bytes(r, c->path_len);
    return fp_reader_done(r) && fp_path_is_normal(c->path, c->path_len);
}

fp_status fp_control_decode(struct fp_reader *r, struct fp_control *c)
{
    uint8_t op = fp_get_u8(r);
    bool good = false;

    memset(c, 0, sizeof(*c));
    c->op = (enum fp_control_op)op;
    if (op == FP_CONTROL_PURGE)
        good = get_purge(r, c);
    else if (op == FP_CONTROL_REPORT)
        good = get_report(r, c);
    else if (op == FP_CONTROL_EXPLAIN)
        good = get_explain(r, c);
    return good ? FP_OK : FP_PROTOCOL;
}

fp_status fp_reply_encode(struct fp_writer *w, uint64_t id, const struct fp_reply *d)
{
    if (d->text_len > FP_MAX_REPORT)
        w->bad = true;
    fp_frame_begin(w, FP_FRAME_REPLY, id);
    fp_put_u8(w, (uint8_t)d->status);
    fp_put_u64(w, d->count);
    fp_put_u32(w, d->next);
    fp_put_u16(w, (uint16_t)d->text_len);
    fp_put_bytes(w, d->text, d->text_len);
    return fp_frame_end(w);
}

/* True for whole lines of printable ASCII: operators' terminals obey other bytes. */
static bool has_plain_lines(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
            return false;
    }
    return text[len - 1] == '\n';
}

fp_status fp_reply_decode(struct fp_reader *r, struct fp_reply *d)
{
    bool empty;

    d->status = (fp_status)fp_get_u8(r);
    d->count = fp_get_u64(r);
    d->next = fp_get_u32(r);
    d->text_len = fp_get_u16(r);
    d->text = (const char *)fp_get_bytes(r, d->text_len);
    if (!fp_reader_done(r) || (d->text_len > 0 && !has_plain_lines(d->text, d->text_len)))
        return FP_PROTOCOL;
    empty = d->count == 0 && d->next == 0 && d->text_len == 0;
    return d->status == FP_OK || (empty && fp_status_is_reason(d->status)) ? FP_OK : FP_PROTOCOL;
}

bool fp_status_is_reason(fp_status st)
{
    return (st >= FP_TIMEOUT && st <= FP_FAILED) || st == FP_UNAVAILABLE;
}

int fp_names_find(const struct fp_names *names, const char *name, size_t len)
{
    for (unsigned i = 0; i < names->n; i++) {
        if (names->list[i].len == len && memcmp(names->list[i].name, name, len) == 0)
            return (int)i;
    }
    return -1;
}

bool fp_names_equal(const struct fp_names *a, const struct fp_names *b)
{
    if (a->n != b->n)
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        if (a->list[i].len != b->list[i].len || memcmp(a->list[i].name, b->list[i].name, a->list[i].len) != 0)
            return false;
    }
    return true;
}

bool fp_names_join(struct fp_names *all, const struct fp_names *more)
{
    const unsigned before = all->n;

    for (unsigned i = 0; i < more->n; i++) {
        if (fp_names_find(all, more->list[i].name, more->list[i].len) != -1)
            continue;
        if (all->n == FP_MAX_NAMES) {
            all->n = before;
            return false;
        }
        all->list[all->n++] = more->list[i];
    }
    return true;
}

void fp_names_copy(struct fp_names *to, char text[FP_NAMES_TEXT], const struct fp_names *names)
{
    to->n = names->n;
    for (unsigned i = 0; i < names->n; i++) {
        to->list[i].len = names->list[i].len;
        to->list[i].name = memmove(text, names->list[i].name, names->list[i].len);
        text += names->list[i].len;
    }
}

fp_status fp_error_encode(struct fp_writer *w, uint64_t id, fp_status st, const char *text)
{
    size_t n = strnlen(text, FP_MAX_TEXT);

    fp_frame_begin(w, FP_FRAME_ERROR, id);
    fp_put_u8(w, (uint8_t)st);
    fp_put_u8(w, (uint8_t)n);
    fp_put_bytes(w, text, n);
    return fp_frame_end(w);
}

fp_status fp_error_decode(struct fp_reader *r, fp_status *st_r)
{
    *st_r = (fp_status)fp_get_u8(r);
    fp_get_bytes(r, fp_get_u8(r));
    return fp_reader_done(r) ? FP_OK : FP_PROTOCOL;
}
