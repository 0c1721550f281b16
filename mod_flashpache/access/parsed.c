/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "access/parsed.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <malloc.h>
#include <stdatomic.h>
#include <string.h>

#include "access/access_file.h"
#include "question/held.h"
#include "setup/settings.h"
#include "shared/lease_table.h"

/* The least that a parsed file takes: its pool, and what directives and compiled patterns make of its text. */
#define POOL_LEAST ((apr_size_t)8 * 1024)
#define TEXT_TIMES 8
/* About what the configuration takes that is merged of it and of sections. */
#define MERGED_BYTES ((apr_size_t)8 * 1024)

static struct fp_child_cache *cache; /* this child's; NULL: none are kept */

/* malloc() keeps freed memory in each thread's arena. Each time so much was given up it returns it to the system. */
#define TRIM_AFTER ((apr_size_t)16 << 20)

static void destroy(struct fp_item *item)
{
    static _Atomic apr_size_t given_up;
    const apr_size_t bytes = item->bytes;

    apr_pool_destroy(((struct fp_parsed *)item)->parse.pool);
    if (atomic_fetch_add(&given_up, bytes) + bytes >= TRIM_AFTER) {
        atomic_store(&given_up, 0);
        malloc_trim(0);
    }
}

void fp_parsed_init(unsigned limit, apr_size_t bytes)
{
    cache = limit > 0 ? fp_child_cache_create(limit, bytes) : NULL;
}

bool fp_parsed_is_used(void)
{
    return cache != NULL;
}

static apr_status_t release_held(void *data)
{
    const struct fp_record *record = data;

    for (apr_hash_index_t *i = record->held != NULL ? apr_hash_first(NULL, record->held) : NULL; i != NULL;
         i = apr_hash_next(i)) {
        void *item;

        apr_hash_this(i, NULL, NULL, &item);
        fp_item_release(item);
    }
    return APR_SUCCESS;
}

static struct fp_record *begin(const request_rec *r)
{
    struct fp_record *record = fp_record_make(r);

    if (!record->begun)
        apr_pool_cleanup_register(r->pool, record, release_held, apr_pool_cleanup_null);
    record->begun = true;
    return record;
}

int fp_parsed_begin(request_rec *r)
{
    if (cache != NULL)
        begin(r);
    return OK;
}

void fp_parsed_hold(const request_rec *r, struct fp_parsed *p)
{
    const request_rec *first = fp_request_first(r);
    struct fp_record *record = begin(first);
    struct fp_item *item = &p->item;

    if (record->held == NULL)
        record->held = apr_hash_make(first->pool);
    if (apr_hash_get(record->held, &item, sizeof(item)) != NULL)
        fp_item_release(item);
    else
        apr_hash_set(record->held, apr_pmemdup(first->pool, &item, sizeof(item)), sizeof(item), item);
}

bool fp_parsed_is_for(const request_rec *r)
{
    return cache != NULL && fp_settings_of(r->server)->keep_parsed;
}

static apr_uint64_t slot_and_generation(const struct fp_step *s)
{
    return s->slot != FP_NO_SLOT ? (apr_uint64_t)s->slot << 32 | s->generation : 0;
}

/* True if the file still has the text. Where its changes are not reported, its times have to show them. An
 * answer of a directory that is just changing has no slot. */
static bool is_confirmed(const request_rec *r, struct fp_parsed *p, const struct fp_request *q,
                         const struct fp_step *s)
{
    const apr_uint64_t now = slot_and_generation(s), confirmed = atomic_load(&p->confirmed);
    const struct fp_access_text *c;

    if (p->parse.conf == NULL || (s->slot == FP_NO_SLOT && confirmed == now && !q->held->answer->watched))
        return true;
    if (p->view != fp_lease_view_number(q->held->view) && s->slot != FP_NO_SLOT)
        return false;
    if (confirmed == now && s->slot != FP_NO_SLOT)
        return true;
    c = fp_access_file_fetch(r, fp_access_file_path(r, p->dir, p->name), &s->access[p->name]);
    if (c == NULL || memcmp(c->pos, p->parse.text, (apr_size_t)(c->end - c->pos)) != 0)
        return false;
    if (s->slot != FP_NO_SLOT)
        atomic_store(&p->confirmed, now);
    return true;
}

