/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "control.h"

#include <inttypes.h>
#include <string.h>

#include "dispatch.h"
#include "log.h"

void fp_control_purge(struct fp_dispatch *d, const struct fp_control *question,
                      struct fp_done *done)
{
    const bool all = question->scope == FP_SCOPE_ALL;
    const bool tree = question->scope != FP_SCOPE_PATH;
    const char *path = all ? "/" : question->path;
    const size_t len = all ? 1 : question->path_len;

    memset(done, 0, sizeof(*done));
    done->count = fp_dispatch_forget(d, path, len, tree);
    fp_log(FP_LOG_INFO, 50, "forgotten as asked: %.*s%s, %" PRIu64 " entries", (int)len, path,
           tree ? " and all below" : "", done->count);
}

void fp_control_report(const struct fp_report_source *source, uint32_t from,
                       struct fp_done *done)
{
    static char text[FP_MAX_REPORT];
    size_t n = 1;

    memset(done, 0, sizeof(*done));
    if (source->line == NULL) {
        done->status = FP_FAILED;
        return;
    }
    done->text = text;
    /* The cursor stops before it would begin anew. */
    while (n > 0 && from < UINT32_MAX && sizeof(text) - done->text_len >= FP_REPORT_LINE) {
        n = source->line(source->ctx, from, text + done->text_len, FP_REPORT_LINE);
        done->text_len += n;
        from += n > 0;
    }
    done->next = n > 0 && done->text_len > 0 ? from : 0;
}
