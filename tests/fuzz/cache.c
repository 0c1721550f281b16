/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache: results of walks, in any order with changes, forgetting and time.  Each piece
 * (fuzz.h) is an operation; its bytes choose the path and what a walk found there.
 */
#include "config.h"
#include "fuzz.h"

#include <sys/stat.h>

#include "base/keyed_hash.h"
#include "cache/cache.h"
#include "cache_check.h"
#include "changes/coherence.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/walk_result.h"

enum {
    INSERT,
    LOOKUP,
    STALE,
    CHANGED,
    UNWATCHED,
    LOST,
    REMOUNTED,
    FORGET,
    EVICT_FILES,
    REFRESH,
    BASE,
    EVICT_PURGED,
    LIMITS,
    PLACE,
    OPERATIONS
};

static uint64_t now_ms;
static uint64_t last_place; /* of a content */

static uint64_t clock_ms(void)
{
    return now_ms;
}

/* Each byte is a name of few; at most six of them. */
static size_t make_path(char *path, const struct fuzz_piece *p)
{
    size_t len = 0;

    for (size_t i = 0; i < p->size && i < 6; i++) {
        path[len++] = '/';
        path[len++] = (char)('a' + p->bytes[i] % 4);
    }
    if (len == 0)
        path[len++] = '/';
    path[len] = '\0';
    return len;
}

static struct fp_watch_key make_key(uint8_t number)
{
    return (struct fp_watch_key){ .len = 2, .bytes = { 1, number % 8 } };
}

static void make_step(struct fp_step *s, size_t end, uint8_t byte, bool last)
{
    static const uint32_t modes[] = { S_IFDIR | 0755, S_IFREG | 0644, S_IFLNK | 0777 };

    memset(s, 0, sizeof(*s));
    s->end = (uint16_t)end;
    s->status = last && byte % 5 == 0 ? FP_ABSENT : FP_OK;
    s->target_status = FP_OK;
    s->self.mode = last ? modes[byte / 4 % 3] : S_ISLNK(modes[byte / 4 % 3]) ? modes[2] : modes[0];
    s->self.ino = byte / 64u;
    s->self.size = byte;
    s->target = s->self;
    s->target.mode = last && byte % 3 == 0 ? modes[1] : modes[0];
}

/* A walk to the path that found what the bytes say, from watched objects or not. */
static void insert(struct fp_cache *c, const struct fuzz_piece *p, const char *path, size_t len)
{
    static struct fp_walk_result result;
    static struct fp_answer a;
    static struct fp_validity validity[FP_MAX_STEPS];
    const struct fp_walk_meta meta = { &result, validity };
    const unsigned n = len == 1 ? 1 : (unsigned)len / 2 + 1;

    fp_answer_init(&a, FP_OK);
    fp_walk_result_init(&result);
    a.n_steps = n;
    for (unsigned i = 0; i < n; i++) {
        const uint8_t byte = i > 0 ? p->bytes[i - 1] : 0;
        const struct fp_watch_key key = make_key(byte);

        make_step(&a.steps[i], i == 0 ? 1 : 2 * i, i > 0 ? byte : 4 * 3, i + 1 == n && i > 0);
        validity[i] = (struct fp_validity){ .mount = byte % 3u,
                                            .traits.verdict = (enum fp_verdict)(byte % FP_VERDICTS),
                                            .ttl_ms = 100,
                                            .negative_ms = byte % 13 * 10u,
                                            .stale_ms = 50,
                                            .traits.local = byte % 3 == 0,
                                            .traits.folds = byte % 7 == 0 };
        result.step_watches[i].verdict = (enum fp_verdict)(byte / FP_VERDICTS % FP_VERDICTS);
        if (byte % 2 == 0)
            result.step_watches[i].watch = key;
        if (byte % 8 == 3)
            fp_walk_result_add(&result, i, &key, "b", 1);
    }
    if (fp_step_target(&a.steps[n - 1]) != NULL && !fp_step_is_dir(&a.steps[n - 1]) && p->how / 16 % 2 == 0)
        a.fd = fuzz_file("x", 1);
    if (a.fd != -1 && p->how / 32 % 2 == 0) {
        fp_close(&a.fd);
        a.content = true;
        a.content_at = ++last_place;
    }
    fp_cache_insert(c, path, len, NULL, now_ms - p->how / 64, &meta, &a);
    FUZZ_MUST(a.fd == -1);
}