struct fp_parsed *fp_parsed_find(const request_rec *r, const struct fp_request *q, const struct fp_step *s,
                                 unsigned name)
{
    char *key = apr_palloc(r->pool, FP_ITEM_KEY_SIZE(s->end));
    apr_size_t len = fp_item_key(key, r->server, q->held->path, s->end);
    struct fp_parsed *p = (struct fp_parsed *)fp_child_cache_get(cache, key, len);

    if (p == NULL
        || (p->name == name && fp_access_equal(&p->access, &s->access[name]) && is_confirmed(r, p, q, s)))
        return p;
    fp_child_cache_drop(cache, &p->item);
    fp_item_release(&p->item);
    return NULL;
}

int fp_parsed_missing(const request_rec *r, const struct fp_request *q, const struct htaccess_result *h,
                      const struct fp_step **step_r)
{
    int below = 0, name;
    const struct fp_step *s = fp_request_find_step(q, h->dir, fp_path_len(h->dir), &below);
    struct fp_parsed *p;

    name = s != NULL && !below ? fp_access_file_of(r, q, s) : -1;
    if (name == -1 || s->access[name].size > FP_ACCESS_FILE_MOST)
        return -1;
    *step_r = s;
    p = fp_parsed_find(r, q, s, (unsigned)name);
    if (p != NULL)
        fp_item_release(&p->item);
    return p == NULL && fp_access_file_is_settled(r, h->dir, &s->access[name]) ? name : -1;
}

static apr_size_t bytes_for(const struct fp_access *access, bool conf, bool merged)
{
    return POOL_LEAST + (conf ? TEXT_TIMES * (apr_size_t)access->size : 0) + (merged ? MERGED_BYTES : 0);
}

bool fp_parsed_may_keep(const struct fp_access *access)
{
    return fp_child_cache_takes(cache, bytes_for(access, true, false));
}

apr_size_t fp_parsed_memory(void)
{
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* The rest of a parse whose result takes too much memory to be kept. */
static struct fp_parse without_result(const struct fp_parse *parse)
{
    apr_pool_clear(parse->pool);
    return (struct fp_parse){ .pool = parse->pool, .override_opts = parse->override_opts };
}

void fp_parsed_keep(const request_rec *r, const struct fp_request *q, const struct fp_step *s, unsigned name,
                    const struct htaccess_result *h, const struct fp_parse *made)
{
    const apr_size_t least = bytes_for(&s->access[name], made->conf != NULL, made->merged.walk != NULL);
    const apr_size_t now = fp_parsed_memory();
    const apr_size_t all = now > made->before + least ? now - made->before : least;
    const bool fits = fp_child_cache_takes(cache, all);
    const struct fp_parse parse = fits ? *made : without_result(made);
    struct fp_parsed *p = apr_pcalloc(parse.pool, sizeof(*p));
    char *key = apr_palloc(parse.pool, FP_ITEM_KEY_SIZE(s->end));

    fp_item_init(&p->item, key, fp_item_key(key, r->server, q->held->path, s->end), destroy);
    p->parse = parse;
    p->item.bytes = fits ? all : bytes_for(&s->access[name], false, false);
    p->dir = apr_pstrdup(parse.pool, h->dir);
    p->override = h->override;
    p->name = name;
    p->access = s->access[name];
    p->view = fp_lease_view_number(q->held->view);
    atomic_init(&p->confirmed, slot_and_generation(s));
    fp_child_cache_put(cache, &p->item);
    fp_item_release(&p->item);
}
