/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of answers: a client finds exactly the answer that the daemon published, or nothing.
 */
#include "config.h"
#include "shared/answer_table.h"

#include "answer_kit.h"
#include "area_kit.h"
#include "shared/lease_table.h"
#include "shared/ring.h"

#define SLOTS 1000u
/* So that the area ends where a page does: index, head and ring. */
#define BYTES ((size_t)FP_ANSWERS_LEAST + 4096 - sizeof(struct fp_ring_head))

static struct fp_lease_table *leases;
static struct fp_answer_table *table;
static struct fp_answer_view *view;
static int fds_at_rest;

static const struct fp_chosen every = { FP_MAX_NAMES, { 0, 1, 2, 3 } };

static void start(void)
{
    fds_at_rest = unit_open_fds();
    leases = fp_lease_table_create(SLOTS);
    table = fp_answer_table_create(BYTES, fp_lease_table_is_used, leases);
    ck_assert_ptr_nonnull(table);
    view = fp_answer_view_create(fp_answer_table_fd(table), &every);
    ck_assert_ptr_nonnull(view);
    for (unsigned i = 0; i < SLOTS; i++)
        fp_lease_table_take(leases);
}

static void end(void)
{
    fp_answer_view_destroy(&view);
    fp_answer_table_destroy(&table);
    fp_lease_table_destroy(&leases);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* "/a/a/a", as many letters as the answer has steps below "/"; "/" for one. */
static const char *path_of(size_t len)
{
    static char path[FP_MAX_PATH];

    for (size_t i = 0; i < len; i++)
        path[i] = i % 2 == 0 ? '/' : 'a';
    return path;
}

static void publish(const char *path)
{
    in.leasable = true;
    fp_answer_table_publish(table, path, strlen(path), &in);
}

static bool find(const char *path)
{
    memset(&out, 0xa5, sizeof(out));
    return fp_answer_view_find(view, path, strlen(path), &out);
}

/* As ANSWERs they would have the same bytes. */
static void assert_same(void)
{
    uint8_t other[FP_MAX_FRAME];
    struct fp_writer w2;

    ck_assert_int_eq(out.fd, -1);
    ck_assert(out.leasable);
    ck_assert_int_eq((int)out.source, FP_SOURCE_CACHE);
    ck_assert_int_eq(out.readable, in.fd != -1 || in.content);
    ck_assert_int_eq(out.content, in.content);
    ck_assert_int_eq(out.local, in.local);
    ck_assert_int_eq(out.watched, in.watched);
    ck_assert_uint_eq(out.content_at, in.content ? in.content_at : 0);
    in.fd = -1;
    in.leasable = true;
    in.source = FP_SOURCE_CACHE;
    fp_writer_init(&w, buf, sizeof(buf));
    fp_put_answer(&w, &in);
    fp_writer_init(&w2, other, sizeof(other));
    fp_put_answer(&w2, &out);
    ck_assert(!w.bad && !w2.bad);
    ck_assert_uint_eq(w.len, w2.len);
    ck_assert_mem_eq(buf, other, w.len);
}

/* ---- lookups ---- */

START_TEST(each_shape_is_found)
{
    char path[FP_MAX_PATH + 1];

    build(shapes[_i]);
    in.content_at = 0x123456789abc;
    in.watched = _i % 2 == 0;
    in.above_watched = true;
    snprintf(path, sizeof(path), "%.*s", (int)path_len(), path_of(path_len()));
    publish(path);
    ck_assert(find(path));
    assert_same();
}
END_TEST

/* At an absent name, or at no directory, a walk ends, however long the path is. */
START_TEST(a_walk_may_end_before_the_path)
{
    static const char *const ends[] = { "da", "ddf", "dx", "ddA", "dO", "f" };

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        build(ends[i]);
        publish("/a/a/a/and/further/down");
        ck_assert(find("/a/a/a/and/further/down"));
        assert_same();
    }
}
END_TEST

START_TEST(other_paths_are_not_found)
{
    build("ddf+hsn");
    publish("/a/a");
    ck_assert(find("/a/a"));
    ck_assert(!find("/a"));
    ck_assert(!find("/a/a/a"));
    ck_assert(!find("/a/b"));
    ck_assert(!find("/"));
}
END_TEST

