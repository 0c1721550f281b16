/* SPDX-License-Identifier: Apache-2.0
 *
 * The names that the kernel knows of slowfs, and where each lies in the source.
 *
 * A node is a name in a directory together with the inode found there. Only directories
 * hold a descriptor, so a tree of many files needs few. When another inode takes the name
 * (an atomic replace, even one made in the source behind slowfs), the next lookup gives a
 * new node, and calls on the old one answer ESTALE, as NFS does, unless it is still open.
 * Two names of one file (hard links) are two nodes, so the kernel keeps their attributes
 * apart: with attribute caching a change by one name shows late by the other.
 */
#ifndef SLOWFS_NODE_H
#define SLOWFS_NODE_H

#include <stdint.h>
#include <sys/stat.h>

struct slowfs_node;
struct slowfs_handle; /* an open file; keeps its node usable after the name is gone */

/* All functions here return 0 or an errno, unless they say otherwise; all are thread-safe. */

int slowfs_nodes_init(const char *source);
struct slowfs_node *slowfs_nodes_root(void);

/* Finds the name, and counts one kernel reference on the node if there is one. */
int slowfs_node_lookup(struct slowfs_node *parent, const char *name, struct stat *st_r,
                       struct slowfs_node **node_r);

/* Drops kernel references; the node may be gone afterwards. */
void slowfs_node_forget(struct slowfs_node *node, uint64_t references);

int slowfs_node_stat(struct slowfs_node *node, struct stat *st_r);

/* An O_PATH descriptor of the node's inode, the caller's to close. */
int slowfs_node_path_fd(struct slowfs_node *node, int *fd_r);

/* The O_PATH descriptor of a directory's node, the node's own; -1 when it is none. */
int slowfs_node_dirfd(const struct slowfs_node *node);

/* Opens the node's regular file; flags as of open(2). */
int slowfs_node_open(struct slowfs_node *node, int flags, struct slowfs_handle **handle_r);

/* Wraps a descriptor of the node's file, which it takes over also on failure. */
int slowfs_node_adopt(struct slowfs_node *node, int fd, struct slowfs_handle **handle_r);

int slowfs_handle_fd(const struct slowfs_handle *handle);
void slowfs_handle_close(struct slowfs_handle **handle);

/* After a rename in the source: the nodes keep their identity under the new names. */
void slowfs_nodes_renamed(struct slowfs_node *from, const char *name, struct slowfs_node *to,
                          const char *new_name, int exchanged);

#endif
