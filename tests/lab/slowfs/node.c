/* SPDX-License-Identifier: Apache-2.0
 *
 * One lock for the table: it is never held over a call to the source's file system, but for
 * an fstat of an open file. A node lives while the kernel, a child, an open handle or a
 * running call refers to it.
 */
#include "config.h"
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 65536u

struct slowfs_node {
    struct slowfs_node *parent; /* NULL for the root */
    struct slowfs_node *next;   /* in its bucket */
    struct slowfs_handle *handles;
    char *name;
    dev_t dev;
    ino_t ino;
    mode_t type;
    int dirfd;
    bool hashed;
    uint64_t lookups; /* references that the kernel holds */
    uint64_t users;   /* children, handles, running calls */
};

struct slowfs_handle {
    struct slowfs_node *node;
    struct slowfs_handle *next;
    struct slowfs_handle **link;
    int fd;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slowfs_node *buckets[BUCKETS];
static struct slowfs_node root = { .dirfd = -1 };

/* FNV-1a over the parent's address and the name. */
static struct slowfs_node **bucket_of(const struct slowfs_node *parent, const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)(uintptr_t)parent;

    hash *= UINT64_C(1099511628211);
    for (const char *c = name; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return &buckets[(hash ^ (hash >> 32)) % BUCKETS];
}

static struct slowfs_node *find_locked(const struct slowfs_node *parent, const char *name)
{
    struct slowfs_node *node = *bucket_of(parent, name);

    while (node != NULL && (node->parent != parent || strcmp(node->name, name) != 0))
        node = node->next;
    return node;
}

static void hash_locked(struct slowfs_node *node)
{
    struct slowfs_node **bucket = bucket_of(node->parent, node->name);

    node->next = *bucket;
    *bucket = node;
    node->hashed = true;
}

static void unhash_locked(struct slowfs_node *node)
{
    struct slowfs_node **link;

    if (!node->hashed)
        return;
    link = bucket_of(node->parent, node->name);
    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    node->hashed = false;
}

static void node_free(struct slowfs_node *node)
{
    if (node->dirfd >= 0)
        (void)close(node->dirfd);
    free(node->name);
    free(node);
}

/* Frees the node, and then its ancestors, as far as nothing refers to them. */
static void reap_locked(struct slowfs_node *node)
{
    while (node != &root && node->lookups == 0 && node->users == 0) {
        struct slowfs_node *parent = node->parent;

        unhash_locked(node);
        node_free(node);
        parent->users--;
        node = parent;
    }
}

static void release(struct slowfs_node *node)
{
    (void)pthread_mutex_lock(&table_lock);
    node->users--;
    reap_locked(node);
    (void)pthread_mutex_unlock(&table_lock);
}

static bool same_inode(const struct slowfs_node *node, const struct stat *st)
{
    return node->dev == st->st_dev && node->ino == st->st_ino && node->type == (st->st_mode & S_IFMT);
}

int slowfs_nodes_init(const char *source)
{
    struct stat st;

    root.dirfd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root.dirfd < 0 || fstat(root.dirfd, &st) != 0)
        return errno;
    root.dev = st.st_dev;
    root.ino = st.st_ino;
    root.type = S_IFDIR;
    return 0;
}

struct slowfs_node *slowfs_nodes_root(void)
{
    return &root;
}

static struct slowfs_node *node_new(struct slowfs_node *parent, const char *name, const struct stat *st)
{
    struct slowfs_node *node = calloc(1, sizeof(*node));

    if (node == NULL)
        return NULL;
    node->name = strdup(name);
    if (node->name == NULL) {
        free(node);
        return NULL;
    }
    node->parent = parent;
    node->dev = st->st_dev;
    node->ino = st->st_ino;
    node->type = st->st_mode & S_IFMT;
    node->dirfd = -1;
    return node;
}

/* The known node, with one reference more, if the name still leads to its inode. */
static struct slowfs_node *known(struct slowfs_node *parent, const char *name, const struct stat *st)
{
    struct slowfs_node *node;

    (void)pthread_mutex_lock(&table_lock);
    node = find_locked(parent, name);
    if (node != NULL && same_inode(node, st))
        node->lookups++;
    else
        node = NULL;
    (void)pthread_mutex_unlock(&table_lock);
    return node;
}

