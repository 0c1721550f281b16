/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a client's frame on: a LOOKUP to dispatch, a CONTROL to admin.  All functions run on
 * the loop.
 */
#ifndef FP_ROUTER_H
#define FP_ROUTER_H

struct fp_cache;
struct fp_connection_ops;
struct fp_control_deps;
struct fp_dispatch;

/* All are the caller's; they outlive all connections. */
struct fp_router {
    struct fp_dispatch *dispatch;
    struct fp_cache *cache;
    const struct fp_control_deps *control;
};

/* Connections are created with these; their ctx is the struct fp_router. */
extern const struct fp_connection_ops fp_router_ops;

/* No descriptor is left for a connection: the cache gives some of its files up.  ctx as above. */
void fp_router_out_of_descriptors(void *ctx);

#endif
