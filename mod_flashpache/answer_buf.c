/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "answer_buf.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define FOR_SUBREQUESTS 3
#define MOST            64

struct place {
    atomic_bool lent;
    struct fp_answer *buf;
};

static struct place *places;
static unsigned n_places;

void fp_answer_buf_init(apr_pool_t *p, int threads)
{
    const unsigned n = threads < MOST - FOR_SUBREQUESTS ? (unsigned)threads + FOR_SUBREQUESTS : MOST;
    struct fp_answer *bufs = mmap(NULL, n * sizeof(*bufs), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    /* Then requests' pools have them all. */
    if (bufs == MAP_FAILED)
        return;
    places = apr_pcalloc(p, n * sizeof(*places));
    for (unsigned i = 0; i < n; i++)
        places[i].buf = &bufs[i];
    n_places = n;
}

static apr_status_t give_back(void *place)
{
    /* Release: its next user's writes come after all of this one's. */
    atomic_store_explicit(&((struct place *)place)->lent, false, memory_order_release);
    return APR_SUCCESS;
}

struct fp_answer *fp_answer_buf_borrow(apr_pool_t *p)
{
    for (unsigned i = 0; i < n_places; i++) {
        struct place *place = &places[i];

        if (!atomic_load_explicit(&place->lent, memory_order_relaxed)
            && !atomic_exchange_explicit(&place->lent, true, memory_order_acquire)) {
            apr_pool_cleanup_register(p, place, give_back, apr_pool_cleanup_null);
            return place->buf;
        }
    }
    return apr_palloc(p, sizeof(struct fp_answer));
}