/* Enters the fresh node, unless another lookup was first; then that one is returned. */
static struct slowfs_node *enter(struct slowfs_node *fresh, const struct stat *st)
{
    struct slowfs_node *node;

    (void)pthread_mutex_lock(&table_lock);
    node = find_locked(fresh->parent, fresh->name);
    if (node != NULL && same_inode(node, st)) {
        node->lookups++;
        node_free(fresh);
    } else {
        if (node != NULL)
            unhash_locked(node);
        node = fresh;
        node->lookups = 1;
        node->parent->users++;
        hash_locked(node);
    }
    (void)pthread_mutex_unlock(&table_lock);
    return node;
}

static int open_directory(struct slowfs_node *node, struct stat *st_r)
{
    node->dirfd = openat(node->parent->dirfd, node->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (node->dirfd < 0)
        return errno;
    if (fstat(node->dirfd, st_r) != 0)
        return errno;
    return same_inode(node, st_r) ? 0 : ESTALE;
}

int slowfs_node_lookup(struct slowfs_node *parent, const char *name, struct stat *st_r,
                       struct slowfs_node **node_r)
{
    struct slowfs_node *fresh;
    int error;

    if (parent->dirfd < 0)
        return ENOTDIR;
    if (fstatat(parent->dirfd, name, st_r, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    *node_r = known(parent, name, st_r);
    if (*node_r != NULL)
        return 0;
    fresh = node_new(parent, name, st_r);
    if (fresh == NULL)
        return ENOMEM;
    error = S_ISDIR(st_r->st_mode) ? open_directory(fresh, st_r) : 0;
    if (error != 0) {
        node_free(fresh);
        return error;
    }
    *node_r = enter(fresh, st_r);
    return 0;
}

void slowfs_node_forget(struct slowfs_node *node, uint64_t references)
{
    if (node == &root)
        return;
    (void)pthread_mutex_lock(&table_lock);
    node->lookups -= references < node->lookups ? references : node->lookups;
    reap_locked(node);
    (void)pthread_mutex_unlock(&table_lock);
}

int slowfs_node_dirfd(const struct slowfs_node *node)
{
    return node->dirfd;
}

/* The node's present place; the parent is held until release(), the name is the caller's. */
static int locate(struct slowfs_node *node, struct slowfs_node **parent_r, char **name_r)
{
    (void)pthread_mutex_lock(&table_lock);
    *name_r = strdup(node->name);
    if (*name_r != NULL) {
        *parent_r = node->parent;
        node->parent->users++;
    }
    (void)pthread_mutex_unlock(&table_lock);
    return *name_r == NULL ? ENOMEM : 0;
}

static int stat_open_file(struct slowfs_node *node, struct stat *st_r)
{
    int error = ESTALE;

    (void)pthread_mutex_lock(&table_lock);
    if (node->handles != NULL)
        error = fstat(node->handles->fd, st_r) == 0 ? 0 : errno;
    (void)pthread_mutex_unlock(&table_lock);
    return error;
}

int slowfs_node_stat(struct slowfs_node *node, struct stat *st_r)
{
    struct slowfs_node *parent;
    char *name;
    int error;

    if (node->dirfd >= 0)
        return fstat(node->dirfd, st_r) == 0 ? 0 : errno;
    error = locate(node, &parent, &name);
    if (error != 0)
        return error;
    if (fstatat(parent->dirfd, name, st_r, AT_SYMLINK_NOFOLLOW) != 0)
        error = errno;
    else if (!same_inode(node, st_r))
        error = ESTALE;
    release(parent);
    free(name);
    if (error == ESTALE || error == ENOENT)
        error = stat_open_file(node, st_r);
    return error;
}

/* Opens the file of a descriptor anew. */
static int reopen(int fd, int flags, int *fd_r)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    *fd_r = open(path, flags | O_CLOEXEC);
    return *fd_r < 0 ? errno : 0;
}

static int path_fd_by_handle(struct slowfs_node *node, int *fd_r)
{
    int error = ESTALE;

    (void)pthread_mutex_lock(&table_lock);
    if (node->handles != NULL)
        error = reopen(node->handles->fd, O_PATH, fd_r);
    (void)pthread_mutex_unlock(&table_lock);
    return error;
}

static int path_fd_by_name(struct slowfs_node *node, int *fd_r)
{
    struct slowfs_node *parent;
    struct stat st;
    char *name;
    int error = locate(node, &parent, &name);

    if (error != 0)
        return error;
    *fd_r = openat(parent->dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (*fd_r < 0)
        error = errno;
    release(parent);
    free(name);
    if (error == 0 && (fstat(*fd_r, &st) != 0 || !same_inode(node, &st))) {
        (void)close(*fd_r);
        error = ESTALE;
    }
    return error;
}

int slowfs_node_path_fd(struct slowfs_node *node, int *fd_r)
{
    int error;

    if (node->dirfd >= 0) {
        *fd_r = fcntl(node->dirfd, F_DUPFD_CLOEXEC, 0);
        return *fd_r < 0 ? errno : 0;
    }
    error = path_fd_by_name(node, fd_r);
    if (error == ESTALE || error == ENOENT)
        error = path_fd_by_handle(node, fd_r);
    return error;
}

int slowfs_node_adopt(struct slowfs_node *node, int fd, struct slowfs_handle **handle_r)
{
    struct slowfs_handle *handle = calloc(1, sizeof(*handle));

    if (handle == NULL) {
        (void)close(fd);
        return ENOMEM;
    }
    handle->fd = fd;
    handle->node = node;
    (void)pthread_mutex_lock(&table_lock);
    node->users++;
    handle->next = node->handles;
    handle->link = &node->handles;
    if (handle->next != NULL)
        handle->next->link = &handle->next;
    node->handles = handle;
    (void)pthread_mutex_unlock(&table_lock);
    *handle_r = handle;
    return 0;
}

int slowfs_node_open(struct slowfs_node *node, int flags, struct slowfs_handle **handle_r)
{
    int path_fd;
    int fd = -1;
    int error = slowfs_node_path_fd(node, &path_fd);

    if (error != 0)
        return error;
    /* By the verified inode, not by name: O_TRUNC must not hit another file. */
    error = reopen(path_fd, flags & ~(O_NOFOLLOW | O_CREAT | O_EXCL), &fd);
    (void)close(path_fd);
    return error != 0 ? error : slowfs_node_adopt(node, fd, handle_r);
}

int slowfs_handle_fd(const struct slowfs_handle *handle)
{
    return handle->fd;
}

void slowfs_handle_close(struct slowfs_handle **handle)
{
    struct slowfs_handle *h = *handle;

    (void)pthread_mutex_lock(&table_lock);
    *h->link = h->next;
    if (h->next != NULL)
        h->next->link = h->link;
    (void)pthread_mutex_unlock(&table_lock);
    (void)close(h->fd);
    release(h->node);
    free(h);
    *handle = NULL;
}

/* Puts the unhashed node under a new name. Without memory it stays unhashed: the next
 * lookup then makes a new node, and calls on this one answer ESTALE. */
static void move_locked(struct slowfs_node *node, struct slowfs_node *parent, const char *name)
{
    struct slowfs_node *old_parent = node->parent;
    char *copy = strdup(name);

    if (copy == NULL)
        return;
    free(node->name);
    node->name = copy;
    node->parent = parent;
    parent->users++;
    hash_locked(node);
    old_parent->users--;
    reap_locked(old_parent);
}

void slowfs_nodes_renamed(struct slowfs_node *from, const char *name, struct slowfs_node *to,
                          const char *new_name, int exchanged)
{
    struct slowfs_node *moved;
    struct slowfs_node *replaced;

    (void)pthread_mutex_lock(&table_lock);
    moved = find_locked(from, name);
    replaced = find_locked(to, new_name);
    if (moved != NULL)
        unhash_locked(moved);
    if (replaced != NULL)
        unhash_locked(replaced);
    if (moved != NULL)
        move_locked(moved, to, new_name);
    if (replaced != NULL && replaced != moved && exchanged)
        move_locked(replaced, from, name);
    (void)pthread_mutex_unlock(&table_lock);
}
