/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf.h"

#include <confuse.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "conf/conf_check.h"
#include "conf/conf_fleet.h"
#include "conf/conf_text.h"
#include "conf/mount_rule.h"
#include "wire/packet.h"

/* The public part is first, so that one pointer serves for both. */
struct loaded {
    struct fp_conf conf;
    cfg_t *cfg; /* owns the strings */
    const char **roots;
    struct fp_mount_rule *mounts;
    struct fp_fleet_settings fleet;
};

/* ---- the table of settings ---- */

enum kind { NUMBER, BOOLEAN, TEXT, WORD };
enum effect { RELOAD, RESTART }; /* when a changed setting takes effect */

struct setting {
    const char *key;
    size_t offset, size; /* of its field */
    enum effect effect;
    enum kind kind;
    long def, min, max;                            /* NUMBER; BOOLEAN has a default alone */
    const char *text;                              /* TEXT, WORD: the default */
    cfg_validate_callback_t check;                 /* TEXT; NULL: anything goes */
    bool (*parse)(const char *word, int *value_r); /* WORD; false: unknown */
    const char *words;                             /* WORD: the known ones, for a message */
};

static int check_socket(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *path = cfg_opt_getnstr(opt, 0);

    if (fp_conf_check_path(cfg, opt) == -1)
        return -1;
    if (strlen(path) <= FP_MAX_SOCKET_PATH)
        return 0;
    cfg_error(cfg,
              "socket path of %zu bytes is too long: a Unix-domain socket's path "
              "may have %zu, choose a shorter one: %s",
              strlen(path), FP_MAX_SOCKET_PATH, path);
    return -1;
}

static int check_log(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);

    if (strcmp(v, "stderr") == 0 || strcmp(v, "syslog") == 0)
        return 0;
    return fp_conf_check_path(cfg, opt);
}

static int check_warm_file(cfg_t *cfg, cfg_opt_t *opt)
{
    return cfg_opt_getnstr(opt, 0)[0] == '\0' ? 0 : fp_conf_check_path(cfg, opt);
}

static bool parse_log_level(const char *word, int *value_r)
{
    *value_r = fp_log_level_parse(word);
    return *value_r != -1;
}

