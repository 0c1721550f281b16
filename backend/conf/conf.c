/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf.h"

#include <confuse.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wire.h"
#include "conf/conf_fleet.h"
#include "conf/mount_rule.h"

/* The public part first, so that one pointer serves for both. */
struct loaded {
    struct fp_conf conf;
    cfg_t *cfg;               /* owns the strings */
    const char **roots;
    struct fp_mount_rule *mounts;
    struct fp_fleet_settings fleet;
};

static const struct { const char *key; long def, min, max; } numbers[] = {
    { "helpers", 32, 1, 256 },
    { "lookup_timeout_ms", 10000, 10, 600000 },
    { "ttl_ms", 3000, 1, 86400000 },
    { "watched_ttl_ms", 60000, 1, 86400000 },
    { "stale_if_error_ms", 0, 0, 86400000 },
    { "slow_log_ms", 1000, 0, 600000 },
    { "mount_helpers", 0, 0, 256 },
    { "mount_timeout_ms", 2000, 100, 600000 },
    { "read_ahead", 65536, 0, 16777216 },
    { "content_file_max", 16384, 0, 1048576 },
    { "max_content_bytes", 67108864, 0, 1099511627776 },
    { "max_entries", 200000, 16, 100000000 },
    { "max_absent", 200000, 16, 100000000 },
    { "max_bytes", 268435456, 1048576, 1099511627776 },
    { "max_descriptors", 0, 0, 100000000 },
    { "max_connections", 4096, 1, 1000000 },
    { "max_queue", 4096, 1, 1000000 },
    { "max_inflight", 4096, 4, 1000000 },
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))
#define OTHERS 11             /* the settings that are no numbers */

static int check_number(cfg_t *cfg, cfg_opt_t *opt)
{
    long v = cfg_opt_getnint(opt, cfg_opt_size(opt) - 1);

    for (size_t i = 0; i < NUMBERS; i++) {
        if (strcmp(numbers[i].key, opt->name) != 0)
            continue;
        if (v >= numbers[i].min && v <= numbers[i].max)
            return 0;
        cfg_error(cfg, "%s = %ld is out of range: use %ld to %ld", opt->name, v,
                  numbers[i].min, numbers[i].max);
    }
    return -1;
}

int fp_conf_check_path(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *path = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);

    if (path != NULL && fp_path_is_normal(path, strlen(path)))
        return 0;
    cfg_error(cfg, "%s = \"%s\" is no absolute path without \"//\", \".\", \"..\" and "
              "without a slash at its end", opt->name, path != NULL ? path : "");
    return -1;
}

static int check_socket(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *path = cfg_opt_getnstr(opt, 0);
    const size_t room = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

    if (fp_conf_check_path(cfg, opt) == -1)
        return -1;
    if (strlen(path) <= room)
        return 0;
    cfg_error(cfg, "socket path of %zu bytes is too long: a Unix-domain socket's path "
              "may have %zu, choose a shorter one: %s", strlen(path), room, path);
    return -1;
}

static int check_log(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);

    if (strcmp(v, "stderr") == 0 || strcmp(v, "syslog") == 0)
        return 0;
    return fp_conf_check_path(cfg, opt);
}

static int check_log_level(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);

    if (fp_log_level_parse(v) != -1)
        return 0;
    cfg_error(cfg, "log_level = \"%s\" is unknown: use error, warning, info or debug", v);
    return -1;
}

static int check_watch(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);
    int by;

    if (fp_watch_by_parse(v, &by) && by != FP_BY_FANOTIFY)
        return 0;
    cfg_error(cfg, "watch = \"%s\" is unknown: use auto (which is fanotify where the daemon "
              "may), inotify or ttl", v);
    return -1;
}

static int check_mount_watch(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);
    int by;

    if (fp_watch_by_parse(v, &by))
        return 0;
    cfg_error(cfg, "watch = \"%s\" is unknown: use auto, fanotify, inotify or ttl", v);
    return -1;
}

/* Its keys have been checked; left is its title. */
static int check_mount(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *point = cfg_title(cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1));

    if (fp_path_is_normal(point, strlen(point)))
        return 0;
    cfg_error(cfg, "mount \"%s\" is no absolute path without \"//\", \".\", \"..\" and "
              "without a slash at its end", point);
    return -1;
}

