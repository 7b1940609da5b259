/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of values of the schema: how each is read from a document, printed and described. */
#ifndef ISOBAR_CONFIG_TYPES_H
#define ISOBAR_CONFIG_TYPES_H

#include "config/schema.h"

extern const struct schema_type type_number; /* uint16_t, uint32_t or uint64_t, min..max */
extern const struct schema_type
    type_seconds;                          /* uint32_t of milliseconds; the file has seconds; bounds in ms */
extern const struct schema_type type_flag; /* bool */
extern const struct schema_type type_text; /* struct slice */
extern const struct schema_type type_choice;   /* an enum, by key->choices */
extern const struct schema_type type_address;  /* struct ip_addr */
extern const struct schema_type type_endpoint; /* struct config_endpoint; "off": all zero */

/* A list, or one value alone; count_offset has the number. */
extern const struct schema_type type_texts;    /* struct slice * */
extern const struct schema_type type_prefixes; /* struct ip_prefix * */
extern const struct schema_type type_switches; /* bools, by the offsets in key->choices */
extern const struct schema_type type_statuses; /* struct config_status_range *, "200-399,404" */

extern const struct schema_type type_pairs;    /* map of texts: struct config_pair *, count_offset */
extern const struct schema_type type_hash_key; /* config_target_group.hash_kind and hash_name */

extern const struct schema_type type_section; /* a struct inside the holder */
extern const struct schema_type type_items;   /* list of sections: pointer to structs, count_offset */

#endif
