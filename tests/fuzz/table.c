/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease table that a daemon passes, as a client maps it.  In front of the first area's content stand the
 * seals of both (u8, u8) and the size of the second (u16). A slot and a generation (u32, u32) follow.
 */
#include "config.h"
#include "fuzz.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "shared/lease_table.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static void use(const struct fp_lease_view *v, uint32_t slot, uint32_t generation)
{
    (void)fp_lease_view_is_alive(v, 1, 1);
    if (fp_lease_view_is_current(v, 1))
        fp_lease_view_is_valid(v, slot, generation, 1);
    for (uint32_t i = 0; i < UINT8_MAX; i++)
        FUZZ_MUST(!fp_lease_view_is_valid(v, i, UINT32_MAX, 1));
    fp_lease_view_reference(v, slot);
    fp_lease_view_reference(v, UINT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fds_at_rest = fuzz_free_fd();
    struct fp_lease_view *v;
    struct fp_reader r;
    uint32_t slot, generation;
    uint8_t seals[2];
    uint16_t n;
    int generations, referenced, events;

    fp_reader_init(&r, data, size);
    seals[0] = fp_get_u8(&r);
    seals[1] = fp_get_u8(&r);
    n = fp_get_u16(&r);
    slot = fp_get_u32(&r);
    generation = fp_get_u32(&r);
    generations = fuzz_file(r.pos, (size_t)(r.end - r.pos));
    referenced = fuzz_file("", 0);
    FUZZ_MUST(ftruncate(referenced, n) == 0);
    fcntl(generations, F_ADD_SEALS, seals[0] & SEALS);
    fcntl(referenced, F_ADD_SEALS, seals[1] & SEALS);
    events = epoll_create1(EPOLL_CLOEXEC);
    v = fp_lease_view_create(generations, referenced, events, events);
    fp_close(&events);
    if (v != NULL) {
        FUZZ_MUST((seals[0] & F_SEAL_SHRINK) != 0 && (seals[1] & F_SEAL_SHRINK) != 0);
        FUZZ_MUST(fp_lease_view_is_of(v, generations) && !fp_lease_view_is_of(v, referenced));
        fp_close(&generations);
        use(v, slot, generation);
    }
    fp_lease_view_release(&v);
    fp_close(&generations);
    fp_close(&referenced);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
