/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf_check.h"

#include <confuse.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

/* libconfuse would take 010 for eight and nothing for zero. */
int fp_conf_parse_number(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    const char *digits = value + (value[0] == '-');
    const size_t len = strspn(digits, "0123456789");

    if (len == 0 || digits[len] != '\0' || (digits[0] == '0' && len > 1)) {
        cfg_error(cfg, "%s = \"%s\" is no decimal number: use digits, without a zero before them or a unit",
                  opt->name, value);
        return -1;
    }
    errno = 0;
    *(long *)result = strtol(value, NULL, 10);
    if (errno == 0)
        return 0;
    cfg_error(cfg, "%s = %s is out of range", opt->name, value);
    return -1;
}

int fp_conf_check_path(cfg_t *cfg, cfg_opt_t *opt)
{
    const unsigned last = cfg_opt_size(opt) - 1;
    const char *path = cfg_opt_getnstr(opt, last);

    if (path == NULL || !fp_path_is_normal(path, strlen(path))) {
        cfg_error(cfg,
                  "%s = \"%s\" is no absolute path without \"//\", \".\", \"..\" and "
                  "without a slash at its end",
                  opt->name, path != NULL ? path : "");
        return -1;
    }
    for (unsigned i = 0; i < last; i++) {
        if (strcmp(cfg_opt_getnstr(opt, i), path) == 0) {
            cfg_error(cfg, "%s has \"%s\" twice: leave one out", opt->name, path);
            return -1;
        }
    }
    return 0;
}

bool fp_conf_roots_equal(const char *const *a, const char *const *b)
{
    while (*a != NULL && *b != NULL && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return *a == NULL && *b == NULL;
}
