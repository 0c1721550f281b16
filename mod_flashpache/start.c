/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "start.h"

#include <ap_mpm.h>
#include <apr_portable.h>
#include <http_config.h>
#include <http_log.h>
#include <sys/resource.h>
#include <unistd.h>
#include <unixd.h>

#include "access/parsed.h"
#include "base/memory_limit.h"
#include "base/priv.h"
#include "question/child_cache.h"
#include "question/look.h"
#include "question/lookup.h"
#include "question/open_files.h"
#include "question/shared.h"
#include "question/sweeper.h"
#include "setup/admission.h"
#include "setup/daemon.h"
#include "setup/settings.h"
#include "shared/client.h"

#define IDLE_SHARE 8 /* at most 1/8 of the descriptors are idle connections' */

/* A mapping of the contents costs each child page tables of its own: so many children without threads have one, more
 * read by pread. */
#define FEW_CHILDREN 256

/* Bytes of parsed files that children keep: together one in so many of the memory, and each of them a least. */
#define PARSED_SHARE   32
#define PARSED_LEAST   ((apr_size_t)512 * 1024) /* sixty access files of the usual size */
#define PARSED_MOST    ((apr_size_t)64 << 20)

/* Looks at a path until the daemon hears of it. Then it is worth a walk, which costs
 * more than a look and saves a part of each later one. In little memory the daemon
 * is to know small files soon: their contents take less of it than their pages. */
#define USUAL_ADMISSION 8
#define LITTLE_MEMORY   ((apr_size_t)2 << 30) /* bytes */

/* Of the system, or of httpd's control group: read once, for all children. SIZE_MAX: unknown. */
static apr_size_t memory = SIZE_MAX;

bool fp_start_is_on(server_rec *s)
{
    for (; s != NULL; s = s->next) {
        if (fp_settings_of(s)->engine > FP_ENGINE_OFF)
            return true;
    }
    return false;
}

/* The daemon has no capability: it cannot read files that children can by one. NULL: they cannot. */
static const char *right_of_children(void)
{
    if (geteuid() != 0)
        return fp_priv_passes_permissions() ? "CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH" : NULL;
    return ap_unixd_config.user_id == 0 ? "User root" : NULL;
}

const char *fp_start_obstacle(const char *chroot_dir)
{
    static const char *const changers[] = { "mpm_itk.c",      "itk.c",         "mod_ruid2.c", "peruser.c",
                                            "mod_apparmor.c", "mod_selinux.c", "mod_chroot.c" };

    if (chroot_dir != NULL)
        return "ChrootDir";
    for (size_t i = 0; i < sizeof(changers) / sizeof(changers[0]); i++) {
        if (ap_find_linked_module(changers[i]) != NULL)
            return changers[i];
    }
    return right_of_children();
}

void fp_start_daemon(apr_pool_t *pconf, server_rec *s, const char *obstacle)
{
    const struct fp_settings *settings = fp_settings_of(s);
    const bool on = fp_start_is_on(s);

    memory = fp_memory_limit("");
    fp_admission_init(pconf);
    if (on && obstacle != NULL)
        ap_log_error(
            APLOG_MARK, APLOG_WARNING, 0, s,
            "FP0103: Flashpache stays off: with %s children have other paths or rights than flashpached",
            obstacle);
    if (on && obstacle == NULL && !settings->external)
        fp_daemon_keep(pconf, s, settings->program, settings->configuration, settings->socket);
    else
        fp_daemon_end(s);
}

static apr_status_t end_child(void *unused)
{
    (void)unused;
    fp_client_destroy(&fp_child_client);
    return APR_SUCCESS;
}

/* One connection for each thread, as far as the clients' connections leave descriptors. */
static unsigned idle_connections(int threads)
{
    struct rlimit rl = { RLIM_INFINITY, RLIM_INFINITY };
    unsigned wanted = threads > 0 ? (unsigned)threads : 1;

    getrlimit(RLIMIT_NOFILE, &rl);
    return rl.rlim_cur / IDLE_SHARE < wanted ? (unsigned)(rl.rlim_cur / IDLE_SHARE) : wanted;
}

/* Children take memory that files and the daemon need:
 * a small share of it, however many children there are. */
static apr_size_t parsed_bytes(void)
{
    apr_size_t each = memory / PARSED_SHARE;
    int children = 1;

    ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &children);
    each /= children > 0 ? (apr_size_t)children : 1;
    if (each > PARSED_MOST)
        return PARSED_MOST;
    return each > PARSED_LEAST ? each : PARSED_LEAST;
}

static unsigned admission_of(const struct fp_settings *settings)
{
    if (settings->admission != -1)
        return (unsigned)settings->admission;
    return memory < LITTLE_MEMORY ? 1 : USUAL_ADMISSION;
}

int fp_start_connection(conn_rec *c, void *socket)
{
    apr_os_sock_t descriptor;

    (void)c;
    if (socket != NULL && apr_os_sock_get(&descriptor, socket) == APR_SUCCESS)
        fp_open_files_yield(descriptor);
    return DECLINED;
}

bool fp_start_child(apr_pool_t *p, server_rec *s, const char *obstacle)
{
    const struct fp_settings *settings = fp_settings_of(s);
    struct fp_client_settings client = { .path = settings->socket,
                                         .timeout_ms = (uint32_t)settings->timeout_ms,
                                         .names = settings->names,
                                         .tells_names = true };
    int threads = 1, children = 0;

    fp_daemon_leave(s);
    if (!fp_start_is_on(s) || obstacle != NULL)
        return false;
    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    if (fp_child_cache_init() == -1) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "FP0108: no random numbers: this child serves without Flashpache");
        return false;
    }
    ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &children);
    client.max_idle = idle_connections(threads);
    client.maps_contents = threads > 1 || children <= FEW_CHILDREN;
    fp_child_client = fp_daemon_client(&client);
    if (fp_child_client == NULL)
        ap_log_error(
            APLOG_MARK, APLOG_ERR, 0, s,
            "FP0104: out of memory, or the path of flashpached's socket is too long: this child serves "
            "without Flashpache");
    else
        apr_pool_cleanup_register(p, NULL, end_child, apr_pool_cleanup_null);
    fp_shared_init(settings->open_files > 0);
    fp_look_init(admission_of(settings));
    fp_open_files_init((unsigned)settings->open_files, fp_sweeper_wake);
    fp_sweeper_init(p, fp_open_files_sweep);
    fp_parsed_init((unsigned)settings->parsed, parsed_bytes());
    return true;
}
