/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "conf/conf_fleet.h"
#include "conf/conf_text.h"
#include "conf/mount_rule.h"
#include "wire/packet.h"

/* The public part is first, so that one pointer serves for both. */
struct loaded {
    struct fp_conf conf;
    char *text;     /* the file's; most strings lie there */
    uint64_t given; /* one bit for each row of settings that the file has */
    struct fp_mount_rule *mounts;
    struct fp_fleet_settings fleet;
};

/* ---- the table of settings ---- */

enum kind { NUMBER, BOOLEAN, TEXT, WORD, LIST /* of paths */ };
enum effect { RELOAD, RESTART }; /* when a changed setting takes effect */

/* Says what is wrong with a value.  True: nothing is. */
typedef bool check_value(const struct fp_conf_text *t, const char *key, const char *value);

struct setting {
    const char *key;
    size_t offset, size; /* of its field */
    enum effect effect;
    enum kind kind;
    long def, min, max;                            /* NUMBER; BOOLEAN has a default alone */
    const char *text;                              /* TEXT, WORD: the default */
    check_value *check;                            /* TEXT; NULL: anything goes */
    bool (*parse)(const char *word, int *value_r); /* WORD; false: unknown */
    const char *words;                             /* WORD: the known ones, for a message; NUMBER: its units */
};

static bool check_path(const struct fp_conf_text *t, const char *key, const char *value)
{
    return fp_path_is_normal(value, strlen(value))
           || fp_conf_mistake(t,
                              "%s = \"%s\" is not an absolute path without \"//\", \".\", \"..\" and "
                              "without a slash at its end",
                              key, value);
}

static bool check_socket(const struct fp_conf_text *t, const char *key, const char *value)
{
    if (!check_path(t, key, value))
        return false;
    return strlen(value) <= FP_MAX_SOCKET_PATH
           || fp_conf_mistake(t,
                              "socket path of %zu bytes is too long: a Unix-domain socket's path "
                              "may have %zu, choose a shorter one: %s",
                              strlen(value), FP_MAX_SOCKET_PATH, value);
}

static bool check_log(const struct fp_conf_text *t, const char *key, const char *value)
{
    return strcmp(value, "stderr") == 0 || strcmp(value, "syslog") == 0 || check_path(t, key, value);
}

static bool check_path_or_none(const struct fp_conf_text *t, const char *key, const char *value)
{
    return value[0] == '\0' || check_path(t, key, value);
}

static bool check_name(const struct fp_conf_text *t, const char *key, const char *value)
{
    if (!t->looks_up || (strcmp(key, "user") == 0 ? getpwnam(value) != NULL : getgrnam(value) != NULL))
        return true;
    return fp_conf_mistake(t, "%s \"%s\" does not exist: name the %s that Apache's children run as", key, value,
                           key);
}

static bool parse_log_level(const char *word, int *value_r)
{
    *value_r = fp_log_level_parse(word);
    return *value_r != -1;
}

static bool parse_watch(const char *word, int *value_r)
{
    static const char *const words[] = { "auto", "ttl", "inotify" };

    for (*value_r = FP_BY_AUTO; *value_r <= FP_BY_INOTIFY; ++*value_r) {
        if (strcmp(word, words[*value_r - FP_BY_AUTO]) == 0)
            return true;
    }
    return false;
}

static bool parse_boolean(const char *word, int *value_r)
{
    *value_r = strcmp(word, "true") == 0 || strcmp(word, "yes") == 0 || strcmp(word, "on") == 0;
    return *value_r != 0 || strcmp(word, "false") == 0 || strcmp(word, "no") == 0 || strcmp(word, "off") == 0;
}

