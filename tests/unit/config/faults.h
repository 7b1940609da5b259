/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of messages: what loading a text reports, line by line. */
#ifndef ISOBAR_TESTS_CONFIG_FAULTS_H
#define ISOBAR_TESTS_CONFIG_FAULTS_H

#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* All entries, each as diag_format() writes it and a line end. Owns: the caller, by text_fini(). */
static inline struct text faults_of(const char *name, struct slice yaml)
{
    struct iso_diag diag;
    struct config *config = NULL;
    struct text out;
    diag_init(&diag);
    text_init(&out);
    iso_err err = config_load_text(yaml, name, "/etc/isobar", &config, &diag);
    assert_true(err == ISO_OK ? config && diag.errors == 0 : !config && diag.errors > 0);
    for (const struct diag_entry *entry = diag.first; entry; entry = entry->next) {
        struct text line;
        text_init(&line);
        diag_format(entry, &line);
        text_printf(&out, "%s\n", line.data);
        text_fini(&line);
    }
    config_free(config);
    diag_fini(&diag);
    return out;
}

/* The text reports exactly these lines; "" is none. */
static inline void expect_faults(const char *yaml, const char *expected)
{
    struct text faults = faults_of("f", slice_str(yaml));
    assert_string_equal(faults.len ? faults.data : "", expected);
    text_fini(&faults);
}

/* Loads a text without errors. Owns: the caller, by config_free(). */
static inline struct config *load_good(const char *yaml)
{
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    iso_err err = config_load_text(slice_str(yaml), "good", "/etc/isobar", &config, &diag);
    if (err)
        fail_msg("%s: %s", diag.first->path, diag.first->message);
    diag_fini(&diag);
    return config;
}

#endif
