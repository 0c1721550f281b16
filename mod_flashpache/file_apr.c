/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "file_apr.h"

#include <apr_portable.h>
#include <apu_version.h>

#include "file.h"
#include "file_bucket.h"

/* A descriptor that a response uses. */
struct use {
    struct fp_file *file;
    int fd;
};

static apr_status_t end_of_request(void *data)
{
    struct use *use = data;

    fp_file_give_back(use->file, &use->fd);
    fp_file_release(&use->file);
    return APR_SUCCESS;
}

apr_bucket *fp_file_apr_append(apr_bucket_brigade *bb, struct fp_file *file, apr_off_t length, bool sendfile,
                               apr_pool_t *request)
{
    struct use *use = apr_palloc(request, sizeof(*use));
    apr_file_t *opened = NULL;
    apr_bucket *e;

    *use = (struct use){ file, fp_file_open_again(file) };
    if (use->fd == -1)
        return NULL;
    fp_file_retain(file);
    apr_pool_cleanup_register(request, use, end_of_request, apr_pool_cleanup_null);
    /* Such an apr_file_t never closes its descriptor, also when it is set aside. */
    apr_os_file_put(&opened, &use->fd, APR_FOPEN_READ | (sendfile ? APR_FOPEN_SENDFILE_ENABLED : 0), request);
    e = apr_brigade_insert_file(bb, opened, 0, length, request);
#if APU_MAJOR_VERSION > 1 || APU_MINOR_VERSION >= 6
    /* Else 8 KB at a time, and FUSE may ask its server each time. */
    apr_bucket_file_set_buf_size(e, (apr_size_t)FP_FILE_SMALL);
#endif
    return e;
}
