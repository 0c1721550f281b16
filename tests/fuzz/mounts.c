/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/self/mountinfo: mount points and types are what any user who may mount says. */
#include "config.h"
#include "changes/mounts.h"

#include "changes/mount_list.h"
#include "fuzz.h"

static void check_one(const struct fp_mounts *m, size_t i)
{
    const struct fp_mount *mount = fp_mounts_at(m, i);

    FUZZ_MUST(fp_mounts_find(m, mount->id) == mount);
    FUZZ_MUST(i == 0 || fp_mounts_at(m, i - 1)->id < mount->id);
    FUZZ_MUST(mount->point[0] == '/' && mount->type[0] != '\0' && mount->ttl_ms == 3000);
    FUZZ_MUST(fp_verdict_text(mount->traits.verdict) != NULL);
}

static void check_path(const struct fp_mounts *m, const char *path)
{
    const struct fp_mount *found = fp_mounts_of_path(m, path, strlen(path));

    FUZZ_MUST(found == NULL || fp_path_is_below(path, strlen(path), found->point));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fp_mounts_settings settings = { .by = FP_BY_AUTO, .ttl_ms = 3000 };
    static struct fp_mount_list *list;
    const int fds_at_rest = fuzz_free_fd();
    char name[FP_FD_NAME];
    struct fp_mounts *m;
    int fd;

    if (list == NULL)
        list = fp_mount_list_create();
    fd = fuzz_file(data, size);
    fp_fd_name(name, fd);
    m = fp_mounts_create(name, &settings, list);
    FUZZ_MUST(m != NULL);
    for (size_t i = 0; i < fp_mounts_count(m); i++) {
        const struct fp_mount *mount = fp_mounts_at(m, i);
        const struct fp_mount_traits traits = fp_mount_list_find(list, mount->id);

        check_one(m, i);
        FUZZ_MUST(traits.local == mount->traits.local && traits.verdict == mount->traits.verdict);
        if (fp_path_is_normal(mount->point, strlen(mount->point)))
            check_path(m, mount->point);
    }
    check_path(m, "/");
    check_path(m, "/a/b");
    fp_mounts_destroy(&m);
    fp_close(&fd);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
