/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All parts of the daemon, for the code that starts, reloads and ends them.
 */
#ifndef FP_FLASHPACHED_H
#define FP_FLASHPACHED_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "admin/control.h"
#include "admin/stats.h"
#include "arguments.h"
#include "changes/watch.h"
#include "lookup/observe.h"
#include "lookup/router.h"
#include "privsep/closer.h"
#include "privsep/monitor.h"
#include "privsep/spawner.h"
#include "shared/tables.h"
#include "warm.h"
#include "wire/sight.h"
#include "workers/resolve.h"

struct flashpached {
    struct fp_arguments args;
    struct fp_conf *conf; /* as started; parts of the daemon point into it */
    size_t descriptors;   /* that the process may hold */
    size_t memory;        /* bytes for entries, contents and answers */
    bool prompt;          /* it may run as soon as an event comes */
    struct ev_loop *loop;
    struct fp_mount_list *mount_list;
    struct fp_noise_list *noise;
    struct fp_whereabouts *whereabouts;
    struct fp_mounts *mounts;
    struct fp_sight sees; /* of the file system, for clients to compare */
    struct fp_watch watch;
    struct fp_resolver_settings resolver;
    struct fp_worker_job job;
    struct fp_sandbox *own_sandbox, *workers_sandbox, *closers_sandbox; /* NULL: none */
    struct fp_monitor monitor;
    ev_io monitor_gone;
    ev_child closer_gone[FP_CLOSERS];
    struct fp_tables tables;
    struct fp_cache *cache;
    struct fp_coherence *coherence;
    struct fp_worker_pool *workers;
    struct fp_dispatch *dispatch;
    struct fp_listener *listener;
    struct fp_observer observer;
    struct fp_warm warm;
    struct fp_fleet *fleet;     /* NULL if there is none */
    struct fp_conf *fleet_conf; /* owns the fleet's settings; may be conf */
    struct fp_wakeups wakeups;
    struct fp_stats stats;
    int statm; /* /proc/self/statm; -1: unknown */
    struct fp_about about;
    struct fp_control_deps control;
    struct fp_router router;
    int sock, lock;  /* the listening socket, and the lock beside it; -1: none (yet) */
    bool own_socket; /* made as the user that the daemon stays */
    bool failed;     /* the loop ended for a reason that a restart removes */
    ev_signal sigterm, sigint, sighup, sigusr1;
};

#endif
