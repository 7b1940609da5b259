/* SPDX-License-Identifier: Apache-2.0 */
/* Do two decoded sections say the same? Guided by the schema table, without printing anything in the usual
 * case, and without looking at what is one part of both. */
#ifndef ISOBAR_CONFIG_SAME_H
#define ISOBAR_CONFIG_SAME_H

#include "config/schema.h"

/* Every value of the two holders is the same; lists also in their order. Threads: any. */
bool config_same(const struct schema_section *section, const void *a, const void *b);
/* Two target groups, their targets aside. */
bool config_same_group(const struct config_target_group *a, const struct config_target_group *b);
bool config_same_group_tls(const struct config_target_group *a, const struct config_target_group *b);
bool config_same_admin(const struct config_admin *a, const struct config_admin *b);
bool config_same_certificates(const struct config *a, const struct config *b);
/* Which certificates, and how TLS is spoken. */
bool config_same_listener_tls(const struct config_listener *a, const struct config_listener *b);

#endif
