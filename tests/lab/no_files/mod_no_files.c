/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers URLs from memory, with the headers of a file and without any work on one: no walk, no .htaccess, no
 * open. So it shows the most that a cache of files could gain in httpd.
 *
 * "NoFiles LIST": a text of lines "SIZE URL". The bytes of a response come from a block that all children
 * share, each URL's from another place in it.
 */
#include "config.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK      ((apr_size_t)256 << 20) /* more than a processor's caches */
#define LARGEST    ((apr_size_t)16 << 20)  /* of a response */
#define AGE        apr_time_from_sec(3600) /* of each file, when httpd starts */
#define ALIGNMENT  4096
#define LINE_BYTES 8192

struct file {
    const char *bytes;
    apr_off_t size;
    apr_ino_t inode; /* for its entity tag */
};

static apr_hash_t *files; /* by URL; NULL: there is no list */
static char *block;
static apr_time_t mtime;
extern module AP_MODULE_DECLARE_DATA no_files_module;

/* One in many places of the block, by the URL. */
static const char *place_of(const char *url)
{
    apr_ssize_t len = APR_HASH_KEY_STRING;
    const apr_size_t places = (BLOCK - LARGEST) / ALIGNMENT;

    return block + apr_hashfunc_default(url, &len) % places * ALIGNMENT;
}

static const char *add(apr_pool_t *p, const char *line)
{
    struct file *f = apr_palloc(p, sizeof(*f));
    char *end;

    f->size = strtol(line, &end, 10);
    if (end == line || *end != ' ' || f->size < 0 || (apr_size_t)f->size > LARGEST)
        return apr_psprintf(p, "NoFiles: \"%s\" must be a size of at most 16 MiB and a URL", line);
    f->bytes = place_of(end + 1);
    f->inode = apr_hash_count(files) + 1;
    apr_hash_set(files, apr_pstrdup(p, end + 1), APR_HASH_KEY_STRING, f);
    return NULL;
}

static apr_status_t drop_block(void *unused)
{
    (void)unused;
    munmap(block, BLOCK);
    block = NULL;
    return APR_SUCCESS;
}

/* Large pages, filled here: then children neither fault nor have tables of their own for it. httpd reads its
 * configuration twice at the start, and the first one's block goes with its pool. */
static const char *make_block(apr_pool_t *p)
{
    if (block != NULL)
        return NULL;
    block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        block = NULL;
        return "NoFiles: no memory for 256 MiB";
    }
    madvise(block, BLOCK, MADV_HUGEPAGE);
    memset(block, 'x', BLOCK);
    apr_pool_cleanup_register(p, NULL, drop_block, apr_pool_cleanup_null);
    return NULL;
}

static const char *set_list(cmd_parms *cmd, void *config, const char *name)
{
    ap_configfile_t *text;
    char line[LINE_BYTES];
    const char *wrong = make_block(cmd->pool);

    (void)config;
    if (wrong == NULL && ap_pcfg_openfile(&text, cmd->pool, name) != APR_SUCCESS)
        wrong = apr_psprintf(cmd->pool, "NoFiles: cannot open %s", name);
    if (wrong != NULL)
        return wrong;
    files = apr_hash_make(cmd->pool);
    mtime = apr_time_now() - AGE;
    while (wrong == NULL && ap_cfg_getline(line, sizeof(line), text) == APR_SUCCESS)
        wrong = add(cmd->pool, line);
    ap_cfg_closefile(text);
    return wrong;
}

static const struct file *file_of(const request_rec *r)
{
    return files != NULL ? apr_hash_get(files, r->uri, APR_HASH_KEY_STRING) : NULL;
}

/* In the place of core's walk. */
static int map_to_storage(request_rec *r)
{
    const struct file *f = file_of(r);

    if (f == NULL)
        return DECLINED;
    r->finfo.filetype = APR_REG;
    r->finfo.size = f->size;
    r->finfo.inode = f->inode;
    r->finfo.mtime = mtime;
    r->finfo.valid = APR_FINFO_TYPE | APR_FINFO_SIZE | APR_FINFO_INODE | APR_FINFO_MTIME;
    return OK;
}

static int respond(request_rec *r)
{
    const struct file *f = file_of(r);
    apr_bucket_alloc_t *list = r->connection->bucket_alloc;
    apr_bucket_brigade *bb;
    int status;

    if (f == NULL || r->method_number != M_GET)
        return DECLINED;
    ap_update_mtime(r, mtime);
    ap_set_last_modified(r);
    ap_set_etag(r);
    ap_set_accept_ranges(r);
    ap_set_content_length(r, f->size);
    status = ap_meets_conditions(r);
    if (status != OK)
        return status;
    bb = apr_brigade_create(r->pool, list);
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_immortal_create(f->bytes, (apr_size_t)f->size, list));
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(list));
    return ap_pass_brigade(r->output_filters, bb) == APR_SUCCESS ? OK : AP_FILTER_ERROR;
}

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_handler(respond, NULL, NULL, APR_HOOK_REALLY_FIRST);
}

static const command_rec directives[] = { AP_INIT_TAKE1("NoFiles", set_list, NULL, RSRC_CONF,
                                                        "a text of lines \"SIZE URL\""),
                                          { NULL } };

AP_DECLARE_MODULE(no_files) = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, directives, register_hooks,
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 70)
    AP_MODULE_FLAG_NONE
#endif
};