/* clang-format off */
#define FIELD(type, name) offsetof(struct type, name), sizeof(((struct type *)NULL)->name)
#define NUMBER_OF(type, name, effect, def, min, max) \
    { #name, FIELD(type, name), effect, NUMBER, def, min, max, NULL, NULL, NULL, NULL }
#define TEXT_OF(name, effect, text, check) \
    { #name, FIELD(fp_conf, name), effect, TEXT, 0, 0, 0, text, check, NULL, NULL }
#define WORD_OF(type, key, name, text, parse, words) \
    { key, FIELD(type, name), RELOAD, WORD, 0, 0, 0, text, NULL, parse, words }
/* clang-format on */

static const struct setting settings[] = {
    TEXT_OF(socket, RESTART, FP_DEFAULT_SOCKET, check_socket),
    TEXT_OF(user, RESTART, "", NULL),
    TEXT_OF(group, RESTART, "", NULL),
    TEXT_OF(log, RELOAD, "stderr", check_log),
    WORD_OF(fp_conf, "log_level", log_level, "info", parse_log_level, "error, warning, info or debug"),
    WORD_OF(fp_conf, "watch", watch, "auto", fp_watch_by_parse, "auto, inotify or ttl"),
    TEXT_OF(warm_file, RESTART, "", check_warm_file),
    NUMBER_OF(fp_conf, warm_file_s, RESTART, 60, 0, 86400),
    { "seccomp", FIELD(fp_conf, seccomp), RESTART, BOOLEAN, true, 0, 0, NULL, NULL, NULL, NULL },
    NUMBER_OF(fp_conf, workers, RESTART, 64, 1, 256),
    NUMBER_OF(fp_conf, lookup_timeout_ms, RELOAD, 10000, 10, 600000),
    NUMBER_OF(fp_conf, ttl_ms, RELOAD, 3000, 1, 86400000),
    NUMBER_OF(fp_conf, negative_ttl_ms, RELOAD, 1000, 1, 86400000),
    NUMBER_OF(fp_conf, watched_ttl_ms, RELOAD, 600000, 1, 86400000),
    NUMBER_OF(fp_conf, stale_if_error_ms, RELOAD, 0, 0, 86400000),
    NUMBER_OF(fp_conf, slow_log_ms, RELOAD, 1000, 0, 600000),
    NUMBER_OF(fp_conf, mount_workers, RELOAD, 0, 0, 256),
    NUMBER_OF(fp_conf, mount_timeout_ms, RELOAD, 2000, 100, 600000),
    NUMBER_OF(fp_conf, read_ahead, RESTART, 65536, 0, 16777216),
    NUMBER_OF(fp_conf, content_file_max, RELOAD, 16384, 0, 1048576),
    NUMBER_OF(fp_conf, max_content_bytes, RELOAD, -1, 0, 1099511627776),
    NUMBER_OF(fp_conf, max_answer_bytes, RELOAD, -1, 262144, 1099511627776),
    NUMBER_OF(fp_conf, max_entries, RELOAD, 200000, 16, 100000000),
    NUMBER_OF(fp_conf, max_negative, RELOAD, 200000, 16, 100000000),
    NUMBER_OF(fp_conf, max_bytes, RELOAD, -1, 1048576, 1099511627776),
    NUMBER_OF(fp_conf, max_descriptors, RELOAD, 0, 0, 100000000),
    NUMBER_OF(fp_conf, max_connections, RESTART, 4096, 1, 1000000),
    NUMBER_OF(fp_conf, max_queue, RELOAD, 4096, 1, 1000000),
    NUMBER_OF(fp_conf, max_inflight, RELOAD, 4096, 4, 1000000),
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* Settings of a mount section.  The defaults stand for the general setting (mount_rule.h). */
static const struct setting mount_settings[] = {
    WORD_OF(fp_mount_rule, "watch", by, "auto", fp_watch_by_parse, "auto, inotify or ttl"),
    NUMBER_OF(fp_mount_rule, ttl_ms, RELOAD, -1, 1, 86400000),
    NUMBER_OF(fp_mount_rule, stale_if_error_ms, RELOAD, -1, 0, 86400000),
    NUMBER_OF(fp_mount_rule, negative_ttl_ms, RELOAD, -1, 1, 86400000),
};
#define MOUNT_SETTINGS (sizeof(mount_settings) / sizeof(mount_settings[0]))

/* Settings of earlier releases, and what to write instead. */
static const struct {
    const char *key, *instead;
    enum kind kind;
} gone[] = {
    { "helpers", "write workers", NUMBER },
    { "mount_helpers", "write mount_workers", NUMBER },
    { "max_absent", "write max_negative", NUMBER },
    { "pid_file", "leave it out: who started flashpached knows its number", TEXT },
};
#define GONE (sizeof(gone) / sizeof(gone[0]))

/* The row of that section's key, which has one. */
static const struct setting *row_of(cfg_t *cfg, const char *key)
{
    const struct setting *s = strcmp(cfg_name(cfg), "mount") == 0 ? mount_settings : settings;

    for (; strcmp(s->key, key) != 0; s++)
        ;
    return s;
}

/* ---- checks, of the value that was given last ---- */

static int check_setting(cfg_t *cfg, cfg_opt_t *opt)
{
    const struct setting *s = row_of(cfg, opt->name);
    const unsigned last = cfg_opt_size(opt) - 1;
    int value;
    long v;

    switch (s->kind) {
    case NUMBER:
        v = cfg_opt_getnint(opt, last);
        if (v >= s->min && v <= s->max)
            return 0;
        cfg_error(cfg, "%s = %ld is out of range: use %ld to %ld", opt->name, v, s->min, s->max);
        return -1;
    case WORD:
        if (s->parse(cfg_opt_getnstr(opt, last), &value))
            return 0;
        cfg_error(cfg, "%s = \"%s\" is unknown: use %s", opt->name, cfg_opt_getnstr(opt, last), s->words);
        return -1;
    default: return s->check != NULL ? s->check(cfg, opt) : 0;
    }
}

/* The section's keys have been checked; the title is left. */
static int check_mount(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *point = cfg_title(cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1));

    if (fp_path_is_normal(point, strlen(point)))
        return 0;
    cfg_error(cfg,
              "mount \"%s\" is no absolute path without \"//\", \".\", \"..\" and "
              "without a slash at its end",
              point);
    return -1;
}

/* Checks user and group. */
static int check_name(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);

    if (strcmp(opt->name, "user") == 0 ? getpwnam(v) != NULL : getgrnam(v) != NULL)
        return 0;
    cfg_error(cfg, "%s \"%s\" does not exist: name the %s that Apache's children run as", opt->name, v,
              opt->name);
    return -1;
}

static void complain(cfg_t *cfg, const char *format, va_list ap)
{
    fprintf(stderr, "flashpached: ");
    if (cfg != NULL && cfg->filename != NULL)
        fprintf(stderr, "%s:%d: ", cfg->filename, cfg->line);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
}

static int check_gone(cfg_t *cfg, cfg_opt_t *opt)
{
    size_t i = 0;

    while (strcmp(gone[i].key, opt->name) != 0)
        i++;
    cfg_error(cfg, "%s is no setting any more: %s", opt->name, gone[i].instead);
    return -1;
}

/* libconfuse gets no defaults: so an option without a value was not given. */
static cfg_opt_t make_option(const char *key, enum kind kind)
{
    const cfg_opt_t number = CFG_INT_CB(key, 0, CFGF_NODEFAULT, fp_conf_parse_number);
    const cfg_opt_t boolean = CFG_BOOL(key, cfg_false, CFGF_NODEFAULT);
    const cfg_opt_t text = CFG_STR(key, NULL, CFGF_NODEFAULT);
    cfg_opt_t option = kind == NUMBER ? number : kind == BOOLEAN ? boolean : text;

    option.validcb = check_setting;
    return option;
}

static cfg_t *make_table(void)
{
    cfg_opt_t mount_opts[MOUNT_SETTINGS + 1] = { 0 }, opts[SETTINGS + GONE + 4] = { 0 };
    const cfg_opt_t others[] = {
        CFG_STR_LIST("roots", "{}", CFGF_NONE),
        CFG_SEC("mount", mount_opts, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
        fp_conf_fleet_section(),
        CFG_END(),
    };
    cfg_t *cfg;
    size_t n = 0;

    for (size_t i = 0; i < MOUNT_SETTINGS; i++)
        mount_opts[i] = make_option(mount_settings[i].key, mount_settings[i].kind);
    mount_opts[MOUNT_SETTINGS] = others[3];
    for (size_t i = 0; i < SETTINGS; i++)
        opts[n++] = make_option(settings[i].key, settings[i].kind);
    for (size_t i = 0; i < GONE; i++) {
        opts[n] = make_option(gone[i].key, gone[i].kind);
        opts[n++].validcb = check_gone;
    }
    memcpy(opts + n, others, sizeof(others));
    cfg = cfg_init(opts, CFGF_NONE);
    if (cfg == NULL)
        return NULL;
    cfg_set_error_function(cfg, complain);
    cfg_set_validate_func(cfg, "mount", check_mount);
    cfg_set_validate_func(cfg, "roots", fp_conf_check_path);
    fp_conf_fleet_check(cfg);
    return cfg;
}

/* ---- file and overrides ---- */

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
        fprintf(stderr, "flashpached: \"%s\": sections can only be given in the file\n", setting);
        return -1;
    }
    opt = cfg_getopt(cfg, key);
    if (opt == NULL)
        return -1; /* libconfuse has said why */
    if (cfg_setopt(cfg, opt, eq + 1) == NULL)
        return -1;
    return opt->validcb != NULL ? opt->validcb(cfg, opt) : 0;
}

