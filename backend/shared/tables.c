/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/tables.h"

#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/lease_table.h"

bool fp_tables_create(struct fp_tables *t, const struct fp_tables_sizes *sizes)
{
    *t = (struct fp_tables){ NULL, NULL, NULL };
    t->leases = fp_lease_table_create(sizes->leases);
    if (t->leases != NULL)
        t->answers = fp_answer_table_create(sizes->answer_bytes, fp_lease_table_is_used, t->leases);
    if (t->answers != NULL)
        t->contents = fp_contents_create(sizes->content_bytes);
    if (t->contents != NULL)
        return true;
    fp_tables_destroy(t);
    return false;
}

void fp_tables_destroy(struct fp_tables *t)
{
    fp_contents_destroy(&t->contents);
    fp_answer_table_destroy(&t->answers);
    fp_lease_table_destroy(&t->leases);
}
