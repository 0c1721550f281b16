/* SPDX-License-Identifier: Apache-2.0
 *
 * The file-system operations, as libfuse calls them. Its userdata is a slowfs_context.
 */
#ifndef SLOWFS_OPS_H
#define SLOWFS_OPS_H

#include "node.h"
#include "queue.h"

#include <stdbool.h>

struct slowfs_context {
    struct slowfs_queue *queue;
    double attr_timeout;
    double entry_timeout;
    double absent_timeout;
    double clock_lag;
    bool whole_seconds;
    bool keep_cache;
};

/* The whole table: the operations of ops_name.c and ops_file.c. */
void slowfs_ops_fill(struct fuse_lowlevel_ops *ops);
void slowfs_name_ops_fill(struct fuse_lowlevel_ops *ops);
void slowfs_file_ops_fill(struct fuse_lowlevel_ops *ops);
/* Not in the table by itself: without it the kernel asks at the first close only. */
void slowfs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* For the operation files alone. */

struct slowfs_context *slowfs_context_of(fuse_req_t req);
struct slowfs_node *slowfs_node_of(fuse_ino_t ino);
struct slowfs_handle *slowfs_handle_of(const struct fuse_file_info *fi);

/* A call that waits for its delay, with the file of an open (fi, else NULL); answers ENOMEM when there is
 * no memory. */
struct slowfs_delayed_call {
    struct slowfs_call base;
    fuse_ino_t ino;
    struct fuse_file_info fi;
    char name[];
};
void slowfs_delay(fuse_req_t req, enum slowfs_delayed kind, void (*run)(struct slowfs_call *), fuse_ino_t ino,
                  const char *name, const struct fuse_file_info *fi);

/* Shows the file's times by the clock that slowfs was given. */
void slowfs_show_times(fuse_req_t req, struct stat *st);

/* Looks the name up and answers with its entry. */
void slowfs_reply_entry(fuse_req_t req, struct slowfs_node *parent, const char *name);

/* Looks the name up and fills *entry_r; 0 or an errno. */
int slowfs_make_entry(fuse_req_t req, struct slowfs_node *parent, const char *name,
                      struct fuse_entry_param *entry_r, struct slowfs_node **node_r);

/* Gives the caller a file that root has just made in the source, as if the caller had made it. */
int slowfs_give_to_caller(fuse_req_t req, int dirfd, const char *name);

#endif