/* One of the last contents is used, moves, or goes. */
static void place(struct fp_cache *c, const char *path, size_t len, uint8_t how)
{
    const uint64_t at = last_place - how / 64;

    fp_cache_content_is_used(c, path, len, at, now_ms);
    if (how % 32 < 16)
        fp_cache_drop_content(c, path, len, at);
    else if (fp_cache_move_content(c, path, len, at, last_place + 1))
        last_place++;
}

static void run(struct fp_cache *c, const struct fuzz_piece *p)
{
    const struct fp_change_ops *ops = &fp_cache_change_ops;
    const struct fp_watch_key key = make_key(p->size > 0 ? p->bytes[0] : 0);
    static struct fp_answer a;
    struct fp_cache_refresh refresh;
    struct fp_cache_base base;
    char path[16];
    const size_t len = make_path(path, p);

    switch (p->how % OPERATIONS) {
    case INSERT: insert(c, p, path, len); break;
    case LOOKUP: fp_cache_lookup(c, path, len, FP_ASK_ANY, now_ms, &a); break;
    case STALE: fp_cache_lookup(c, path, len, FP_ASK_STALE, now_ms, &a); break;
    case CHANGED: ops->changed(c, &key, path + 1, len > 1 ? 1 : 0, p->how >= 128); break;
    case UNWATCHED: ops->unwatched(c, &key); break;
    case LOST: ops->lost(c); break;
    case REMOUNTED: ops->remounted(c, &(struct fp_remount){ path, 0 }, p->how >= 128); break;
    case FORGET: fp_cache_forget(c, path, len, p->how >= 128); break;
    case EVICT_FILES: fp_cache_evict_files(c, p->size); break;
    case REFRESH: fp_cache_take_refresh(c, now_ms, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &refresh); break;
    case EVICT_PURGED: fp_cache_evict_purged(c, p->size); break;
    case BASE: fp_cache_find_base(c, path, len, 1, now_ms, &base); break;
    case PLACE: place(c, path, len, p->how); break;
    default:
        fp_cache_set_limits(c, &(struct fp_cache_limits){ 1 + p->size % 8, 1 + p->how % 3, 1 + p->size % 16,
                                                          2, 1 << 20, 1000 });
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fp_cache_limits limits = { 8, 3, 16, 4, 1 << 20, 1000 };
    const struct fp_cache_content content = { 4096, 16384, 65536 };
    struct fp_cache_deps deps = { .now_ms = clock_ms, .verify = cache_verify };
    const int fds_at_rest = fuzz_free_fd();
    struct fp_cache *c;
    struct fuzz_piece p;
    struct fp_reader r;

    FUZZ_MUST(fp_keyed_hash_init() == 0);
    now_ms = 1000;
    deps.lease_table = fp_lease_table_create(64);
    c = fp_cache_create(&limits, &deps);
    FUZZ_MUST(deps.lease_table != NULL && c != NULL);
    fp_cache_set_content(c, &content);
    fp_reader_init(&r, data, size);
    while (fuzz_next(&r, &p)) {
        run(c, &p);
        now_ms += p.how % 32;
    }
    fp_cache_clear(c);
    FUZZ_MUST(fp_cache_counts(c).bytes == 0 && fp_cache_counts(c).watches == 0);
    fp_cache_destroy(&c);
    fp_lease_table_destroy(&deps.lease_table);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
