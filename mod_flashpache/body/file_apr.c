/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "body/file_apr.h"

#include <apr_portable.h>

#include "question/file.h"

struct fp_file_use {
    struct fp_file *file;
    int fd;
    bool broke;
    const conn_rec *connection; /* core sets it aborted where it cannot read what was set aside */
};

static apr_status_t end_of_request(void *data)
{
    struct fp_file_use *use = data;

    if (use->broke || use->connection->aborted)
        fp_file_close_own(&use->fd);
    else
        fp_file_give_back(use->file, &use->fd);
    fp_file_release(&use->file);
    return APR_SUCCESS;
}

void fp_file_apr_broke(struct fp_file_use *use)
{
    use->broke = true;
}

apr_bucket *fp_file_apr_append(apr_bucket_brigade *bb, struct fp_file *file, apr_off_t offset,
                               apr_off_t length, bool sendfile, request_rec *r, struct fp_file_use **use_r)
{
    struct fp_file_use *use = apr_palloc(r->pool, sizeof(*use));
    apr_file_t *opened = NULL;

    *use = (struct fp_file_use){ .file = file, .fd = fp_file_open_own(file), .connection = r->connection };
    if (use->fd == -1)
        return NULL;
    fp_file_retain(file);
    apr_pool_cleanup_register(r->pool, use, end_of_request, apr_pool_cleanup_null);
    /* Such an apr_file_t does not close its descriptor with a pool, also when it is set aside. */
    apr_os_file_put(&opened, &use->fd, APR_FOPEN_READ | (sendfile ? APR_FOPEN_SENDFILE_ENABLED : 0), r->pool);
    *use_r = use;
    return apr_brigade_insert_file(bb, opened, offset, length, r->pool);
}
