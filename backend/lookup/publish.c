/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/publish.h"

#include "base/clock.h"
#include "cache/cache.h"
#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/tables.h"
#include "wire/packet.h"

void fp_publish(struct fp_publisher *p, const char *path, size_t len, const struct fp_answer *a)
{
    if (p->tables != NULL)
        fp_answer_table_publish(p->tables->answers, path, len, a);
}

/* ---- contents ---- */

static bool keep(void *ctx, const char *path, size_t len, uint64_t at)
{
    const struct fp_publisher *p = ctx;

    return fp_cache_content_is_used(p->cache, path, len, at, fp_now_ms());
}

/* The file's record still says the former place. */
static void moved(void *ctx, const char *path, size_t len, uint64_t from, uint64_t to)
{
    struct fp_publisher *p = ctx;

    if (fp_cache_move_content(p->cache, path, len, from, to)
        && fp_cache_lookup(p->cache, path, len, FP_ASK_INSERTED, fp_now_ms(), &p->answer))
        fp_publish(p, path, len, &p->answer);
}

static void dropped(void *ctx, const char *path, size_t len, uint64_t at)
{
    const struct fp_publisher *p = ctx;

    fp_cache_drop_content(p->cache, path, len, at);
}

static const struct fp_contents_ops contents_ops = { keep, moved, dropped };

fp_status fp_publish_content(struct fp_publisher *p, const char *path, size_t len, struct fp_answer *a)
{
    if (!a->content)
        return FP_OK;
    a->content_at = FP_NO_CONTENT;
    if (p->tables != NULL)
        a->content_at = fp_contents_put(p->tables->contents, path, len, a->fd,
                                        fp_step_target(&a->steps[a->n_steps - 1])->size);
    fp_close(&a->fd);
    return a->content_at != FP_NO_CONTENT ? FP_OK : FP_FAILED;
}

void fp_publisher_init(struct fp_publisher *p, struct fp_cache *cache, const struct fp_tables *tables)
{
    p->cache = cache;
    p->tables = tables;
    if (tables != NULL)
        fp_contents_set_ops(tables->contents, &contents_ops, p);
}
