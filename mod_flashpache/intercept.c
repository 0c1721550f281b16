/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "intercept.h"

#include <apr_strings.h>
#include <errno.h>
#include <http_config.h>
#include <http_log.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lookup.h"

APLOG_USE_MODULE(flashpache);

#define IMPORT      "apr_stat"
#define REQUEST_KEY "flashpache-request" /* of a request's pool */

typedef apr_status_t stat_function(apr_finfo_t *, const char *, apr_int32_t, apr_pool_t *);

static bool begun; /* this child has a changed table */

/* ---- in the place of apr_stat() ---- */

static apr_status_t answer_stat(apr_finfo_t *finfo, const char *name, apr_int32_t wanted, apr_pool_t *pool)
{
    void *r = NULL;

    if (pool == NULL || apr_pool_userdata_get(&r, REQUEST_KEY, pool) != APR_SUCCESS || r == NULL)
        return apr_stat(finfo, name, wanted, pool);
    return fp_lookup_test(finfo, r, name, wanted, pool);
}

int fp_intercept_request(request_rec *r)
{
    if (begun)
        apr_pool_userdata_setn(r, REQUEST_KEY, NULL, r->pool);
    return OK;
}

/* ---- the import table ---- */

/* The object that has an address in it, and what the dynamic linker knows of it. */
struct object {
    uintptr_t inside;
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
    uintptr_t relro_begin, relro_end; /* read-only pages */
};

static int find_object(struct dl_phdr_info *info, size_t size, void *data)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct object *o = data;
    struct object found = { .inside = o->inside, .base = info->dlpi_addr };
    bool here = false;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + h->p_vaddr;

        here = here || (h->p_type == PT_LOAD && o->inside - begin < h->p_memsz);
        if (h->p_type == PT_DYNAMIC)
            found.dynamic = (const ElfW(Dyn) *)begin;
        /* The dynamic linker protects whole pages: the last part of one has data that are written. */
        if (h->p_type == PT_GNU_RELRO) {
            found.relro_begin = begin - begin % page;
            found.relro_end = begin + h->p_memsz - (begin + h->p_memsz) % page;
        }
    }
    if (here)
        *o = found;
    return here;
}

/* A table's address: glibc has put it in the place of the offset, other linkers have not. */
static const void *address_of(const struct object *o, const ElfW(Dyn) * d)
{
    return (const void *)(d->d_un.d_ptr < o->base ? o->base + d->d_un.d_ptr : d->d_un.d_ptr);
}

/* One table of relocations, and the tables that name its symbols. */
struct relocations {
    const ElfW(Rela) * list;
    size_t n;
};

struct imports {
    struct relocations plt, data;
    const ElfW(Sym) * symbols;
    const char *names;
};

static struct imports read_imports(const struct object *o)
{
    struct imports i = { 0 };
    bool with_addend = false;

    for (const ElfW(Dyn) *d = o->dynamic; d != NULL && d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB: i.symbols = address_of(o, d); break;
        case DT_STRTAB: i.names = address_of(o, d); break;
        case DT_JMPREL: i.plt.list = address_of(o, d); break;
        case DT_PLTRELSZ: i.plt.n = d->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_PLTREL: with_addend = d->d_un.d_val == DT_RELA; break;
        case DT_RELA: i.data.list = address_of(o, d); break;
        case DT_RELASZ: i.data.n = d->d_un.d_val / sizeof(ElfW(Rela)); break;
        default: break;
        }
    }
    /* Some machines have relocations of another form. */
    if (!with_addend || i.plt.list == NULL)
        i.plt.n = 0;
    if (i.data.list == NULL)
        i.data.n = 0;
    return i;
}

#if UINTPTR_MAX > UINT32_MAX
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#endif

/* The entry of the table by which the object calls apr_stat(); NULL: there is none, or it leads
 * elsewhere. */
static stat_function **find_entry(const struct object *o, const struct imports *i,
                                  const struct relocations *list)
{
    for (size_t n = 0; n < list->n; n++) {
        const ElfW(Sym) *symbol = &i->symbols[SYMBOL_OF(list->list[n].r_info)];
        stat_function **entry = (stat_function **)(o->base + list->list[n].r_offset);

        if (strcmp(i->names + symbol->st_name, IMPORT) == 0 && *entry == apr_stat)
            return entry;
    }
    return NULL;
}

/* Returns what went wrong, or NULL. */
static const char *store(apr_pool_t *p, const struct object *o, stat_function **entry)
{
    const uintptr_t at = (uintptr_t)entry, size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(at - at % size);
    const bool sealed = at >= o->relro_begin && at < o->relro_end;

    if (sealed && mprotect(page, size, PROT_READ | PROT_WRITE) == -1)
        return apr_psprintf(p, "its import table cannot be made writable: %s", strerror(errno));
    *(stat_function *volatile *)entry = answer_stat;
    if (sealed && mprotect(page, size, PROT_READ) == -1)
        return apr_psprintf(p, "its import table stays writable: %s", strerror(errno));
    return NULL;
}

static const char *intercept(apr_pool_t *p, const module *m)
{
    struct object o = { .inside = (uintptr_t)m };
    struct imports i;
    stat_function **entry = NULL;

    if (dl_iterate_phdr(find_object, &o) == 0 || o.dynamic == NULL)
        return "the dynamic linker does not know it";
    i = read_imports(&o);
    if (i.symbols != NULL && i.names != NULL)
        entry = find_entry(&o, &i, &i.plt);
    if (entry == NULL && i.symbols != NULL && i.names != NULL)
        entry = find_entry(&o, &i, &i.data);
    return entry != NULL ? store(p, &o, entry) : "it has no call of " IMPORT " that can be led elsewhere";
}

/* ---- a child ---- */

void fp_intercept_begin(server_rec *s, const apr_array_header_t *modules)
{
    for (int i = 0; modules != NULL && i < modules->nelts; i++) {
        const module *m = APR_ARRAY_IDX(modules, i, const module *);
        const char *wrong = intercept(s->process->pool, m);

        if (wrong != NULL)
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                         "FP0124: FlashpacheIntercept %s: %s; it asks the file system as without "
                         "Flashpache; leave it out of FlashpacheIntercept",
                         m->name, wrong);
        else
            begun = true;
    }
}
