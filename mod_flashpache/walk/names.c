/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/names.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "files/names.h"
#include "question/held.h"
#include "shared/lease_table.h"
#include "wire/answer.h"

static bool in_use;

void fp_names_init(void)
{
    in_use = true;
}

/* True if the answer is as current as the file system itself. */
static bool holds(const struct fp_held *dir, uint64_t now_ms)
{
    return fp_lease_view_is_current(dir->view, now_ms)
           && fp_lease_view_is_valid(dir->view, fp_held_last(dir)->slot, fp_held_last(dir)->generation, now_ms);
}

bool fp_names_has_none(const struct fp_held *dir, fp_names_is *is, const char *text)
{
    const struct fp_step *last = fp_held_last(dir);
    const struct dirent64 *entry;
    struct fp_files_names *n;
    bool none;
    size_t at = 0;

    /* No event for a link reports a change of its target. */
    if (!in_use || fp_held_is_stale(dir) || last->end != dir->path_len || last->status != FP_OK
        || !S_ISDIR(last->self.mode) || dir->view == NULL || !holds(dir, fp_now_ms()))
        return false;
    n = fp_files_names_of(dir->view, dir->path, dir->path_len, last);
    none = n != NULL;
    while (none && (entry = fp_files_names_next(n, &at)) != NULL)
        none = !is(entry->d_name, text);
    fp_files_names_release(&n);
    return none;
}