/* Parses the text of a file, which is checked before; name is for messages. */
static int parse_text(cfg_t *cfg, char *text, size_t len, const char *name)
{
    cfg_t *fleet = cfg_getsec(cfg, "fleet");
    FILE *f;
    int rc;

    if (!fp_conf_text_check(text, len, name))
        return -1;
    if (len == 0)
        return 0;
    f = fmemopen(text, len, "r");
    /* Sections of which there may be more get the name from libconfuse. */
    cfg->filename = strdup(name);
    fleet->filename = strdup(name);
    rc = f != NULL && cfg->filename != NULL && fleet->filename != NULL && cfg_parse_fp(cfg, f) == CFG_SUCCESS
             ? 0
             : -1;
    if (f != NULL)
        fclose(f);
    return rc;
}

/* Takes the descriptor; -1: errno says why there is none. */
static int parse_fd(cfg_t *cfg, int fd, const char *name)
{
    size_t len;
    char *text = fd != -1 ? fp_conf_text_read(fd, &len) : NULL;
    const int rc = text != NULL ? parse_text(cfg, text, len, name) : -1;

    if (text == NULL)
        fprintf(stderr, "flashpached: cannot read configuration file %s: %s\n", name, strerror(errno));
    free(text);
    fp_close(&fd);
    return rc;
}

static int parse_file(cfg_t *cfg, const char *file)
{
    cfg_set_validate_func(cfg, "user", check_name);
    cfg_set_validate_func(cfg, "group", check_name);
    return file == NULL ? 0 : parse_fd(cfg, open(file, O_RDONLY | O_CLOEXEC), file);
}

