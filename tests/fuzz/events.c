/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes read from fanotify.  The kernel is trusted; a later one may say more than we know. */
#include "config.h"
#include "fuzz.h"

#include "changes/watch_fanotify.h"
#include "common/watch_by.h"

static void changed(void *ctx, const struct fp_watch_key *key, const char *name, size_t len, bool replaced)
{
    (void)ctx;
    FUZZ_MUST(key->len > 1 && key->len <= FP_MAX_WATCH_KEY && key->bytes[0] == FP_BY_FANOTIFY);
    FUZZ_MUST(memchr(name, '\0', len) == NULL);
    FUZZ_MUST(!replaced || len > 0);
}

static void gone(void *ctx, const struct fp_watch_key *key)
{
    (void)ctx;
    FUZZ_MUST(key == NULL); /* fanotify has no such event */
}

static void lost(void *ctx)
{
    (void)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fp_watch_ops ops = { changed, gone, lost, NULL };
    int fd = fuzz_file(data, size);

    fp_fanotify_drain(fd, &ops, NULL);
    fp_close(&fd);
    return 0;
}
