/* SPDX-License-Identifier: Apache-2.0 */
/* flashpached.conf, up to a NUL byte; what follows it is a setting of the command line. */
#include "config.h"
#include "conf/conf.h"

#include "changes/mounts.h"
#include "conf/conf_fleet.h"
#include "fuzz.h"

static void check_roots(const char *const *roots)
{
    for (; *roots != NULL; roots++)
        FUZZ_MUST(fp_path_is_normal(*roots, strlen(*roots)));
}

static void check(const struct fp_conf *c)
{
    FUZZ_MUST(fp_path_is_normal(c->socket, strlen(c->socket)));
    FUZZ_MUST(c->workers >= 1 && c->workers <= 256 && c->lookup_timeout_ms >= 10);
    FUZZ_MUST(c->ttl_ms >= 1 && c->max_connections >= 1 && c->memory >= 212992);
    FUZZ_MUST(c->uid != 0);
    check_roots(c->roots);
    for (size_t i = 0; i < c->n_mounts; i++) {
        FUZZ_MUST(fp_path_is_normal(c->mounts[i].point, strlen(c->mounts[i].point)));
        FUZZ_MUST(c->mounts[i].ttl_ms >= -1 && c->mounts[i].stale_if_error_ms >= -1);
    }
    if (c->fleet == NULL)
        return;
    FUZZ_MUST(c->fleet->roots[0] != NULL);
    check_roots(c->fleet->roots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fds_at_rest = fuzz_free_fd();
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    char name[FP_FD_NAME], user[] = "user=nobody", *overrides[2];
    struct fp_conf *conf;
    size_t n = 0;
    char *setting = NULL;
    int fd;

    if (geteuid() == 0) /* who must name somebody else */
        overrides[n++] = user;
    if (end != NULL)
        overrides[n++] = setting = strndup((const char *)end + 1, (size_t)(data + size - end) - 1);
    fd = fuzz_file(data, end != NULL ? (size_t)(end - data) : size);
    fp_fd_name(name, fd);
    conf = fp_conf_load(name, overrides, n);
    if (conf != NULL)
        check(conf);
    fp_conf_destroy(&conf);
    free(setting);
    fp_close(&fd);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
