/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a client's frame goes: a LOOKUP to dispatch, a CONTROL to admin.  All functions run on
 * the loop.
 */
#ifndef FP_ROUTER_H
#define FP_ROUTER_H

struct fp_connection_ops;
struct fp_control_deps;
struct fp_dispatch;

/* Both the caller's; they outlive all connections. */
struct fp_router {
    struct fp_dispatch *dispatch;
    const struct fp_control_deps *control;
};

/* What connections are created with; their ctx is the struct fp_router. */
extern const struct fp_connection_ops fp_router_ops;

#endif