/* A client has those of its own names, in its own order. Where the answer lacks one of them it has none. */
START_TEST(a_client_chooses_access_files)
{
    static const struct fp_chosen chosen[] = { { 2, { 3, 0 } }, { 1, { 2 } }, { 0, { 0 } }, { 2, { 1, 2 } } };
    struct fp_answer_view *v = fp_answer_view_create(fp_answer_table_fd(table), &chosen[_i]);

    ck_assert_ptr_nonnull(v);
    build("ddf+hsn");
    in.n_names = _i < 3 ? FP_MAX_NAMES : 2;
    for (unsigned i = 0; i < 2 * FP_MAX_NAMES; i++)
        in.steps[i / FP_MAX_NAMES].access[i % FP_MAX_NAMES] =
            (struct fp_access){ .status = FP_OK, .mode = S_IFREG, .size = i };
    publish("/a/a");
    ck_assert(fp_answer_view_find(v, "/a/a", 4, &out));
    ck_assert_uint_eq(out.n_names, _i < 3 ? chosen[_i].n : 0);
    for (unsigned i = 0; i < 2 * out.n_names; i++)
        ck_assert_uint_eq(out.steps[i / out.n_names].access[i % out.n_names].size,
                          i / out.n_names * FP_MAX_NAMES + chosen[_i].at[i % out.n_names]);
    ck_assert(fp_answer_view_find_dir(v, "/a", 2, &out));
    ck_assert_uint_eq(out.n_names, _i < 3 ? chosen[_i].n : 0);
    fp_answer_view_destroy(&v);
}
END_TEST

START_TEST(only_what_is_leasable_is_published)
{
    build("ddf+h");
    fp_answer_table_publish(table, "/a/a", 4, &in);
    in.status = FP_TIMEOUT;
    in.leasable = true;
    fp_answer_table_publish(table, "/a/a", 4, &in);
    ck_assert(!find("/a/a"));
    ck_assert_uint_eq(fp_answer_table_counts(table).bytes, 0);
}
END_TEST

START_TEST(the_same_again_costs_nothing)
{
    size_t bytes;

    build("ddfhc");
    publish("/a/a");
    bytes = fp_answer_table_counts(table).bytes;
    for (int i = 0; i < 10; i++)
        publish("/a/a");
    ck_assert_uint_eq(fp_answer_table_counts(table).bytes, bytes);
    in.content_at = 77;
    publish("/a/a");
    ck_assert_uint_lt(fp_answer_table_counts(table).bytes, 2 * bytes);
    ck_assert(find("/a/a"));
    assert_same();
    in.steps[1].self.mtime.sec++;
    publish("/a/a");
    ck_assert(find("/a/a"));
    assert_same();
}
END_TEST

/* Files share their directory's steps, but no file has those of another moment. */
START_TEST(directory_and_file_are_of_one_moment)
{
    size_t bytes;

    build("ddf+h");
    publish("/a/a");
    bytes = fp_answer_table_counts(table).bytes;
    publish("/a/b");
    ck_assert_uint_lt(fp_answer_table_counts(table).bytes, 2 * bytes);
    in.steps[1].generation++;
    publish("/a/b");
    ck_assert(find("/a/b"));
    assert_same();
    ck_assert(!find("/a/a"));
    in.steps[1].generation--;
    in.steps[1].slot++;
    publish("/a/c");
    ck_assert(!find("/a/b"));
    ck_assert(find("/a/c"));
    assert_same();
}
END_TEST

/* One of them, in one directory above the file, in the loop's turn; 4: in none. */
START_TEST(an_answer_tells_that_there_are_no_access_files)
{
    build("ddf+hsn");
    for (unsigned i = 0; i < 2 * FP_MAX_NAMES; i++)
        in.steps[i / FP_MAX_NAMES].access[i % FP_MAX_NAMES] = (struct fp_access){ .status = FP_ABSENT };
    if (_i < 4)
        in.steps[_i / 2].access[_i % 2].status = _i % 2 == 0 ? FP_OK : FP_DENIED;
    ck_assert_int_eq(fp_answer_lacks_access_files(&in), _i == 4);
    publish("/a/a");
    ck_assert(find("/a/a"));
    ck_assert_int_eq(fp_answer_lacks_access_files(&out), _i == 4);
    assert_same();
}
END_TEST

