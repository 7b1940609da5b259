/* SPDX-License-Identifier: Apache-2.0 */
#include "document/versions.h"

#include "doc/printed.h"

#include <stdlib.h>

void versions_init(struct versions *versions)
{
    versions->n = versions->bytes = 0;
}

static size_t size_of(const struct version_info *version)
{
    return version->who.len + version->changes.len + version->printed->new_bytes +
           version->printed->n * sizeof(version->printed->pieces[0]);
}

static void drop_oldest(struct versions *versions)
{
    struct version_info *oldest = &versions->all[0];
    versions->bytes -= size_of(oldest);
    free((char *)oldest->who.ptr);
    free((char *)oldest->changes.ptr);
    struct printed *printed = (struct printed *)oldest->printed;
    printed_unref(&printed);
    versions->n--;
    memmove(versions->all, versions->all + 1, versions->n * sizeof(*versions->all));
}

void versions_fini(struct versions *versions)
{
    while (versions->n)
        drop_oldest(versions);
}

static struct slice keep(struct slice s)
{
    char *copy = malloc(s.len + 1);
    iso_assert(copy != NULL);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return slice_of(copy, s.len);
}

void versions_add(struct versions *versions, const struct version_info *version)
{
    while (versions->n &&
           (versions->n == VERSIONS_MAX || versions->bytes + size_of(version) > VERSIONS_BYTES))
        drop_oldest(versions);
    versions->all[versions->n++] = (struct version_info){.number = version->number,
                                                         .wall_ms = version->wall_ms,
                                                         .who = keep(version->who),
                                                         .changes = keep(version->changes),
                                                         .printed = printed_ref(version->printed)};
    versions->bytes += size_of(version);
}

const struct version_info *versions_find(const struct versions *versions, uint64_t number)
{
    for (size_t i = versions->n; i-- > 0;)
        if (versions->all[i].number == number)
            return &versions->all[i];
    return NULL;
}
