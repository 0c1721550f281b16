/* SPDX-License-Identifier: Apache-2.0 */
/* The glue for httpd 2.2 and 2.0: sections into rules, an answer into what core's walk is given. The
 * functions of httpd and of the question are doubles here. */
#include <apr_strings.h>
#include <http_request.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "httpd22/access.h"
#include "httpd22/plan.h"
#include "httpd22/prefill.h"
#include "httpd22/rules.h"
#include "question/finfo.h"
#include "question/fresh.h"
#include "question/held.h"
#include "question/lookup.h"
#include "question/request.h"
#include "setup/overrides.h"
#include "setup/settings.h"
#include "unit.h"

/* ---- httpd's double ---- */

static core_dir_config defaults, sections[20];
static core_server_config core_server;
static struct fp_settings settings;
static apr_pool_t *pool;
static server_rec server;
static request_rec request;

module core_module;
module flashpache_module;

/* A vector of configurations, as core's macros read it: core's is the first. */
static void *server_vector[] = { &core_server }, *default_vector[] = { &defaults }, *section_vectors[20][1];

char *ap_getword_conf(apr_pool_t *p, const char **line)
{
    size_t skip = strspn(*line, " "), len = strcspn(*line + skip, " ");
    char *word = apr_pstrmemdup(p, *line + skip, len);

    *line += skip + len;
    *line += strspn(*line, " ");
    return word;
}

char *ap_make_full_path(apr_pool_t *p, const char *dir, const char *file)
{
    return apr_pstrcat(p, dir, file, NULL);
}

static struct {
    unsigned walks, file_walks, given, kept;
    apr_filetype_e filetype;
    const char *filename, *path_info;
    int status; /* of the walk */
} seen;

int ap_directory_walk(request_rec *r)
{
    seen.walks++;
    seen.filetype = r->finfo.filetype;
    seen.filename = r->filename;
    seen.path_info = r->path_info;
    return seen.status;
}

int ap_file_walk(request_rec *r)
{
    seen.file_walks++;
    (void)r;
    return OK;
}

/* ---- the question's double ---- */

static struct fp_answer found;
static struct fp_step *const steps = found.steps;
static struct fp_held held;
static struct fp_request answer, *current;
static unsigned forgotten;

int fp_lookup_begin(request_rec *r)
{
    (void)r;
    return DECLINED;
}
void fp_fresh_note_method(const request_rec *r)
{
    (void)r;
}
struct fp_request *fp_request_of(const request_rec *r)
{
    (void)r;
    return current;
}
void fp_request_forget(request_rec *r)
{
    (void)r;
    forgotten++;
}
struct fp_settings *fp_settings_of(const server_rec *s)
{
    (void)s;
    return &settings;
}
const struct fp_step *fp_held_last(const struct fp_held *h)
{
    return &h->answer->steps[h->answer->n_steps - 1];
}
void fp_finfo_fill(apr_finfo_t *finfo, const struct fp_meta *m, const char *name, apr_pool_t *p)
{
    (void)p;
    finfo->fname = name;
    finfo->filetype = S_ISDIR(m->mode) ? APR_DIR : APR_REG;
    finfo->inode = m->ino;
}
void fp_access_give(request_rec *r, struct fp_request *q, unsigned n_dirs)
{
    (void)r;
    (void)q;
    seen.given += n_dirs;
}
void fp_access_keep(request_rec *r, struct fp_request *q)
{
    (void)r;
    (void)q;
    seen.kept++;
}

/* ---- what tests begin with ---- */

static void set_sections(unsigned n)
{
    core_server.sec_dir = apr_array_make(pool, 4, sizeof(ap_conf_vector_t *));
    core_server.sec_url = apr_array_make(pool, 4, sizeof(ap_conf_vector_t *));
    core_server.access_name = (char *)".htaccess .other";
    for (unsigned i = 0; i < n; i++)
        *(ap_conf_vector_t **)apr_array_push(core_server.sec_dir) = (ap_conf_vector_t *)section_vectors[i];
}

static void begin(void)
{
    apr_initialize();
    apr_pool_create(&pool, NULL);
    memset(sections, 0, sizeof(sections));
    memset(&defaults, 0, sizeof(defaults));
    memset(&seen, 0, sizeof(seen));
    defaults.opts = OPT_UNSET | OPT_ALL;
    defaults.override = OR_UNSET | OR_ALL;
    for (unsigned i = 0; i < 20; i++) {
        sections[i].opts = OPT_UNSET;
        sections[i].override = OR_UNSET;
        section_vectors[i][0] = &sections[i];
    }
    server.module_config = (ap_conf_vector_t *)server_vector;
    server.lookup_defaults = (ap_conf_vector_t *)default_vector;
    set_sections(0);
    request = (request_rec){ .pool = pool, .server = &server };
    settings = (struct fp_settings){ .engine = FP_ENGINE_ON };
    current = &answer;
    forgotten = 0;
}