/* The watch of a directory farther above may go without a change of the file's own directory. */
START_TEST(a_file_is_watched_while_all_above_it_is)
{
    build("ddf+h");
    in.watched = in.above_watched = true;
    publish("/a/a");
    ck_assert(find("/a/a") && out.watched);
    in.watched = in.above_watched = false;
    in.steps[0].generation++;
    publish("/a/b");
    ck_assert(find("/a/a") && !out.watched);
    ck_assert_uint_eq(out.steps[0].generation, in.steps[0].generation);
    ck_assert_uint_eq(out.steps[0].self.ino, in.steps[0].self.ino);
    in.above_watched = true;
    publish("/a/b");
    ck_assert(find("/a/a") && out.watched);
    ck_assert(find("/a/b") && !out.watched);
}
END_TEST

static bool find_dir(const char *path)
{
    memset(&out, 0xa5, sizeof(out));
    return fp_answer_view_find_dir(view, path, strlen(path), &out);
}

/* For a client that looks at what lies in it. */
START_TEST(a_directory_is_found_without_a_file)
{
    build("ddf+hsn");
    in.may_look = (_i & 1) != 0;
    in.above_watched = (_i & 2) != 0;
    publish("/a/a");
    ck_assert(find_dir("/a"));
    ck_assert_uint_eq(out.n_steps, 2);
    ck_assert_uint_eq(out.n_names, in.n_names);
    ck_assert_int_eq(out.may_look, in.may_look);
    ck_assert_int_eq(out.above_watched, in.above_watched);
    ck_assert(!out.leasable && !out.local && !out.readable && out.fd == -1);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(out.steps[i].end, in.steps[i].end);
        ck_assert_uint_eq(out.steps[i].slot, in.steps[i].slot);
        ck_assert_uint_eq(out.steps[i].generation, in.steps[i].generation);
        ck_assert_uint_eq(out.steps[i].self.ino, in.steps[i].self.ino);
        ck_assert(fp_access_equal(&out.steps[i].access[0], &in.steps[i].access[0]));
    }
    ck_assert(!find_dir("/"));
    ck_assert(!find_dir("/b"));
    ck_assert(!find_dir("/a/a"));
}
END_TEST

/* ---- a full table ---- */

static const char *numbered(unsigned n)
{
    static char path[64];

    snprintf(path, sizeof(path), "/a/%u", n);
    return path;
}

/* Slot and generation of the file with that number. */
static void build_numbered(unsigned n)
{
    static struct fp_meta dir; /* the same for all of them */

    if (dir.mode == 0)
        dir = meta(S_IFDIR | 0755);
    build("ddf+h");
    in.steps[0].self = in.steps[1].self = dir;
    in.steps[2].end = (uint16_t)strlen(numbered(n));
    in.steps[2].slot = n % (SLOTS - 10) + 10;
    in.steps[2].generation = fp_lease_table_generation(leases, in.steps[2].slot);
    in.steps[2].self.size = n;
    in.steps[1].slot = 2;
    in.steps[1].generation = fp_lease_table_generation(leases, 2);
    in.steps[0].slot = 1;
    in.steps[0].generation = fp_lease_table_generation(leases, 1);
}

static bool find_numbered(unsigned n)
{
    if (!find(numbered(n)))
        return false;
    ck_assert_uint_eq(out.n_steps, 3);
    ck_assert_uint_eq(out.steps[2].self.size, n);
    return true;
}

static void use(uint32_t slot)
{
    ck_assert_int_eq(pwrite(fp_lease_table_referenced_fd(leases), "\1", 1, slot), 1);
}

static void publish_numbered(unsigned n)
{
    build_numbered(n);
    publish(numbered(n));
}

START_TEST(the_oldest_go)
{
    unsigned found = 0;

    for (unsigned n = 0; n < 10000; n++) {
        publish_numbered(n);
        ck_assert(find_numbered(n));
    }
    for (unsigned n = 0; n < 10000; n++)
        found += find_numbered(n);
    /* Records of 160 to 192 bytes: hardly any is lost for want of a word. */
    ck_assert_uint_gt(found, BYTES / 192 - 50);
    ck_assert_uint_lt(found, BYTES / 150);
    ck_assert(!find_numbered(0));
    ck_assert_uint_gt(fp_answer_table_counts(table).overwritten, 8000);
    ck_assert_uint_eq(fp_answer_table_counts(table).bytes, fp_ring_round(BYTES));
}
END_TEST