static int override(cfg_t *cfg, char *const *overrides, size_t n)
{
    /* The command line's roots take the place of the file's. */
    cfg_getopt(cfg, "roots")->flags |= CFGF_RESET;
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
        fprintf(stderr,
                "flashpached: started as uid %u, which is not %s, and is not root: "
                "it cannot become that user\n",
                (unsigned)c->uid, c->user);
        return -1;
    }
    if (pw->pw_uid == 0) {
        fprintf(stderr,
                "flashpached: user = \"%s\" is root: it must be the unprivileged "
                "user that Apache's children run as\n",
                c->user);
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

/* Sets the fields of the struct at to; the given values have been checked. */
static void take_settings(cfg_t *cfg, const struct setting *s, size_t n, void *to)
{
    for (; n > 0; n--, s++) {
        cfg_opt_t *opt = cfg_getopt(cfg, s->key);
        const bool given = cfg_opt_size(opt) > 0;
        void *field = (char *)to + s->offset;
        uint32_t narrow;
        long value;

        switch (s->kind) {
        case NUMBER:
            value = given ? cfg_opt_getnint(opt, 0) : s->def;
            narrow = (uint32_t)value;
            memcpy(field, s->size == sizeof(narrow) ? (const void *)&narrow : &value, s->size);
            break;
        case BOOLEAN: *(bool *)field = given ? cfg_opt_getnbool(opt, 0) : s->def; break;
        case TEXT: *(const char **)field = given ? cfg_opt_getnstr(opt, 0) : s->text; break;
        case WORD: s->parse(given ? cfg_opt_getnstr(opt, 0) : s->text, field);
        }
    }
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
        take_settings(section, mount_settings, MOUNT_SETTINGS, &l->mounts[i]);
    }
    l->conf.mounts = l->mounts;
    l->conf.n_mounts = n;
    return 0;
}

static int take(struct loaded *l)
{
    take_settings(l->cfg, settings, SETTINGS, &l->conf);
    l->conf.fleet = fp_conf_fleet_take(l->cfg, &l->fleet) ? &l->fleet : NULL;
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

static void warn_of_timeouts(const struct fp_conf *conf)
{
    if (conf->lookup_timeout_ms < conf->mount_timeout_ms)
        fprintf(
            stderr,
            "flashpached: lookup_timeout_ms (%u) is below mount_timeout_ms (%u): workers that wait for a slow "
            "file system are killed before it counts as hung; raise the one or lower the other\n",
            conf->lookup_timeout_ms, conf->mount_timeout_ms);
}

struct fp_conf *fp_conf_load(const char *file, char *const *overrides, size_t n)
{
    struct loaded *l = create();
    struct fp_conf *conf = l != NULL ? &l->conf : NULL;

    if (l != NULL
        && (parse_file(l->cfg, file) == -1 || override(l->cfg, overrides, n) == -1 || take(l) == -1
            || take_identity(conf) == -1))
        fp_conf_destroy(&conf);
    if (conf != NULL)
        warn_of_timeouts(conf);
    return conf;
}

struct fp_conf *fp_conf_read(const char *file, bool *socket_given_r)
{
    struct loaded *l = create();
    struct fp_conf *conf = l != NULL ? &l->conf : NULL;

    *socket_given_r = false;
    if (l != NULL && (parse_file(l->cfg, file) == -1 || take(l) == -1))
        fp_conf_destroy(&conf);
    if (conf != NULL) {
        *socket_given_r = cfg_size(l->cfg, "socket") > 0;
        warn_of_timeouts(conf);
    }
    return conf;
}

struct fp_conf *fp_conf_reload(int fd, const struct fp_conf *now, char *const *overrides, size_t n)
{
    struct loaded *l = create();
    struct fp_conf *conf = l != NULL ? &l->conf : NULL;

    if (l == NULL) {
        close(fd);
        return NULL;
    }
    conf->uid = now->uid;
    conf->gid = now->gid;
    if (parse_fd(l->cfg, fd, "the configuration") == -1 || override(l->cfg, overrides, n) == -1
        || take(l) == -1)
        fp_conf_destroy(&conf);
    return conf;
}

static bool is_same(const struct setting *s, const struct fp_conf *a, const struct fp_conf *b)
{
    const char *one = (const char *)a + s->offset, *other = (const char *)b + s->offset;

    if (s->kind == TEXT)
        return strcmp(*(const char *const *)one, *(const char *const *)other) == 0;
    return memcmp(one, other, s->size) == 0;
}

bool fp_conf_needs_restart(const struct fp_conf *now, const struct fp_conf *new, char *keys, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i <= SETTINGS && len < size; i++) {
        const struct setting *s = &settings[i];

        if (i < SETTINGS ? s->effect == RELOAD || is_same(s, now, new)
                         : fp_conf_roots_equal(now->roots, new->roots))
            continue;
        len += (size_t)snprintf(keys + len, size - len, "%s%s", len > 0 ? ", " : "",
                                i < SETTINGS ? s->key : "roots");
    }
    return len > 0;
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