static void end(void)
{
    apr_pool_destroy(pool);
    apr_terminate();
}

/* The answer about /a/b, both there: a directory and a file. */
static void set_answer(const char *path)
{
    const uint32_t modes[] = { S_IFDIR, S_IFDIR, S_IFREG };
    const uint16_t ends[] = { 1, 2, 4 };

    fp_answer_init(&found, FP_OK);
    memset(steps, 0, 3 * sizeof(steps[0]));
    for (unsigned i = 0; i < 3; i++) {
        steps[i].end = ends[i];
        steps[i].status = FP_OK;
        steps[i].self = (struct fp_meta){ .mode = modes[i] | 0755, .ino = 10 + i };
        steps[i].access[0].status = steps[i].access[1].status = FP_ABSENT;
    }
    found.n_steps = 3;
    found.n_names = 2;
    held = (struct fp_held){ .answer = &found, .path = path, .path_len = fp_path_len(path) };
    answer = (struct fp_request){ .r = &request, .held = &held };
    request.filename = apr_pstrdup(pool, path);
    request.finfo.filetype = APR_NOFILE;
    fp_rules_take(pool, &server, &settings);
}

/* ---- rules ---- */

static const struct fp_rules *rules(unsigned n_sections)
{
    set_sections(n_sections);
    fp_rules_take(pool, &server, &settings);
    return settings.rules;
}

START_TEST(each_override_is_known_once)
{
    const struct fp_rules *r;

    sections[0].override = OR_NONE;
    sections[1].override = OR_FILEINFO;
    sections[3].override = OR_FILEINFO;
    r = rules(4);
    ck_assert_uint_eq(r->n_names, 2);
    /* Core asks with the very value, the default's flag included; not where nothing is allowed. */
    ck_assert_int_eq(r->overrides[0], OR_UNSET | OR_ALL);
    ck_assert_int_eq(r->overrides[r->n_overrides - 1], OR_FILEINFO);
    ck_assert_uint_eq(r->n_overrides, FP_HTTPD_24 ? 3 : 2);
    for (int i = 0; i < 20; i++)
        sections[i].override = (overrides_t)(i + 1);
    ck_assert_uint_eq(rules(20)->n_overrides, FP_MAX_OVERRIDES); /* core looks itself for the others */
}
END_TEST

START_TEST(links_are_restricted_by_any_section)
{
    ck_assert(!rules(2)->restricts_links);
    sections[1].opts = OPT_SYM_LINKS | OPT_INDEXES;
    ck_assert(!rules(2)->restricts_links);
    sections[1].opts = OPT_NONE;
    ck_assert(rules(2)->restricts_links);
    sections[1].opts = OPT_UNSET;
    sections[1].opts_remove = OPT_SYM_LINKS;
    ck_assert(rules(2)->restricts_links);
    sections[1].opts_remove = 0;
    sections[1].opts_add = OPT_SYM_OWNER;
    ck_assert(rules(2)->restricts_links);
    sections[1].opts_add = 0;
    defaults.opts = OPT_UNSET | OPT_SYM_LINKS | OPT_SYM_OWNER;
    ck_assert(rules(2)->restricts_links);
}
END_TEST

START_TEST(a_section_may_name_a_file)
{
    sections[0].d = (char *)"/a/";
    sections[1].d = (char *)"/w/*/";
    sections[1].d_is_fnmatch = 1;
    set_sections(2);
    ck_assert(fp_rules_name(&server, "/a"));
    ck_assert(!fp_rules_name(&server, "/a/b"));
    ck_assert(fp_rules_name(&server, "/w/file"));
    ck_assert(!fp_rules_name(&server, "/w/x/file"));
}
END_TEST

START_TEST(access_files_are_looked_for_without_a_section)
{
    bool lists;

    ck_assert(fp_overrides_allow(&server, &lists));
    sections[0].d = (char *)"/";
    sections[0].override = OR_NONE;
    set_sections(1);
    ck_assert(!fp_overrides_allow(&server, &lists));
    /* Nothing is looked for, so no access file can forbid links. */
    ck_assert(!rules(1)->access_files_may);
    sections[1].override = OR_ALL;
    set_sections(2);
    ck_assert(fp_overrides_allow(&server, &lists));
    ck_assert(rules(2)->access_files_may);
    ck_assert(!lists);
}
END_TEST

/* ---- the walk ---- */

