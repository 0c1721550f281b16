/* SPDX-License-Identifier: Apache-2.0 */
/* The whole file, since the invariants are about its own structures. */
#include "cache/dependency.c"

#include "dependency_check.h"

size_t fp_dependency_list_live(const struct fp_dependency *dependencies)
{
    size_t n = 0;

    for (; dependencies != NULL; dependencies = dependencies->next)
        n += !dependencies->object->gone;
    return n;
}

const char *fp_dependency_list_check(const struct fp_dependencies *w,
                                     const struct fp_dependency *dependencies, const void *owner,
                                     const struct fp_dependency *own)
{
    bool found = own == NULL;

    for (const struct fp_dependency *s = dependencies; s != NULL; s = s->next) {
        const struct watch_object *object = s->object;

        if (s->owner != owner)
            return "a dependency has another owner than the entry that lists it";
        if (object != (object->gone ? object : find_object(w, &object->key)))
            return "a dependency is on an object that is not in the table";
        if (s->name != NULL && TAILQ_EMPTY(&s->name->dependencies))
            return "a dependency is on a name that does not know it";
        found = found || (s == own && s->name == NULL);
    }
    return found ? NULL : "an entry's watch is none of its dependencies";
}

const char *fp_dependencies_check(const struct fp_dependencies *w, size_t n)
{
    const struct fp_dependency *s;
    size_t found = 0;

    for (const struct fp_indexed *i = fp_index_first(&w->objects); i != NULL;
         i = fp_index_next(&w->objects, i)) {
        const struct watch_object *object = (const struct watch_object *)i;

        if (object->gone || (TAILQ_EMPTY(&object->on_itself) && TAILQ_EMPTY(&object->on_names)))
            return "nothing depends on an object that is watched";
        TAILQ_FOREACH(s, &object->on_itself, of_object)
            found += s->object == object && s->name == NULL;
        TAILQ_FOREACH(s, &object->on_names, of_object)
            found += s->object == object && s->name != NULL;
    }
    if (found != n)
        return "the objects' dependencies are not those of the entries";
    for (const struct fp_indexed *i = fp_index_first(&w->names); i != NULL; i = fp_index_next(&w->names, i)) {
        const struct name *name = (const struct name *)i;

        if (TAILQ_EMPTY(&name->dependencies))
            return "nothing depends on a name that is known";
        TAILQ_FOREACH(s, &name->dependencies, of_name) {
            if (s->name != name)
                return "a name lists a dependency on another one";
        }
    }
    return NULL;
}
