/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The areas of answers and of contents that a daemon passes, as a client maps them and looks
 * for a path.  In front of the area's bytes stand its seals (u8) and how many zeros follow
 * the bytes (u8, in units of 64). Then come the words of the index that lead to records (u8).
 * That is the first one's number, and in its upper bits how far the records are apart; 255:
 * none.  Words made so have the tag of their path, so that an input need not guess a hash.
 */
#include "config.h"
#include "fuzz.h"

#include <fcntl.h>
#include <sodium.h>

#include "area_kit.h"
#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/ring.h"
#include "wire/answer.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define PATH  "/srv/file"

static const struct fp_chosen none = { 0, { 0 } };
static const struct fp_chosen two = { 2, { 1, 0 } };

/* kind, path */
static uint64_t hash_of(uint8_t kind, size_t len, const uint8_t *key)
{
    uint8_t bytes[1 + sizeof(PATH)] = { kind }, h[crypto_shorthash_BYTES];
    uint64_t v;

    memcpy(bytes + 1, PATH, len);
    crypto_shorthash(h, bytes, 1 + len, key);
    memcpy(&v, h, sizeof(v));
    return v;
}

/* Leads from a word of each path's bucket to a record: the first, and others at a distance from it. */
static void lead(uint8_t *bytes, size_t size, unsigned word)
{
    struct fp_ring_head head;
    const struct {
        uint8_t kind;
        size_t len;
    } keys[] = { { 2, 9 }, { 1, 4 }, { 2, 1 } };

    if (size < sizeof(head))
        return;
    memcpy(&head, bytes, sizeof(head));
    for (size_t i = 0; i < 3 && head.n_buckets > 0; i++) {
        const uint64_t h = hash_of(keys[i].kind, keys[i].len, head.key);
        const uint64_t at = sizeof(head) + (h & (head.n_buckets - 1)) * 64 + (word + i) % 8 * 8;
        const uint64_t w = h >> 48 << 48 | (head.size / 16 + i * (word / 8));

        if (at + 8 <= size)
            memcpy(bytes + at, &w, sizeof(w));
    }
}

static void find(const struct fp_answer_view *v, size_t len)
{
    static struct fp_answer a;

    if (fp_answer_view_find_dir(v, PATH, len, &a))
        FUZZ_MUST(fp_answer_fits(&a, len) && a.fd == -1 && !a.leasable
                  && fp_step_is_dir(&a.steps[a.n_steps - 1]));
    if (!fp_answer_view_find(v, PATH, len, &a))
        return;
    FUZZ_MUST(fp_answer_fits(&a, len) && a.fd == -1 && (a.n_names == 0 || a.n_names == two.n));
    FUZZ_MUST(a.n_steps >= 1 && a.n_steps <= FP_MAX_STEPS && a.leasable);
}

static void read_contents(int fd, uint64_t at)
{
    for (int map = 0; map < 2; map++) {
        struct fp_contents_view *v = fp_contents_view_create(fd, map);
        uint8_t buf[300];

        for (size_t n = 1; v != NULL && n < sizeof(buf); n += 33) {
            fp_contents_view_read(v, at, buf, n);
            fp_contents_view_read(v, at + UINT64_MAX / n, buf, n);
        }
        fp_contents_view_destroy(&v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fds_at_rest = fuzz_free_fd();
    struct fp_reader r;
    uint8_t seals, zeros, word, *bytes;
    size_t n;
    int fd;

    fp_reader_init(&r, data, size);
    seals = fp_get_u8(&r);
    zeros = fp_get_u8(&r);
    word = fp_get_u8(&r);
    if (r.bad)
        return 0;
    n = (size_t)(r.end - r.pos);
    bytes = calloc(1, n + zeros * 64u + 1);
    FUZZ_MUST(bytes != NULL);
    memcpy(bytes, r.pos, n);
    n += zeros * 64u;
    if (word != UINT8_MAX)
        lead(bytes, n, word);
    fd = fuzz_file(bytes, n);
    fcntl(fd, F_ADD_SEALS, seals & SEALS);
    for (int i = 0; i < 2; i++) {
        struct fp_answer_view *v = fp_answer_view_create(fd, i == 0 ? &none : &two);

        if (v == NULL)
            continue;
        FUZZ_MUST((seals & F_SEAL_SHRINK) != 0);
        find(v, 9);
        find(v, 4);
        find(v, 1);
        fp_answer_view_destroy(&v);
    }
    read_contents(fd, n > 8 ? bytes[n - 1] * 16u : 0);
    fp_close(&fd);
    free(bytes);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