START_TEST(what_is_used_stays)
{
    publish_numbered(1);
    publish_numbered(2);
    publish_numbered(3);
    for (unsigned n = 100; n < 20000; n++) {
        use(11);
        use(13);
        use(2);
        /* With other metadata each time, and so other slots than the ones above. */
        publish_numbered(n % 800 + 100);
        ck_assert(find_numbered(1));
        /* Its answer has changed: that is a use of the slot, but of no record worth keeping. */
        if (n == 100)
            fp_lease_table_invalidate(leases, 13);
    }
    ck_assert(!find_numbered(2));
    ck_assert(!find_numbered(3));
    ck_assert_uint_gt(fp_answer_table_counts(table).kept, 5);
}
END_TEST

/* Clients can mark everything all the time: the newest is there, and each turn is bounded. */
START_TEST(marks_of_a_hostile_client)
{
    uint8_t all[SLOTS + 1];
    uint64_t kept = 0;

    memset(all, 1, sizeof(all));
    for (unsigned n = 0; n < 10000; n++) {
        struct fp_ring_counts counts;

        ck_assert_int_eq(pwrite(fp_lease_table_referenced_fd(leases), all, sizeof(all), 0), sizeof(all));
        publish_numbered(n);
        counts = fp_answer_table_counts(table);
        ck_assert_uint_le(counts.kept - kept, 2 * FP_RING_KEEP);
        kept = counts.kept;
        ck_assert(find_numbered(n));
    }
    ck_assert_uint_gt(kept, 1000);
}
END_TEST

/* ---- the area ---- */

static size_t area_size(void)
{
    struct stat st;

    ck_assert_int_eq(fstat(fp_answer_table_fd(table), &st), 0);
    return (size_t)st.st_size;
}

