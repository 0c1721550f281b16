/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache against a model: a small world whose things change at random, walks of it, and lookups.
 * The model keeps the walks of the last TTL; each of the cache's answers must agree with them.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache_kit.h"
#include "hash_kit.h"
#include "wire/packet.h"

#define TTL    100
#define ROUNDS 30000
#define LEVELS 3 /* components of the longest path */
#define NAMES  3 /* in each directory */
#define NODES  (1 + NAMES + NAMES * NAMES + NAMES * NAMES * NAMES)
#define WALKS  512 /* more than happen in one time to live */

struct walk {
    uint64_t began_ms;
    char path[16];
    unsigned n_steps;
    struct fp_step steps[LEVELS + 1];
};

static struct fp_cache *cache;
static struct fp_cache_limits limits;
static struct fp_answer answer;
static struct {
    char kind, version;
} world[NODES];
static struct walk walks[WALKS];
static size_t n_walks;
static uint64_t now, seed;
static int fds_at_rest;

static void start(size_t files, size_t directories, size_t absent)
{
    const struct fp_cache_limits l = { files, 100, directories, absent, SIZE_MAX, TTL };

    unit_init_hash();
    limits = l;
    now = 1000;
    n_walks = 0;
    for (size_t i = 0; i < NODES; i++) {
        world[i].kind = 'd';
        world[i].version = '0';
    }
    fds_at_rest = unit_open_fds();
    cache = kit_cache(&limits);
    ck_assert_ptr_nonnull(cache);
}

static uint64_t dice(uint64_t n)
{
    return unit_random(&seed) % n;
}

/* A path of the world; nodes are numbered like those of a heap. */
static size_t random_path(char *path, size_t *nodes)
{
    const size_t depth = 1 + dice(LEVELS);
    size_t node = 0;

    for (size_t i = 0; i < depth; i++) {
        const uint64_t name = dice(NAMES);

        *path++ = '/';
        *path++ = (char)('a' + name);
        node = node * NAMES + 1 + name;
        nodes[i] = node;
    }
    *path = '\0';
    return depth;
}

static void change_world(void)
{
    const size_t node = dice(40) == 0 ? 0 : 1 + dice(NODES - 1);

    world[node].version = (char)('0' + dice(3));
    world[node].kind = node == 0 ? 'd' : "ddddlllfffLuaxb"[dice(15)];
}

static void remember(const char *path)
{
    struct walk *w = &walks[n_walks++ % WALKS];

    w->began_ms = now;
    snprintf(w->path, sizeof(w->path), "%s", path);
    w->n_steps = answer.n_steps;
    memcpy(w->steps, answer.steps, answer.n_steps * sizeof(w->steps[0]));
}

static void walk_world(void)
{
    char path[2 * LEVELS + 1], what[2 * LEVELS + 3];
    size_t nodes[LEVELS], at = 0;
    const size_t depth = random_path(path, nodes);

    what[at++] = world[0].kind;
    what[at++] = world[0].version;
    for (size_t i = 0; i < depth && strchr("dl", what[at - 2]) != NULL; i++) {
        what[at++] = world[nodes[i]].kind;
        what[at++] = world[nodes[i]].version;
    }
    what[at] = '\0';
    kit_answer(&answer, path, what);
    remember(path);
    kit_insert(cache, path, now, &answer);
    ck_assert_int_eq(answer.fd, -1);
}

/* ---- the model's verdict on an answer ---- */

static bool covers(const struct walk *w, const char *path, unsigned i)
{
    return i < w->n_steps && w->steps[i].end == answer.steps[i].end
           && memcmp(w->path, path, answer.steps[i].end) == 0;
}

static const struct walk *walk_back(size_t back)
{
    return back < n_walks && back < WALKS ? &walks[(n_walks - 1 - back) % WALKS] : NULL;
}

/* The last walk that saw this component saw the answer's state of it. */
static bool is_the_latest(const char *path, unsigned i)
{
    const struct walk *w;

    for (size_t back = 0; (w = walk_back(back)) != NULL; back++) {
        if (covers(w, path, i))
            return w->began_ms + TTL > now && kit_same_step(&w->steps[i], &answer.steps[i]);
    }
    return false;
}

