/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations as an operator, or one day a client of the API, may send them, read as YAML and as JSON.
 * What loads must have no error, and must not differ from itself; what does not load must say why. */
#include "config/diff.h"
#include "config/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void load(struct slice text, const char *name)
{
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    iso_err err = config_load_text(text, name, "/etc/isobar", &config, &diag);
    iso_assert(err == ISO_OK || err == ISO_ERR_INVALID);
    iso_assert(err ? !config && diag.errors > 0 : config && diag.errors == 0);
    for (const struct diag_entry *entry = diag.first; entry; entry = entry->next) {
        struct text line;
        text_init(&line);
        diag_format(entry, &line);
        text_fini(&line);
    }
    if (config) {
        struct arena arena;
        arena_init(&arena);
        iso_assert(config_diff(config, config, &arena) == NULL);
        arena_fini(&arena);
    }
    config_free(config);
    diag_fini(&diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    load(slice_of((const char *)data, len), "fuzz.yaml");
    load(slice_of((const char *)data, len), "fuzz.json");
    return 0;
}