static int check_exists(cfg_t *cfg, const char *what, const char *name, bool exists)
{
    if (exists)
        return 0;
    cfg_error(cfg, "%s \"%s\" does not exist: name the %s that Apache's children run as",
              what, name, what);
    return -1;
}

static int check_user(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);

    return check_exists(cfg, "user", v, getpwnam(v) != NULL);
}

static int check_group(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);

    return check_exists(cfg, "group", v, getgrnam(v) != NULL);
}

bool fp_conf_roots_equal(const char *const *a, const char *const *b)
{
    while (*a != NULL && *b != NULL && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return *a == NULL && *b == NULL;
}

static void complain(cfg_t *cfg, const char *format, va_list ap)
{
    fprintf(stderr, "flashpached: ");
    if (cfg != NULL && cfg->filename != NULL)
        fprintf(stderr, "%s:%d: ", cfg->filename, cfg->line);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
}

static cfg_t *make_table(void)
{
    /* -1, which is out of range in a file: as the general setting. */
    cfg_opt_t mount_opts[] = {
        CFG_STR("watch", "auto", CFGF_NONE),
        CFG_INT("ttl_ms", -1, CFGF_NONE),
        CFG_INT("stale_if_error_ms", -1, CFGF_NONE),
        CFG_END(),
    };
    cfg_opt_t opts[NUMBERS + OTHERS + 1] = {
        CFG_STR("socket", FP_DEFAULT_SOCKET, CFGF_NONE),
        CFG_STR("user", "", CFGF_NONE),
        CFG_STR("group", "", CFGF_NONE),
        CFG_STR("pid_file", "", CFGF_NONE),
        CFG_STR("log", "syslog", CFGF_NONE),
        CFG_STR("log_level", "info", CFGF_NONE),
        CFG_STR("watch", "auto", CFGF_NONE),
        CFG_STR_LIST("roots", "{}", CFGF_NONE),
        CFG_BOOL("seccomp", cfg_true, CFGF_NONE),
        CFG_SEC("mount", mount_opts, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
        fp_conf_fleet_section(),
    };
    const cfg_opt_t end = CFG_END();
    cfg_t *cfg;

    for (size_t i = 0; i < NUMBERS; i++) {
        const cfg_opt_t opt = CFG_INT(numbers[i].key, numbers[i].def, CFGF_NONE);

        opts[OTHERS + i] = opt;
    }
    opts[OTHERS + NUMBERS] = end;
    cfg = cfg_init(opts, CFGF_NONE);
    if (cfg == NULL)
        return NULL;
    cfg_set_error_function(cfg, complain);
    cfg_set_validate_func(cfg, "socket", check_socket);
    cfg_set_validate_func(cfg, "pid_file", fp_conf_check_path);
    cfg_set_validate_func(cfg, "log", check_log);
    cfg_set_validate_func(cfg, "log_level", check_log_level);
    cfg_set_validate_func(cfg, "watch", check_watch);
    cfg_set_validate_func(cfg, "roots", fp_conf_check_path);
    cfg_set_validate_func(cfg, "mount", check_mount);
    cfg_set_validate_func(cfg, "mount|watch", check_mount_watch);
    cfg_set_validate_func(cfg, "mount|ttl_ms", check_number);
    cfg_set_validate_func(cfg, "mount|stale_if_error_ms", check_number);
    fp_conf_fleet_check(cfg);
    for (size_t i = 0; i < NUMBERS; i++)
        cfg_set_validate_func(cfg, numbers[i].key, check_number);
    return cfg;
}

static int set_one(cfg_t *cfg, const char *setting)
{
    const char *eq = strchr(setting, '=');
    char key[32];
    cfg_opt_t *opt;

    if (eq == NULL || eq == setting || (size_t)(eq - setting) >= sizeof(key)) {
        fprintf(stderr, "flashpached: \"%s\": give a setting as KEY=VALUE\n", setting);
        return -1;
    }
    snprintf(key, sizeof(key), "%.*s", (int)(eq - setting), setting);
    if (strcmp(key, "mount") == 0 || strcmp(key, "fleet") == 0 || strchr(key, '|') != NULL) {
        fprintf(stderr, "flashpached: \"%s\": sections can only be given in the file\n",
                setting);
        return -1;
    }
    opt = cfg_getopt(cfg, key);
    if (opt == NULL)
        return -1;      /* said by libconfuse */
    if (cfg_setopt(cfg, opt, eq + 1) == NULL)
        return -1;
    return opt->validcb != NULL ? opt->validcb(cfg, opt) : 0;
}

/* libconfuse's scanner ends the process if reading fails: a directory, say. */
static int check_readable(const char *file)
{
    struct stat st;

    if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if (access(file, R_OK) == 0)
        return 0;
    fprintf(stderr, "flashpached: cannot read configuration file %s: %s\n", file,
            strerror(errno));
    return -1;
}

static int parse_file(cfg_t *cfg, const char *file)
{
    cfg_set_validate_func(cfg, "user", check_user);
    cfg_set_validate_func(cfg, "group", check_group);
    if (file != NULL && (check_readable(file) == -1 || cfg_parse(cfg, file) != CFG_SUCCESS))
        return -1;
    return 0;
}

static int parse_fd(cfg_t *cfg, int fd)
{
    FILE *f = fdopen(fd, "r");
    int rc = f != NULL && cfg_parse_fp(cfg, f) == CFG_SUCCESS ? 0 : -1;

    if (f != NULL)
        fclose(f);
    else
        close(fd);
    return rc;
}

static int override(cfg_t *cfg, char *const *overrides, size_t n)
{
    /* From here on there is no file and line to name. */
    for (size_t i = 0; i < n; i++) {
        free(cfg->filename);
        cfg->filename = NULL;
        if (set_one(cfg, overrides[i]) == -1)
            return -1;
    }
    return 0;
}

static int take_user(struct fp_conf *c)
{
    const struct passwd *pw = getpwnam(c->user);

    if (pw == NULL)
        return -1;
    if (c->uid != 0 && c->uid != pw->pw_uid) {
        fprintf(stderr, "flashpached: started as uid %u, which is not %s, and is not root: "
                "it cannot become that user\n", (unsigned)c->uid, c->user);
        return -1;
    }
    if (pw->pw_uid == 0) {
        fprintf(stderr, "flashpached: user = \"%s\" is root: it must be the unprivileged "
                "user that Apache's children run as\n", c->user);
        return -1;
    }
    c->uid = pw->pw_uid;
    c->gid = pw->pw_gid;
    return 0;
}

static int take_identity(struct fp_conf *c)
{
    const struct group *gr;

    c->uid = geteuid();
    c->gid = getegid();
    if (c->user[0] == '\0' && c->uid == 0) {
        fprintf(stderr, "flashpached: started as root: set user = \"...\" to the user that "
                "Apache's children run as (www-data, apache)\n");
        return -1;
    }
    if (c->user[0] != '\0' && take_user(c) == -1)
        return -1;
    if (c->group[0] == '\0')
        return 0;
    gr = getgrnam(c->group);
    if (gr == NULL)
        return -1;
    c->gid = gr->gr_gid;
    return 0;
}

static int take_roots(struct loaded *l)
{
    unsigned n = cfg_size(l->cfg, "roots");

    l->roots = calloc(n + 1, sizeof(*l->roots));
    if (l->roots == NULL)
        return -1;
    for (unsigned i = 0; i < n; i++)
        l->roots[i] = cfg_getnstr(l->cfg, "roots", i);
    l->conf.roots = l->roots;
    return 0;
}

static int watch_of(cfg_t *cfg)
{
    int by = FP_BY_AUTO;

    fp_watch_by_parse(cfg_getstr(cfg, "watch"), &by);   /* has been checked */
    return by;
}

static int take_mounts(struct loaded *l)
{
    const unsigned n = cfg_size(l->cfg, "mount");

    l->mounts = calloc(n + 1, sizeof(*l->mounts));
    if (l->mounts == NULL)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        cfg_t *section = cfg_getnsec(l->cfg, "mount", i);

        l->mounts[i].point = cfg_title(section);
        l->mounts[i].by = watch_of(section);
        l->mounts[i].ttl_ms = cfg_getint(section, "ttl_ms");
        l->mounts[i].stale_if_error_ms = cfg_getint(section, "stale_if_error_ms");
    }
    l->conf.mounts = l->mounts;
    l->conf.n_mounts = n;
    return 0;
}

static void take_numbers(struct fp_conf *c, cfg_t *cfg)
{
    c->helpers = (unsigned)cfg_getint(cfg, "helpers");
    c->lookup_timeout_ms = (uint32_t)cfg_getint(cfg, "lookup_timeout_ms");
    c->mount_helpers = (unsigned)cfg_getint(cfg, "mount_helpers");
    c->mount_timeout_ms = (uint32_t)cfg_getint(cfg, "mount_timeout_ms");
    c->slow_log_ms = (uint32_t)cfg_getint(cfg, "slow_log_ms");
    c->ttl_ms = (uint32_t)cfg_getint(cfg, "ttl_ms");
    c->watched_ttl_ms = (uint32_t)cfg_getint(cfg, "watched_ttl_ms");
    c->stale_if_error_ms = (uint32_t)cfg_getint(cfg, "stale_if_error_ms");
    c->read_ahead = (size_t)cfg_getint(cfg, "read_ahead");
    c->content_file_max = (uint32_t)cfg_getint(cfg, "content_file_max");
    c->max_content_bytes = (size_t)cfg_getint(cfg, "max_content_bytes");
    c->max_entries = (size_t)cfg_getint(cfg, "max_entries");
    c->max_absent = (size_t)cfg_getint(cfg, "max_absent");
    c->max_bytes = (size_t)cfg_getint(cfg, "max_bytes");
    c->max_descriptors = (size_t)cfg_getint(cfg, "max_descriptors");
    c->max_connections = (size_t)cfg_getint(cfg, "max_connections");
    c->max_queue = (size_t)cfg_getint(cfg, "max_queue");
    c->max_inflight = (size_t)cfg_getint(cfg, "max_inflight");
}

static int take(struct loaded *l)
{
    struct fp_conf *c = &l->conf;
    cfg_t *cfg = l->cfg;

    c->socket = cfg_getstr(cfg, "socket");
    c->user = cfg_getstr(cfg, "user");
    c->group = cfg_getstr(cfg, "group");
    c->seccomp = cfg_getbool(cfg, "seccomp");
    c->pid_file = cfg_getstr(cfg, "pid_file");
    c->log = cfg_getstr(cfg, "log");
    c->log_level = fp_log_level_parse(cfg_getstr(cfg, "log_level"));
    c->watch = watch_of(cfg);
    take_numbers(c, cfg);
    c->fleet = fp_conf_fleet_take(cfg, &l->fleet) ? &l->fleet : NULL;
    return take_roots(l) == -1 || take_mounts(l) == -1 ? -1 : 0;
}

static struct loaded *create(void)
{
    struct loaded *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return NULL;
    l->cfg = make_table();
    if (l->cfg == NULL) {
        free(l);
        return NULL;
    }
    return l;
}

struct fp_conf *fp_conf_load(const char *file, char *const *overrides, size_t n)
{
    struct loaded *l = create();
    struct fp_conf *conf = l != NULL ? &l->conf : NULL;

    if (l != NULL && (parse_file(l->cfg, file) == -1 || override(l->cfg, overrides, n) == -1
                      || take(l) == -1 || take_identity(conf) == -1))
        fp_conf_destroy(&conf);
    return conf;
}

struct fp_conf *fp_conf_reload(int fd, const struct fp_conf *now, char *const *overrides,
                               size_t n)
{
    struct loaded *l = create();
    struct fp_conf *conf = l != NULL ? &l->conf : NULL;

    if (l == NULL) {
        close(fd);
        return NULL;
    }
    conf->uid = now->uid;
    conf->gid = now->gid;
    if (parse_fd(l->cfg, fd) == -1 || override(l->cfg, overrides, n) == -1 || take(l) == -1)
        fp_conf_destroy(&conf);
    return conf;
}

void fp_conf_destroy(struct fp_conf **conf)
{
    struct loaded *l = (struct loaded *)*conf;

    if (l == NULL)
        return;
    if (l->cfg != NULL)
        cfg_free(l->cfg);
    free(l->roots);
    free(l->mounts);
    free(l);
    *conf = NULL;
}