/*
 * One walk saw this component in the one above it.  (Not all of them: a
 * directory that two links led to, one after the other, is the same.)
 */
static bool was_seen_there(const char *path, unsigned i)
{
    const struct walk *w;

    for (size_t back = 0; (w = walk_back(back)) != NULL; back++) {
        if (w->began_ms + TTL > now && covers(w, path, i) && kit_same_step(&w->steps[i], &answer.steps[i])
            && kit_same_step(&w->steps[i - 1], &answer.steps[i - 1]))
            return true;
    }
    return false;
}

static void assert_end_fits(size_t len)
{
    const struct fp_step *last = &answer.steps[answer.n_steps - 1];
    const struct fp_meta *m = fp_step_target(last);

    ck_assert(last->end == len || !fp_step_is_dir(last));
    if (answer.fd == -1)
        return;
    ck_assert_uint_eq(last->end, len);
    ck_assert_ptr_nonnull(m);
    ck_assert(S_ISREG(m->mode));
    ck_assert_int_eq(kit_version_of(answer.fd), '0' + (char)last->self.size);
}

static bool look(void)
{
    char path[2 * LEVELS + 1];
    size_t nodes[LEVELS];

    random_path(path, nodes);
    if (!kit_lookup(cache, path, now, &answer)) {
        ck_assert_int_eq(answer.fd, -1);
        return false;
    }
    ck_assert_uint_ge(answer.n_steps, 1);
    for (unsigned i = 0; i < answer.n_steps; i++)
        ck_assert_msg(is_the_latest(path, i), "%s, step %u", path, i);
    for (unsigned i = 1; i < answer.n_steps; i++)
        ck_assert_msg(was_seen_there(path, i), "%s, step %u", path, i);
    assert_end_fits(strlen(path));
    return true;
}

/* With room enough, the last walk's result is known. */
static void assert_last_walk_is_known(void)
{
    const struct walk *w = walk_back(0);

    ck_assert(kit_lookup(cache, w->path, now, &answer));
    ck_assert_uint_eq(answer.n_steps, w->n_steps);
    for (unsigned i = 0; i < w->n_steps; i++)
        ck_assert(kit_same_step(&w->steps[i], &answer.steps[i]));
}

static void assert_bounds(void)
{
    const struct fp_cache_counts c = fp_cache_counts(cache);

    ck_assert_uint_le(c.files, limits.files);
    ck_assert_uint_le(c.directories, limits.directories);
    ck_assert_uint_le(c.negatives, limits.negatives);
}

static void run(bool roomy)
{
    unsigned hits = 0;

    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t what = dice(100);

        now += dice(2);
        if (what < 5)
            change_world();
        else if (what < 40) {
            walk_world();
            if (roomy)
                assert_last_walk_is_known();
        } else if (!roomy && what == 40)
            fp_cache_evict_files(cache, dice(4));
        else if (!roomy && what == 41 && dice(50) == 0)
            fp_cache_clear(cache);
        else
            hits += look();
        assert_bounds();
        if (i % 64 == 0)
            ck_assert_int_eq(unit_open_fds() - fds_at_rest, (int)fp_cache_counts(cache).files);
    }
    /* With fewer hits the test would prove nothing. */
    ck_assert_uint_gt(hits, ROUNDS / 20);
    fp_cache_destroy(&cache);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

START_TEST(with_room_for_all)
{
    seed = 1000003u * (uint64_t)(_i + 1);
    start(NODES, NODES, NODES);
    run(true);
}
END_TEST

START_TEST(with_little_room)
{
    seed = 7777777u * (uint64_t)(_i + 1);
    start(3 + (size_t)_i, 6, 2);
    run(false);
}
END_TEST

START_TEST(with_next_to_no_room)
{
    seed = 424242u * (uint64_t)(_i + 1);
    start(1, LEVELS + 1, 1); /* those above the latest entry stay */
    run(false);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_model");
    TCase *t = tcase_create("model");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, with_room_for_all, 0, 4);
    tcase_add_loop_test(t, with_little_room, 0, 4);
    tcase_add_loop_test(t, with_next_to_no_room, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