/* clang-format off */
#define FIELD(type, name) offsetof(struct type, name), sizeof(((struct type *)NULL)->name)
#define NUMBER_OF(type, name, effect, def, min, max) \
    { #name, FIELD(type, name), effect, NUMBER, def, min, max, NULL, NULL, NULL, NULL }
#define BYTES_OF(type, name, effect, def, min, max) \
    { #name, FIELD(type, name), effect, NUMBER, def, min, max, NULL, NULL, NULL, "KMG" }
#define BOOLEAN_OF(type, name, effect, def) \
    { #name, FIELD(type, name), effect, BOOLEAN, def, 0, 0, NULL, NULL, parse_boolean, "true or false" }
#define TEXT_OF(type, name, effect, text, check) \
    { #name, FIELD(type, name), effect, TEXT, 0, 0, 0, text, check, NULL, NULL }
#define LIST_OF(type, name) { #name, FIELD(type, name), RESTART, LIST, 0, 0, 0, NULL, check_path, NULL, NULL }
#define WORD_OF(type, key, name, text, parse, words) \
    { key, FIELD(type, name), RELOAD, WORD, 0, 0, 0, text, NULL, parse, words }
#define ROWS(rows) rows, sizeof(rows) / sizeof((rows)[0])
/* clang-format on */

/* At most 64: see loaded.given. */
static const struct setting settings[] = {
    TEXT_OF(fp_conf, socket, RESTART, FP_DEFAULT_SOCKET, check_socket),
    TEXT_OF(fp_conf, user, RESTART, "", check_name),
    TEXT_OF(fp_conf, group, RESTART, "", check_name),
    TEXT_OF(fp_conf, log, RELOAD, "stderr", check_log),
    WORD_OF(fp_conf, "log_level", log_level, "info", parse_log_level, "error, warning, info or debug"),
    WORD_OF(fp_conf, "watch", watch, "auto", parse_watch, "auto, inotify or ttl"),
    TEXT_OF(fp_conf, warm_file, RESTART, "", check_path_or_none),
    NUMBER_OF(fp_conf, warm_file_s, RESTART, 60, 0, 86400),
    BOOLEAN_OF(fp_conf, seccomp, RESTART, true),
    NUMBER_OF(fp_conf, workers, RESTART, 64, 1, 256),
    NUMBER_OF(fp_conf, lookup_timeout_ms, RELOAD, 10000, 10, 600000),
    NUMBER_OF(fp_conf, ttl_ms, RELOAD, 3000, 1, 86400000),
    NUMBER_OF(fp_conf, negative_ttl_ms, RELOAD, 1000, 1, 86400000),
    NUMBER_OF(fp_conf, watched_ttl_ms, RELOAD, 600000, 1, 86400000),
    NUMBER_OF(fp_conf, stale_if_error_ms, RELOAD, 0, 0, 86400000),
    NUMBER_OF(fp_conf, mount_workers, RELOAD, 0, 0, 256),
    NUMBER_OF(fp_conf, mount_timeout_ms, RELOAD, 2000, 100, 600000),
    NUMBER_OF(fp_conf, content_file_max, RELOAD, 16384, 0, 1048576),
    BYTES_OF(fp_conf, memory, RESTART, -1, 212992, 1099511627776),
    NUMBER_OF(fp_conf, max_connections, RESTART, 4096, 1, 1000000),
    LIST_OF(fp_conf, roots),
};

/* Settings of a mount section.  The defaults stand for the general setting (mount_rule.h). */
static const struct setting mount_settings[] = {
    WORD_OF(fp_mount_rule, "watch", by, "auto", parse_watch, "auto, inotify or ttl"),
    NUMBER_OF(fp_mount_rule, ttl_ms, RELOAD, -1, 1, 86400000),
    NUMBER_OF(fp_mount_rule, stale_if_error_ms, RELOAD, -1, 0, 86400000),
    NUMBER_OF(fp_mount_rule, negative_ttl_ms, RELOAD, -1, 1, 86400000),
};

static const struct setting fleet_settings[] = {
    TEXT_OF(fp_fleet_settings, url, RELOAD, "", fp_conf_fleet_check_url),
    TEXT_OF(fp_fleet_settings, user, RELOAD, "", fp_conf_fleet_check_user),
    TEXT_OF(fp_fleet_settings, password_file, RELOAD, "", check_path),
    TEXT_OF(fp_fleet_settings, name, RELOAD, "default", fp_conf_fleet_check_name),
    BOOLEAN_OF(fp_fleet_settings, publish_changes, RELOAD, false),
    NUMBER_OF(fp_fleet_settings, stream_max, RELOAD, 10000, 1, 10000000),
    LIST_OF(fp_fleet_settings, roots),
};

static const struct section {
    const char *name; /* NULL: the file itself */
    const struct setting *rows;
    size_t n;
} whole = { NULL, ROWS(settings) }, mount = { "mount", ROWS(mount_settings) },
  fleet = { "fleet", ROWS(fleet_settings) };

#define IS_MEMORY "set memory, which is divided among all tables"
#define IS_FIXED  "leave it out: 4096 lookups may wait or be under way"

/* Settings of earlier releases, and what to write instead. */
static const struct {
    const char *key, *instead;
} gone[] = {
    { "helpers", "write workers" },
    { "mount_helpers", "write mount_workers" },
    { "max_absent", IS_MEMORY },
    { "max_negative", IS_MEMORY },
    { "max_entries", IS_MEMORY },
    { "max_bytes", IS_MEMORY },
    { "max_content_bytes", IS_MEMORY },
    { "max_answer_bytes", IS_MEMORY },
    { "max_descriptors", "set the limit on open files instead (LimitNOFILE=, ulimit -n)" },
    { "max_queue", IS_FIXED },
    { "max_inflight", IS_FIXED },
    { "slow_log_ms", "leave it out: every lookup that takes a second is logged" },
    { "read_ahead", "leave it out: workers read the first 64 KiB of a file" },
    { "pid_file", "leave it out: the program that started flashpached knows its process number" },
};

/* ---- values ---- */

static const char *const no_paths[] = { NULL };

static bool store_number(const struct fp_conf_text *t, const struct setting *s, const char *value, void *field)
{
    const char *digits = value + (value[0] == '-');
    const size_t len = strspn(digits, "0123456789");
    const char *unit = s->words != NULL && digits[len] != '\0' ? strchr(s->words, digits[len]) : NULL;
    const int shift = unit != NULL ? 10 * (int)(unit - s->words + 1) : 0;
    uint32_t narrow;
    long v;

    if (len == 0 || digits[len + (unit != NULL)] != '\0' || (digits[0] == '0' && len > 1))
        return fp_conf_mistake(t, "%s = \"%s\" is not a decimal number: use digits, without a zero before them%s",
                               s->key, value, s->words != NULL ? ", and K, M or G" : " or a unit");
    errno = 0;
    v = strtol(value, NULL, 10);
    if (errno != 0 || v < 0 || v > s->max >> shift || (v <<= shift) < s->min)
        return fp_conf_mistake(t, "%s = %s is out of range: use %ld to %ld", s->key, value, s->min, s->max);
    narrow = (uint32_t)v;
    memcpy(field, s->size == sizeof(narrow) ? (const void *)&narrow : &v, s->size);
    return true;
}

static bool add_path(const struct fp_conf_text *t, const struct setting *s, const char *value,
                     const char *const **list)
{
    const char **more;
    size_t n = 0;

    for (; (*list)[n] != NULL; n++) {
        if (strcmp((*list)[n], value) == 0)
            return fp_conf_mistake(t, "%s has \"%s\" twice: leave one out", s->key, value);
    }
    more = realloc(*list == no_paths ? NULL : (void *)(uintptr_t)*list, (n + 2) * sizeof(*more));
    if (more == NULL)
        return fp_conf_mistake(t, "out of memory");
    more[n] = value;
    more[n + 1] = NULL;
    *list = more;
    return true;
}

static void drop_paths(const char *const **list)
{
    if (*list != no_paths)
        free((void *)(uintptr_t)*list);
    *list = no_paths;
}

/* Checks the value and sets the field of the struct at to. */
static bool store(const struct fp_conf_text *t, const struct setting *s, const char *value, void *to)
{
    void *field = (char *)to + s->offset;
    int word;

    switch (s->kind) {
    case NUMBER: return store_number(t, s, value, field);
    case BOOLEAN:
    case WORD:
        if (!s->parse(value, &word))
            return fp_conf_mistake(t, "%s = \"%s\" is unknown: use %s", s->key, value, s->words);
        if (s->kind == WORD)
            *(int *)field = word;
        else
            *(bool *)field = word != 0;
        return true;
    default:
        if (s->check != NULL && !s->check(t, s->key, value))
            return false;
        if (s->kind == LIST)
            return add_path(t, s, value, field);
        *(const char **)field = value;
        return true;
    }
}

static void set_defaults(const struct section *in, void *to)
{
    for (const struct setting *s = in->rows; s < in->rows + in->n; s++) {
        void *field = (char *)to + s->offset;
        const uint32_t narrow = (uint32_t)s->def;

        switch (s->kind) {
        case NUMBER: memcpy(field, s->size == sizeof(narrow) ? (const void *)&narrow : &s->def, s->size); break;
        case BOOLEAN: *(bool *)field = s->def; break;
        case TEXT: *(const char **)field = s->text; break;
        case WORD: s->parse(s->text, field); break;
        case LIST: *(const char *const **)field = no_paths;
        }
    }
}

static bool are_same_paths(const char *const *a, const char *const *b)
{
    while (*a != NULL && *b != NULL && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return *a == NULL && *b == NULL;
}

static bool is_same(const struct setting *s, const void *a, const void *b)
{
    const char *one = (const char *)a + s->offset, *other = (const char *)b + s->offset;

    if (s->kind == LIST)
        return are_same_paths(*(const char *const *const *)one, *(const char *const *const *)other);
    if (s->kind == TEXT)
        return strcmp(*(const char *const *)one, *(const char *const *)other) == 0;
    return memcmp(one, other, s->size) == 0;
}

/* ---- the file: KEY = VALUE, KEY = { LIST }, KEY { SECTION }, KEY TITLE { SECTION } ---- */

static bool is_word(const char *word, size_t len, const char *key)
{
    return strlen(key) == len && memcmp(word, key, len) == 0;
}

/* NULL: the section has no such setting. */
static const struct setting *find(const struct section *in, const char *key, size_t len)
{
    for (size_t i = 0; i < in->n; i++) {
        if (is_word(key, len, in->rows[i].key))
            return &in->rows[i];
    }
    return NULL;
}

static bool is_unknown(const struct fp_conf_text *t, const char *key, size_t len)
{
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        if (is_word(key, len, gone[i].key))
            return fp_conf_mistake(t, "%s is no longer a setting: %s", gone[i].key, gone[i].instead);
    }
    return fp_conf_mistake(t, "\"%.*s\" is no setting %s", (int)len, key,
                           t->file != NULL ? "here" : "of the command line: sections can only be given in the file");
}

/* Says that the token does not belong behind that key. */
static bool is_unexpected(const struct fp_conf_text *t, enum fp_conf_token token, const char *key, size_t len)
{
    if (token == FP_CONF_MISTAKE)
        return false;
    if (token == FP_CONF_END)
        return fp_conf_mistake(t, "%.*s: unexpected end of file", (int)len, key);
    return fp_conf_mistake(t, "%.*s: unexpected \"%.*s\" behind it", (int)len, key, (int)t->token_len, t->token);
}

static bool is_sign(const struct fp_conf_text *t, enum fp_conf_token token, char sign)
{
    return token == FP_CONF_SIGN && *t->token == sign;
}

static bool is_value(enum fp_conf_token token)
{
    return token == FP_CONF_WORD || token == FP_CONF_QUOTED;
}

/* Takes what stands behind the equal sign. */
static bool take_value(struct fp_conf_text *t, const struct setting *s, void *to)
{
    const size_t len = strlen(s->key);
    enum fp_conf_token token = fp_conf_text_next(t);

    if (s->kind != LIST)
        return is_value(token) ? store(t, s, fp_conf_text_value(t, token), to)
                               : is_unexpected(t, token, s->key, len);
    if (!is_sign(t, token, '{'))
        return is_unexpected(t, token, s->key, len);
    for (token = fp_conf_text_next(t); is_value(token); token = fp_conf_text_next(t)) {
        if (!store(t, s, fp_conf_text_value(t, token), to))
            return false;
        token = fp_conf_text_next(t);
        if (!is_sign(t, token, ','))
            break;
    }
    return is_sign(t, token, '}') || is_unexpected(t, token, s->key, len);
}

static bool take_settings(struct fp_conf_text *t, struct loaded *l, const struct section *in, void *to,
                          uint64_t *given);

/* Takes a mount section; token: the one behind its key. */
static bool take_mount(struct fp_conf_text *t, struct loaded *l, enum fp_conf_token token)
{
    struct fp_conf *c = &l->conf;
    struct fp_mount_rule *more, *m;
    uint64_t given = 0;

    if (!is_value(token))
        return is_unexpected(t, token, "mount", strlen("mount"));
    more = realloc(l->mounts, (c->n_mounts + 1) * sizeof(*more));
    if (more == NULL)
        return fp_conf_mistake(t, "out of memory");
    c->mounts = l->mounts = more;
    m = &more[c->n_mounts];
    m->point = fp_conf_text_value(t, token);
    set_defaults(&mount, m);
    if (!check_path(t, "mount", m->point))
        return false;
    for (size_t i = 0; i < c->n_mounts; i++) {
        if (strcmp(more[i].point, m->point) == 0)
            return fp_conf_mistake(t, "mount \"%s\" is given twice: leave one out", m->point);
    }
    c->n_mounts++;
    token = fp_conf_text_next(t);
    return is_sign(t, token, '{') ? take_settings(t, l, &mount, m, &given)
                                  : is_unexpected(t, token, "mount", strlen("mount"));
}

static bool take_fleet(struct fp_conf_text *t, struct loaded *l, enum fp_conf_token token)
{
    uint64_t given = 0;

    if (!is_sign(t, token, '{'))
        return is_unexpected(t, token, "fleet", strlen("fleet"));
    if (l->conf.fleet != NULL)
        return fp_conf_mistake(t, "fleet is given twice: leave one out");
    l->conf.fleet = &l->fleet;
    return take_settings(t, l, &fleet, &l->fleet, &given) && fp_conf_fleet_finish(t, &l->fleet);
}

/* Takes a setting, or a section of the file itself; the last token is its key. */
static bool take_one(struct fp_conf_text *t, struct loaded *l, const struct section *in, void *to,
                     uint64_t *given)
{
    const char *key = t->token;
    const size_t len = t->token_len;
    const struct setting *s = find(in, key, len);
    const enum fp_conf_token token = fp_conf_text_next(t);
    const uint64_t bit = s != NULL ? UINT64_C(1) << (s - in->rows) : 0;

    if (token == FP_CONF_MISTAKE)
        return false;
    if (in == &whole && is_word(key, len, mount.name))
        return take_mount(t, l, token);
    if (in == &whole && is_word(key, len, fleet.name))
        return take_fleet(t, l, token);
    if (s == NULL)
        return is_unknown(t, key, len);
    if (!is_sign(t, token, '=') && !is_sign(t, token, '+'))
        return is_unexpected(t, token, key, len);
    if ((*given & bit) != 0)
        return fp_conf_mistake(t, "%s is given twice: leave one out", s->key);
    *given |= bit;
    return take_value(t, s, to);
}

/* Takes all settings of a section, or of the file.  given: one bit for each of its rows. */
static bool take_settings(struct fp_conf_text *t, struct loaded *l, const struct section *in, void *to,
                          uint64_t *given)
{
    enum fp_conf_token token;

    while ((token = fp_conf_text_next(t)) == FP_CONF_WORD) {
        if (!take_one(t, l, in, to, given))
            return false;
    }
    if (in == &whole ? token == FP_CONF_END : is_sign(t, token, '}'))
        return true;
    if (token == FP_CONF_MISTAKE || token == FP_CONF_END)
        return is_unexpected(t, token, in->name, in->name != NULL ? strlen(in->name) : 0);
    return fp_conf_mistake(t, "unexpected \"%.*s\": the name of a setting has no quotes", (int)t->token_len,
                           t->token);
}

/* Takes the descriptor.  looks_up: names of users and groups are to exist. */
static bool take_file(struct loaded *l, int fd, const char *name, bool looks_up)
{
    struct fp_conf_text t = { .file = name, .looks_up = looks_up };
    size_t len;

    l->text = fd != -1 ? fp_text_read(fd, FP_MAX_CONF_TEXT, &len) : NULL;
    if (l->text == NULL)
        fp_conf_mistake(&(struct fp_conf_text){ .file = NULL }, "cannot read configuration file %s: %s", name,
                        strerror(errno));
    fp_close(&fd);
    return l->text != NULL && fp_conf_text_begin(&t, l->text, len)
           && take_settings(&t, l, &whole, &l->conf, &l->given);
}

/* ---- the command line ---- */

/* The command line's roots take the place of the file's. */
static bool override(struct loaded *l, char *const *overrides, size_t n, bool looks_up)
{
    const struct fp_conf_text t = { .looks_up = looks_up };
    bool has_roots = false;

    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(overrides[i], '=');
        const struct setting *s;

        if (eq == NULL || eq == overrides[i])
            return fp_conf_mistake(&t, "\"%s\": give a setting as KEY=VALUE", overrides[i]);
        s = find(&whole, overrides[i], (size_t)(eq - overrides[i]));
        if (s == NULL)
            return is_unknown(&t, overrides[i], (size_t)(eq - overrides[i]));
        if (s->kind == LIST && !has_roots)
            drop_paths(&l->conf.roots);
        has_roots = has_roots || s->kind == LIST;
        if (!store(&t, s, eq + 1, &l->conf))
            return false;
    }
    return true;
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

static void warn_of_timeouts(const struct fp_conf *conf)
{
    if (conf->lookup_timeout_ms < conf->mount_timeout_ms)
        fprintf(
            stderr,
            "flashpached: lookup_timeout_ms (%u) is below mount_timeout_ms (%u): workers that wait for a slow "
            "file system are killed before it counts as hung; raise the former or lower the latter\n",
            conf->lookup_timeout_ms, conf->mount_timeout_ms);
}

/* name: of the file, NULL if there is none.  Takes the descriptor.  looks_up: as in take_file(). */
static struct fp_conf *load(const char *name, int fd, char *const *overrides, size_t n, bool looks_up)
{
    struct loaded *l = calloc(1, sizeof(*l));
    struct fp_conf *conf = l != NULL ? &l->conf : NULL;

    if (l == NULL) {
        fp_close(&fd);
        return NULL;
    }
    set_defaults(&whole, &l->conf);
    set_defaults(&fleet, &l->fleet);
    if ((name != NULL && !take_file(l, fd, name, looks_up)) || !override(l, overrides, n, looks_up))
        fp_conf_destroy(&conf);
    return conf;
}

struct fp_conf *fp_conf_load(const char *file, char *const *overrides, size_t n)
{
    struct fp_conf *conf = load(file, file != NULL ? open(file, O_RDONLY | O_CLOEXEC) : -1, overrides, n, true);

    if (conf != NULL && take_identity(conf) == -1)
        fp_conf_destroy(&conf);
    if (conf != NULL)
        warn_of_timeouts(conf);
    return conf;
}

struct fp_conf *fp_conf_read(const char *file, bool *socket_given_r)
{
    struct fp_conf *conf = load(file, open(file, O_RDONLY | O_CLOEXEC), NULL, 0, true);

    *socket_given_r = conf != NULL && (((struct loaded *)conf)->given & 1) != 0; /* its row is the first */
    if (conf != NULL)
        warn_of_timeouts(conf);
    return conf;
}

struct fp_conf *fp_conf_reload(int fd, const struct fp_conf *now, char *const *overrides, size_t n)
{
    struct fp_conf *conf = load("the configuration", fd, overrides, n, false);

    if (conf != NULL) {
        conf->uid = now->uid;
        conf->gid = now->gid;
    }
    return conf;
}

bool fp_conf_needs_restart(const struct fp_conf *now, const struct fp_conf *new, char *keys, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < whole.n && len < size; i++) {
        const struct setting *s = &whole.rows[i];

        if (s->effect == RESTART && !is_same(s, now, new))
            len += (size_t)snprintf(keys + len, size - len, "%s%s", len > 0 ? ", " : "", s->key);
    }
    return len > 0;
}

bool fp_fleet_settings_equal(const struct fp_fleet_settings *a, const struct fp_fleet_settings *b)
{
    for (size_t i = 0; i < fleet.n; i++) {
        if (!is_same(&fleet.rows[i], a, b))
            return false;
    }
    return true;
}

void fp_conf_destroy(struct fp_conf **conf)
{
    struct loaded *l = (struct loaded *)*conf;

    if (l == NULL)
        return;
    drop_paths(&l->conf.roots);
    drop_paths(&l->fleet.roots);
    free(l->mounts);
    free(l->text);
    free(l);
    *conf = NULL;
}
