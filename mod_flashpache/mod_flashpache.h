/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOD_FLASHPACHE_H
#define MOD_FLASHPACHE_H

#include <httpd.h>
#include <http_config.h>

extern module AP_MODULE_DECLARE_DATA flashpache_module;

/* This child process's connections to the daemon; NULL where none are made. */
struct fp_client;
extern struct fp_client *fp_child_client;

#endif