START_TEST(clients_cannot_change_it)
{
    const int fd = fp_answer_table_fd(table);

    ck_assert_ptr_eq(mmap(NULL, area_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    ck_assert_int_eq(ftruncate(fd, (off_t)area_size() * 2), -1);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}
END_TEST

/* A client's own copy of the area, which it may change. */
static uint8_t *copy_area(void)
{
    uint8_t *bytes = malloc(area_size());

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(pread(fp_answer_table_fd(table), bytes, area_size(), 0), (ssize_t)area_size());
    return bytes;
}

static struct fp_answer_view *view_of(const void *bytes, size_t size, int seals)
{
    int fd = area_kit_copy(bytes, size, seals), error;
    struct fp_answer_view *v;

    ck_assert_int_ne(fd, -1);
    v = fp_answer_view_create(fd, &every);
    error = errno;
    close(fd);
    errno = error;
    return v;
}

static void assert_no_table(const void *bytes, size_t size, int seals)
{
    ck_assert_ptr_null(view_of(bytes, size, seals));
    ck_assert_int_eq(errno, EPROTO);
}

START_TEST(another_area_is_refused)
{
    const uint32_t buckets[] = { 0, 3, UINT32_MAX, 1u << 31, 1u << 20 };
    uint8_t *bytes = copy_area();
    struct fp_ring_head *head = (struct fp_ring_head *)(void *)bytes;
    const struct fp_ring_head good = *head;
    struct fp_answer_view *v = view_of(bytes, area_size(), F_SEAL_SHRINK);

    ck_assert_ptr_nonnull(v);
    fp_answer_view_destroy(&v);
    assert_no_table(bytes, area_size(), 0);
    assert_no_table(bytes, area_size(), F_SEAL_GROW | F_SEAL_WRITE);
    assert_no_table(bytes, area_size() - 1, F_SEAL_SHRINK);
    assert_no_table(bytes, sizeof(*head), F_SEAL_SHRINK);
    assert_no_table(bytes, 0, F_SEAL_SHRINK);
    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        head->n_buckets = buckets[i];
        assert_no_table(bytes, area_size(), F_SEAL_SHRINK);
    }
    *head = good;
    head->magic++;
    assert_no_table(bytes, area_size(), F_SEAL_SHRINK);
    ck_assert_ptr_null(fp_answer_view_create(-1, &every));
    ck_assert_ptr_null(fp_answer_view_create(STDIN_FILENO, &every));
    free(bytes);
}
END_TEST

/* Finds a consistent answer, or nothing. */
static void find_all(const struct fp_answer_view *v)
{
    for (unsigned n = 0; n < 40; n++) {
        const char *path = numbered(n);

        memset(&out, 0xa5, sizeof(out));
        if (fp_answer_view_find(v, path, strlen(path), &out))
            ck_assert(fp_answer_fits(&out, strlen(path)) && out.n_names == 0 && out.fd == -1);
    }
    if (fp_answer_view_find_dir(v, "/a", 2, &out))
        ck_assert(fp_answer_fits(&out, 2) && out.n_names == 0 && out.fd == -1);
}

/* Wrong bytes anywhere, a few at a time: most of them in the words and records that are in use. */
START_TEST(any_bytes_may_be_wrong)
{
    uint64_t seed = (uint64_t)_i + 1;
    uint8_t *bytes;
    const struct fp_ring_head *head;
    size_t records;

    for (unsigned n = 0; n < 40; n++)
        publish_numbered(n);
    bytes = copy_area();
    head = (const struct fp_ring_head *)(const void *)bytes;
    records = (size_t)head->data;
    for (int k = 0; k < 40; k++) {
        const size_t at = k % 4 == 0 ? unit_random(&seed) % records : records + unit_random(&seed) % 8192;
        struct fp_answer_view *v;

        if (at >= sizeof(*head) || k % 8 == 0)
            bytes[at] = (uint8_t)(unit_random(&seed) >> 32);
        v = view_of(bytes, area_size(), F_SEAL_SHRINK);
        if (v != NULL)
            find_all(v);
        fp_answer_view_destroy(&v);
    }
    free(bytes);
}
END_TEST

/* Each word of the index leads to every unit of the ring, its last ones too. */
START_TEST(records_of_any_size_anywhere)
{
    static const uint32_t sizes[] = { 0, 7, 8, 31, 32, 64, 208, 32768, 32784, UINT32_MAX };
    uint8_t *bytes, *ring;
    struct fp_ring_head *head;
    uint64_t seed = 5;

    publish_numbered(1);
    bytes = copy_area();
    head = (struct fp_ring_head *)(void *)bytes;
    ring = bytes + head->data;
    for (int k = 0; k < 300; k++) {
        uint64_t *words = (uint64_t *)(void *)(head + 1);
        const uint64_t unit =
            k % 2 == 0 ? head->size / 16 - 1 - unit_random(&seed) % 20 : unit_random(&seed) >> 16;
        uint32_t *item = (uint32_t *)(void *)(ring + unit * 16 % head->size);
        struct fp_answer_view *v;

        item[0] = sizes[unit_random(&seed) % 10];
        item[1] = k % 3 == 0 ? (uint32_t)unit_random(&seed) : 2 + 4;
        for (size_t i = 0; i < (size_t)head->n_buckets * 8; i++) {
            if (words[i] != 0)
                words[i] = words[i] >> 48 << 48 | unit;
        }
        v = view_of(bytes, area_size(), F_SEAL_SHRINK);
        ck_assert_ptr_nonnull(v);
        find_all(v);
        fp_answer_view_destroy(&v);
    }
    free(bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("answer_table");
    TCase *t = unit_add_case(s, "finding", start, end, 0);

    tcase_add_loop_test(t, each_shape_is_found, 0, SHAPES);
    tcase_add_test(t, a_walk_may_end_before_the_path);
    tcase_add_test(t, other_paths_are_not_found);
    tcase_add_loop_test(t, a_client_chooses_access_files, 0, 4);
    tcase_add_test(t, only_what_is_leasable_is_published);
    tcase_add_test(t, the_same_again_costs_nothing);
    tcase_add_test(t, directory_and_file_are_of_one_moment);
    tcase_add_loop_test(t, an_answer_tells_that_there_are_no_access_files, 0, 5);
    tcase_add_test(t, a_file_is_watched_while_all_above_it_is);
    tcase_add_loop_test(t, a_directory_is_found_without_a_file, 0, 4);
    t = unit_add_case(s, "full", start, end, 0);
    tcase_add_test(t, the_oldest_go);
    tcase_add_test(t, what_is_used_stays);
    tcase_add_test(t, marks_of_a_hostile_client);
    t = unit_add_case(s, "area", start, end, 0);
    tcase_add_test(t, clients_cannot_change_it);
    tcase_add_test(t, another_area_is_refused);
    tcase_add_loop_test(t, any_bytes_may_be_wrong, 0, 20);
    tcase_add_test(t, records_of_any_size_anywhere);
    return unit_run(s);
}
