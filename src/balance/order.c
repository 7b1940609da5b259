/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/order.h"

#include <stdlib.h>

static int compare_indexes(const void *a, const void *b, void *names)
{
    const struct slice *list = names;
    return slice_compare(list[*(const uint32_t *)a], list[*(const uint32_t *)b]);
}

iso_err order_by_name(const struct slice *names, uint32_t n, uint32_t *order)
{
    bool sorted = true;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        sorted = sorted && (i == 0 || slice_compare(names[i - 1], names[i]) < 0);
    }
    if (sorted)
        return ISO_OK;
    qsort_r(order, n, sizeof(order[0]), compare_indexes, (void *)names);
    for (uint32_t i = 1; i < n; i++)
        if (slice_eq(names[order[i - 1]], names[order[i]]))
            return ISO_ERR_INVALID;
    return ISO_OK;
}
