/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of the schema table. Each section names its holder in HOLDER; each line is KIND(key, field,
 * ..., text for the reference). The macros check that the field has the type which the kind writes. */
#ifndef ISOBAR_CONFIG_SCHEMA_TABLE_H
#define ISOBAR_CONFIG_SCHEMA_TABLE_H

#include "config/checks.h"
#include "config/schema.h"
#include "config/secret.h"
#include "config/types.h"

/* schema_listener.c */
extern const struct schema_section schema_load_balancer, schema_rule;
/* schema_limit.c */
/* schema_guard.c */
extern const struct schema_section schema_sources, schema_connection_rate, schema_hsts, schema_jwt,
    schema_basic_auth;
extern const struct schema_section schema_rate_limit, schema_shared_state;
/* schema_group.c */
extern const struct schema_section schema_target_group;
/* schema_l4.c */
extern const struct schema_section schema_node, schema_l4, schema_decap;
/* schema.c */
extern const struct schema_section schema_certificate, schema_listener_tls, schema_group_tls;

#define FIELD(field, type)                                                                                   \
    (uint32_t)(offsetof(HOLDER, field) +                                                                     \
               0 * sizeof(char[__builtin_types_compatible_p(typeof(((HOLDER *)0)->field), type) ? 1 : -1]))
#define WIDTH(field) (uint32_t)sizeof(((HOLDER *)0)->field)

#define KEY(key, kind, text) .name = (key), .type = &(kind), .present_offset = SCHEMA_NO_OFFSET, .doc = (text)

#define NUMBER(key, field, least, most, standard, text)                                                      \
    {                                                                                                        \
        KEY(key, type_number, text), .offset = offsetof(HOLDER, field), .size = WIDTH(field),                \
                                     .min = (least), .max = (most), .default_text = (standard)               \
    }
#define SECONDS(key, field, least_ms, most_ms, standard, text)                                               \
    {                                                                                                        \
        KEY(key, type_seconds, text), .offset = FIELD(field, uint32_t), .size = WIDTH(field),                \
                                      .min = (least_ms), .max = (most_ms), .default_text = (standard)        \
    }
#define FLAG(key, field, standard, text)                                                                     \
    {                                                                                                        \
        KEY(key, type_flag, text), .offset = FIELD(field, bool), .default_text = (standard)                  \
    }
#define TEXT(key, field, checker, wanted, standard, text)                                                    \
    {                                                                                                        \
        KEY(key, type_text, text), .offset = FIELD(field, struct slice), .check = (checker),                 \
                                   .expected = (wanted), .default_text = (standard)                          \
    }
#define REQUIRED_TEXT(key, field, checker, wanted, text)                                                     \
    {                                                                                                        \
        KEY(key, type_text, text), .offset = FIELD(field, struct slice), .check = (checker),                 \
                                   .expected = (wanted), .required = true                                    \
    }
#define CHOICE(key, field, table, standard, text)                                                            \
    {                                                                                                        \
        KEY(key, type_choice, text), .offset = offsetof(HOLDER, field), .size = WIDTH(field),                \
                                     .choices = (table), .default_text = (standard)                          \
    }
#define TEXTS(key, field, count, checker, wanted, text)                                                      \
    {                                                                                                        \
        KEY(key, type_texts, text), .offset = FIELD(field, struct slice *),                                  \
                                    .count_offset = FIELD(count, uint32_t), .check = (checker),              \
                                    .expected = (wanted)                                                     \
    }
#define PREFIXES(key, field, count, text)                                                                    \
    {                                                                                                        \
        KEY(key, type_prefixes, text), .offset = FIELD(field, struct ip_prefix *),                           \
                                       .count_offset = FIELD(count, uint32_t)                                \
    }
#define PAIRS(key, field, count, name_checker, checker, wanted, text)                                        \
    {                                                                                                        \
        KEY(key, type_pairs, text), .offset = FIELD(field, struct config_pair *),                            \
                                    .count_offset = FIELD(count, uint32_t), .check_name = (name_checker),    \
                                    .check = (checker), .expected = (wanted)                                 \
    }
/* PAIRS of which some let somebody in, as their names say. */
#define CREDENTIALS(key, field, count, name_checker, checker, wanted, text)                                  \
    {                                                                                                        \
        KEY(key, type_pairs, text), .offset = FIELD(field, struct config_pair *),                            \
                                    .count_offset = FIELD(count, uint32_t), .check_name = (name_checker),    \
                                    .check = (checker), .expected = (wanted), .secret = secret_by_name       \
    }
#define SECTION(key, field, table, text)                                                                     \
    {                                                                                                        \
        KEY(key, type_section, text), .offset = offsetof(HOLDER, field), .section = &(table)                 \
    }
/* A section whose keys belong to the same holder. */
#define GROUPING(key, table, text)                                                                           \
    {                                                                                                        \
        KEY(key, type_section, text), .section = &(table)                                                    \
    }
#define OPTIONAL(key, field, present, table, text)                                                           \
    {                                                                                                        \
        .name = (key), .type = &type_section, .present_offset = FIELD(present, bool),                        \
        .offset = offsetof(HOLDER, field), .section = &(table), .optional = true, .doc = (text)              \
    }
#define ITEMS(key, field, count, table, text)                                                                \
    {                                                                                                        \
        KEY(key, type_items, text), .offset = offsetof(HOLDER, field),                                       \
                                    .count_offset = FIELD(count, uint32_t), .section = &(table)              \
    }
#define END                                                                                                  \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

#define MINUTE_MS 60000
#define HOUR_MS   3600000
#define DAY_MS    86400000

#endif