START_TEST(known_file)
{
    set_answer("/a/b");
    ck_assert_int_eq(fp_prefill(&request), OK);
    ck_assert_uint_eq(seen.walks, 1);
    ck_assert_uint_eq(seen.file_walks, 1);
    ck_assert_int_eq(seen.filetype, APR_REG);
    ck_assert_str_eq(seen.filename, "/a/b");
    ck_assert_ptr_null(seen.path_info);
    ck_assert_uint_eq(seen.given, 3);
    ck_assert_uint_eq(seen.kept, 1);
    ck_assert_uint_eq(forgotten, 0);
    /* A request that the walk refuses stays refused. */
    seen.status = HTTP_FORBIDDEN;
    ck_assert_int_eq(fp_prefill(&request), HTTP_FORBIDDEN);
    ck_assert_uint_eq(seen.file_walks, 1);
}
END_TEST

START_TEST(path_info)
{
    set_answer("/a/b/more/x");
    request.path_info = (char *)"/before";
    ck_assert_int_eq(fp_prefill(&request), OK);
    ck_assert_str_eq(seen.filename, "/a/b");
    ck_assert_str_eq(seen.path_info, "/more/x/before");
    ck_assert_int_eq(request.finfo.filetype, APR_REG);
    ck_assert_uint_eq((unsigned)request.finfo.inode, 12);
    /* A slash behind a file is path-info, too. */
    set_answer("/a/b");
    request.filename = apr_pstrdup(pool, "/a/b/");
    request.path_info = NULL;
    ck_assert_int_eq(fp_prefill(&request), OK);
    ck_assert_str_eq(seen.filename, "/a/b");
    ck_assert_str_eq(seen.path_info, "/");
}
END_TEST

START_TEST(absent_name)
{
    set_answer("/a/b/more");
    steps[2].status = FP_ABSENT;
    ck_assert_int_eq(fp_prefill(&request), OK);
    /* The walk takes it for a file, so it looks at nothing;
     * then the path leads to no file, with the directory's metadata. */
    ck_assert_int_eq(seen.filetype, APR_REG);
    ck_assert_str_eq(seen.filename, "/a/b");
    ck_assert_str_eq(request.path_info, "/more");
    ck_assert_int_eq(request.finfo.filetype, APR_NOFILE);
    ck_assert_uint_eq((unsigned)request.finfo.inode, 11);
}
END_TEST

static void assert_left(void)
{
    const unsigned walks = seen.walks;

    forgotten = 0;
    ck_assert_int_eq(fp_prefill(&request), DECLINED);
    ck_assert_uint_eq(seen.walks, walks);
    ck_assert_uint_eq(forgotten, 1);
    ck_assert_int_eq(request.finfo.filetype, APR_NOFILE);
}

START_TEST(core_looks_where_it_would_see_more)
{
    set_answer("/a/b");
    steps[2].status = FP_DENIED;
    assert_left(); /* core logs the reason */
    set_answer("/a/b");
    steps[2].self.mode = S_IFLNK | 0777;
    steps[2].target_status = FP_ABSENT;
    assert_left();
    set_answer("/a/b/x");
    steps[2].self.mode = S_IFIFO | 0644;
    assert_left();
    /* A section for the file's name as a directory's matters only to a walk that knows the file. */
    sections[0].d = (char *)"/a/b/";
    set_sections(1);
    set_answer("/a/b/x");
    assert_left();
    set_answer("/a/b");
    ck_assert_int_eq(fp_prefill(&request), OK);
    current = NULL;
    ck_assert_int_eq(fp_prefill(&request), DECLINED);
}
END_TEST

START_TEST(links_that_may_be_forbidden)
{
    sections[0].opts = OPT_SYM_OWNER;
    set_sections(1);
    set_answer("/a/b");
    ck_assert_int_eq(fp_prefill(&request), OK);
    set_answer("/a/b");
    steps[1].self.mode = S_IFLNK | 0777;
    steps[1].target_status = FP_OK;
    steps[1].target.mode = S_IFDIR | 0755;
    assert_left();
    set_answer("/a/b");
    steps[2].status = FP_ABSENT;
    assert_left();
    /* Where no section forbids them, an access file may. */
    set_sections(0);
    set_answer("/a/b");
    steps[2].status = FP_ABSENT;
    ck_assert_int_eq(fp_prefill(&request), OK);
    set_answer("/a/b");
    steps[2].status = FP_ABSENT;
    steps[0].access[1].status = FP_OK;
    assert_left();
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("httpd22");
    TCase *t = unit_add_case(s, "httpd22", begin, end, 0);

    tcase_add_test(t, each_override_is_known_once);
    tcase_add_test(t, links_are_restricted_by_any_section);
    tcase_add_test(t, a_section_may_name_a_file);
    tcase_add_test(t, access_files_are_looked_for_without_a_section);
    tcase_add_test(t, known_file);
    tcase_add_test(t, path_info);
    tcase_add_test(t, absent_name);
    tcase_add_test(t, core_looks_where_it_would_see_more);
    tcase_add_test(t, links_that_may_be_forbidden);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
