/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/imports.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* The read-only pages are writable for the moment of a store.  False: it could not be made.  Another thread may lead the
 * entries of the same page. */
static bool store(const struct object *o, fp_function **entry, fp_function *to)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const uintptr_t at = (uintptr_t)entry, size = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(at - at % size);
    const bool sealed = at >= o->relro_begin && at < o->relro_end;
    bool stored;

    pthread_mutex_lock(&mutex);
    stored = *entry == to || !sealed || mprotect(page, size, PROT_READ | PROT_WRITE) == 0;
    if (stored && *entry != to) {
        *(fp_function *volatile *)entry = to;
        stored = !sealed || mprotect(page, size, PROT_READ) == 0;
    }
    pthread_mutex_unlock(&mutex);
    return stored;
}

/* The number of entries that are led now; -1: one could not be stored. */
static int lead(const struct object *o, const struct imports *i, const struct relocations *list,
                const struct fp_import *import)
{
    int led = 0;

    for (size_t n = 0; n < list->n; n++) {
        const ElfW(Sym) *symbol = &i->symbols[SYMBOL_OF(list->list[n].r_info)];
        fp_function **entry = (fp_function **)(o->base + list->list[n].r_offset);

        if (strcmp(i->names + symbol->st_name, import->name) != 0
            || (import->from != NULL && *entry != import->from))
            continue;
        if (!store(o, entry, import->to))
            return -1;
        led++;
    }
    return led;
}

int fp_imports_lead(const void *inside, const struct fp_import *imports, size_t n, const char **why_r)
{
    struct object o = { .inside = (uintptr_t)inside };
    struct imports i;
    int count = 0;

    *why_r = NULL;
    errno = 0;
    if (dl_iterate_phdr(find_object, &o) == 0 || o.dynamic == NULL) {
        *why_r = "the dynamic linker does not know it";
        return -1;
    }
    i = read_imports(&o);
    for (size_t k = 0; k < n && i.symbols != NULL && i.names != NULL; k++) {
        const int plt = lead(&o, &i, &i.plt, &imports[k]), data = lead(&o, &i, &i.data, &imports[k]);

        if (plt == -1 || data == -1) {
            *why_r = "its import table cannot be made writable";
            return -1;
        }
        count += plt > 0 || data > 0;
    }
    return count;
}
