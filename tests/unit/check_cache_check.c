/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of the cache's invariants: it names each one that the test breaks, and finds none
 * broken afterwards.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache/cache_entry.h"
#include "cache_watch_kit.h"

/* A tree with one entry of each kind, all watched. */
static void make_tree(void)
{
    walked("/d/f", "ddf");
    walked("/d/none", "dda");
    ck_assert(known("/d/f"));
    ck_assert_pstr_eq(cache_check(cache), NULL);
}

static struct fp_entry *entry(const char *path)
{
    struct fp_entry *e = fp_entry_find(cache, path, strlen(path));

    ck_assert_ptr_nonnull(e);
    return e;
}

static void assert_wrong(const char *text)
{
    const char *wrong = cache_check(cache);

    ck_assert_msg(wrong != NULL && strstr(wrong, text) != NULL, "\"%s\", not \"%s\"",
                  wrong != NULL ? wrong : "nothing", text);
}

/* Breaks a number, sees it named, and mends it. */
#define ASSERT_NAMED(lvalue, broken, text) \
    do { \
        __typeof__(lvalue) before = (lvalue); \
        (lvalue) = (broken); \
        assert_wrong(text); \
        (lvalue) = before; \
        ck_assert_pstr_eq(cache_check(cache), NULL); \
    } while (0)

START_TEST(of_one_entry)
{
    struct fp_entry *f;

    make_tree();
    f = entry("/d/f");
    ASSERT_NAMED(f->path[1], 'e', "not found by its path");
    ASSERT_NAMED(entry("/d")->parent, NULL, "no parent");
    ASSERT_NAMED(entry("/d/f")->parent, entry("/"), "not the entry of its directory");
    ASSERT_NAMED(entry("/d")->generation, UINT64_MAX, "from the future");
}
END_TEST

START_TEST(of_what_is_kept_open)
{
    make_tree();
    ASSERT_NAMED(entry("/d/none")->kind, FP_KIND_FILE, "kind is not that");
    ASSERT_NAMED(entry("/d/f")->content_bytes, 4096, "a content has no place");
    ASSERT_NAMED(entry("/d/f")->content_at, 1, "what has a content has a descriptor");
    ASSERT_NAMED(entry("/d/none")->content_at, 1, "or is no file");
    ASSERT_NAMED(entry("/d")->opened, FP_OPENED_DIR, "no descriptor");
    ASSERT_NAMED(cache->n_open_dirs, 1, "open directories are not as many");
}
END_TEST

START_TEST(of_counts_and_bytes)
{
    make_tree();
    ASSERT_NAMED(cache->bytes, cache->bytes + 1, "other memory");
    ASSERT_NAMED(cache->n_contents, 1, "contents are not what");
    ASSERT_NAMED(cache->sieves[FP_KIND_FILE].count, 2, "not as many as its sieve says");
    ASSERT_NAMED(entry("/d")->below, 1, "below an entry are not as many");
    ASSERT_NAMED(entry("/d/none")->sibling.le_next, NULL, "not as many");
    ASSERT_NAMED(entry("/d/f")->purging.tqe_prev, &cache->purge_next, "purges are not as many");
    ASSERT_NAMED(cache->purge_next, entry("/d/f"), "outside of its tree");
    ASSERT_NAMED(entry("/d/f")->n_access, 1, "access files are not as many");
}
END_TEST

START_TEST(of_queues)
{
    make_tree();
    ASSERT_NAMED(entry("/d/f")->children.lh_first, entry("/d/none"), "another one's children");
    ASSERT_NAMED(cache->sieves[FP_KIND_FILE].hand, entry("/d/none"), "hand points at nothing");
    ASSERT_NAMED(cache->newest, entry("/d/f"), "being inserted");
}
END_TEST

START_TEST(of_times_and_leases)
{
    make_tree();
    ASSERT_NAMED(entry("/d/f")->expires_ms, 1, "another time than its TTL");
    ASSERT_NAMED(entry("/d/f")->slot, entry("/d/none")->slot, "share a slot");
    ASSERT_NAMED(entry("/d/f")->refresh.tick, entry("/d/f")->refresh.tick + 1, "another bucket");
    ASSERT_NAMED(cache->lease_table, NULL, "slot of no table");
}
END_TEST

START_TEST(of_dependencies)
{
    make_tree();
    ASSERT_NAMED(entry("/d/f")->own, entry("/d")->own, "none of its dependencies");
    ASSERT_NAMED(entry("/d/f")->dependencies, entry("/d")->dependencies, "another owner");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_check");
    TCase *t = unit_add_case(s, "invariants", setup, teardown, 0);

    tcase_add_test(t, of_one_entry);
    tcase_add_test(t, of_what_is_kept_open);
    tcase_add_test(t, of_counts_and_bytes);
    tcase_add_test(t, of_queues);
    tcase_add_test(t, of_times_and_leases);
    tcase_add_test(t, of_dependencies);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
