/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/open_files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "question/file.h"
#include "question/child_cache.h"
#include "shared/lease_table.h"
#include "wire/answer.h"

#define SWEEP_MS          1000u /* a removed file that is open takes its room on the disk */
#define DESCRIPTORS_SHARE 4     /* kept files may have one in so many descriptors of the process */

struct key {
    uint64_t view; /* its number */
    uint32_t slot, generation;
    uint64_t dev, ino; /* a false daemon may give two files one slot */
};

struct open_file {
    struct fp_item item;
    struct key key;
    struct fp_lease_view *view;
    struct fp_file *file;
};

static struct fp_child_cache *files;
static unsigned most_descriptors;
static int scarce = INT_MAX; /* from this descriptor on: new ones have the lowest number that is free */
static void (*wake)(unsigned ms); /* NULL: the child sweeps by itself */

void fp_open_files_init(unsigned most, void (*wake_sweeper)(unsigned ms))
{
    struct rlimit rl;

    most_descriptors = UINT_MAX;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < INT_MAX) {
        most_descriptors = (unsigned)(rl.rlim_cur / DESCRIPTORS_SHARE);
        scarce = (int)rl.rlim_cur - (int)most_descriptors;
    }
    files = fp_child_cache_create(most, SIZE_MAX);
    wake = wake_sweeper;
}

static void destroy(struct fp_item *item)
{
    struct open_file *f = (struct open_file *)item;

    fp_file_release(&f->file);
    fp_lease_view_release(&f->view);
    free(f);
}

static struct key key_of(const struct fp_lease_view *view, const struct fp_step *last)
{
    const struct fp_meta *m = fp_step_target(last);

    return (struct key){ fp_lease_view_number(view), last->slot, last->generation, m != NULL ? m->dev : 0,
                         m != NULL ? m->ino : 0 };
}

struct fp_file *fp_open_files_find(const struct fp_lease_view *view, const struct fp_step *last)
{
    const struct key key = key_of(view, last);
    struct open_file *f = (struct open_file *)fp_child_cache_get(files, &key, sizeof(key));
    struct fp_file *file;

    if (f == NULL)
        return NULL;
    file = f->file;
    fp_file_retain(file);
    fp_item_release(&f->item);
    return file;
}

void fp_open_files_keep(struct fp_lease_view *view, const struct fp_step *last, struct fp_file *file)
{
    struct open_file *f;

    /* The file itself counts. */
    if (fp_file_descriptors() > most_descriptors || fp_file_descriptor(file) >= scarce)
        return;
    f = malloc(sizeof(*f));
    if (f == NULL)
        return;
    *f = (struct open_file){ .key = key_of(view, last), .view = view, .file = file };
    fp_lease_view_retain(view);
    fp_file_retain(file);
    fp_item_init(&f->item, &f->key, sizeof(f->key), destroy);
    fp_child_cache_put(files, &f->item);
    fp_item_release(&f->item);
    if (wake != NULL)
        wake(SWEEP_MS);
}

/* One of former tables would keep their memory. */
static bool is_over(const struct fp_item *item)
{
    const struct open_file *f = (const struct open_file *)item;

    return fp_lease_view_is_superseded(f->view)
           || !fp_lease_view_is_valid(f->view, f->key.slot, f->key.generation, fp_now_ms());
}

static bool is_any(const struct fp_item *item)
{
    return item != NULL;
}

void fp_open_files_yield(int descriptor)
{
    if (descriptor >= scarce)
        fp_child_cache_drop_if(files, is_any);
}

unsigned fp_open_files_sweep(void)
{
    fp_child_cache_drop_if(files, is_over);
    return fp_child_cache_count(files) > 0 ? SWEEP_MS : UINT_MAX;
}

unsigned fp_open_files_count(void)
{
    return fp_child_cache_count(files);
}
