/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API of httpd 2.4 and APR 1, as far as the shared files use it, in terms of httpd 2.2 and 2.0.
 *
 * The compiler includes this file before each source of this generation (Makefile.am), so the shared
 * files need not know of it. httpd 2.4.0 to 2.4.6 have all of this but the hooks.
 */
#ifndef FP_COMPAT_H
#define FP_COMPAT_H

#include "config.h"

#define CORE_PRIVATE /* shows core_dir_config, core_server_config and htaccess_result */

#include <httpd.h>
#include <ap_mmn.h>
#include <apr_atomic.h>
#include <apr_file_io.h>
#include <apr_pools.h>
#include <apr_time.h>
#include <apr_version.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <unixd.h>

/* httpd's headers define them for itself. A source includes config.h once more. */
#undef PACKAGE_BUGREPORT
#undef PACKAGE_NAME
#undef PACKAGE_STRING
#undef PACKAGE_TARNAME
#undef PACKAGE_URL
#undef PACKAGE_VERSION

/* ---- httpd ---- */

#define FP_HTTPD_24 AP_MODULE_MAGIC_AT_LEAST(20120211, 0)

/* Message ids of modules, and a log level for each module. */
#ifndef APLOG_USE_MODULE
#define APLOG_USE_MODULE(name) extern module AP_MODULE_DECLARE_DATA name##_module
#endif

#ifndef AP_DECLINED
#define AP_DECLINED (APR_OS_START_USERERR + 2000)
#endif

#if !FP_HTTPD_24
#define ap_get_core_module_config(vector)    ap_get_module_config(vector, &core_module)
#define ap_unixd_config                      unixd_config
#define ap_run_drop_privileges(pool, server) ((void)(pool), (void)(server), unixd_setup_child())
/* 2.4's DefaultRuntimeDir; the PID file of these servers is in the same directory. */
#define ap_runtime_dir_relative(pool, name) \
    ap_server_root_relative(pool, apr_pstrcat(pool, "logs/", name, NULL))
#endif

/* ChrootDir came with 2.2.10. */
#if AP_MODULE_MAGIC_AT_LEAST(20051115, 18)
#define FP_CHROOT_DIR ap_unixd_config.chroot_dir
#else
#define FP_CHROOT_DIR NULL
#endif

/* 2.0 has no AllowOverride Options=... */
#define FP_HAS_OVERRIDE_OPTS AP_MODULE_MAGIC_AT_LEAST(20051115, 0)
#if FP_HAS_OVERRIDE_OPTS
#define FP_OVERRIDE_OPTS(of) ((of)->override_opts)
#else
#define FP_OVERRIDE_OPTS(of) 0
#endif

/* 2.0 and 2.2 differ in what their handler for files returns. */
#if AP_MODULE_MAGIC_AT_LEAST(20051115, 0)
#define FP_CONDITION_IS_RETURNED 0
#else
#include <util_filter.h>
#define FP_CONDITION_IS_RETURNED 1
#undef AP_FILTER_ERROR
#define AP_FILTER_ERROR HTTP_INTERNAL_SERVER_ERROR
#endif

#if !FP_HTTPD_24
/* 2.4's callbacks give a status, those of 2.2 a character or the line. */
ap_configfile_t *fp_compat_open_custom(apr_pool_t *p, const char *descr, void *param,
                                       apr_status_t (*getch)(char *ch, void *param),
                                       apr_status_t (*gets)(void *buf, apr_size_t size, void *param),
                                       apr_status_t (*end)(void *param));
#define ap_pcfg_open_custom fp_compat_open_custom
#endif

/* ---- APR ---- */

#define FP_APR_BEFORE_1_3 (APR_MAJOR_VERSION == 0 || (APR_MAJOR_VERSION == 1 && APR_MINOR_VERSION < 3))

/* APR before 1.3 gives the times of files in whole seconds, so ours are, too. Entity tags and comparisons
 * with its own look depend on that. */
#if FP_APR_BEFORE_1_3
#undef apr_time_make
#define apr_time_make(sec, usec) ((void)(usec), apr_time_from_sec(sec))
#endif

#if APR_MAJOR_VERSION == 0
#define APR_FPROT_USETID              APR_USETID
#define APR_FPROT_GSETID              APR_GSETID
#define APR_FPROT_WSTICKY             APR_WSTICKY
#define APR_SIZE_MAX                  (~(apr_size_t)0)
#define APR_FOPEN_READ                APR_READ
#define APR_FOPEN_SENDFILE_ENABLED    APR_SENDFILE_ENABLED
#define APR_ARRAY_IDX(array, i, type) (((type *)(array)->elts)[i])
#define APR_ARRAY_PUSH(array, type)   (*(type *)apr_array_push(array))
/* 0.9 names no width, and its functions take another type. */
#define apr_atomic_read32(at)           __atomic_load_n(at, __ATOMIC_SEQ_CST)
#define apr_atomic_set32(at, value)     __atomic_store_n(at, value, __ATOMIC_SEQ_CST)
#define apr_atomic_inc32(at)            __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST)
#define apr_atomic_add32(at, value)     __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST)
#define apr_atomic_dec32(at)            __atomic_sub_fetch(at, 1, __ATOMIC_SEQ_CST)
#define apr_atomic_cas32(at, with, was) __sync_val_compare_and_swap(at, was, with)
#endif

/* A pool without a parent: one thread makes it, and another may destroy it. */
apr_status_t fp_compat_unmanaged_pool(apr_pool_t **pool);

#endif
