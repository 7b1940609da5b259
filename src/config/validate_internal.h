/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of validation share. A decoded struct and the node it came from are walked side by side; a
 * value that could not be decoded was reported already, so checks ask the document whether a key is there. */
#ifndef ISOBAR_CONFIG_VALIDATE_INTERNAL_H
#define ISOBAR_CONFIG_VALIDATE_INTERNAL_H

#include "config/names.h"
#include "config/validate.h"

struct validator {
    struct config *config;
    struct doc *doc;
    struct arena *arena; /* of what validation adds: the config's, or that of the part at hand */
    struct names groups; /* names of the target groups */
    struct names certificates;
    bool *used; /* owns; of each target group: something forwards to it */
};

/* The value under `key`, or the map itself when the key is not there: where to point a message at. */
const struct doc_node *validate_at(const struct doc_node *map, const char *key);
bool validate_has(const struct doc_node *map, const char *key);
/* The index of a target group; false after reporting. */
/* Reports a group that cannot serve a listener of that protocol. */
void validate_group_protocol(struct validator *v, enum config_protocol listener, uint32_t group,
                             const struct doc_node *node);
bool validate_group_ref(struct validator *v, struct slice name, const struct doc_node *node, uint32_t *index);

/* Listeners that pass bytes on: what they need and what has no meaning there. */
void validate_relay_listener(struct validator *v, const struct config_listener *listener,
                             const struct doc_node *node);
/* Conditions and actions that the listener's protocol does not know. */
void validate_rule_protocol(struct validator *v, const struct config_listener *listener,
                            const struct doc_node *node);
/* For faults that only show when files are read. */
struct config_place validate_place(struct validator *v, const struct doc_node *node);
void validate_rules(struct validator *v, struct config_listener *listener, const struct doc_node *node);
void validate_rate_limit(struct validator *v, const struct config_rate_limit *limit,
                         const struct doc_node *node);
void validate_shared_state(struct validator *v);
void validate_redirect(struct validator *v, const struct config_redirect *redirect,
                       const struct doc_node *node);
void validate_certificates(struct validator *v);
void validate_listener_tls(struct validator *v, struct config_listener *listener,
                           const struct doc_node *node);
/* Where the group is said to be: it moves when one before it goes. */
void validate_group_place(struct validator *v, struct config_target_group *group,
                          const struct doc_node *node);
void validate_group_tls(struct validator *v, struct config_target_group *group, const struct doc_node *node);
void validate_l4(struct validator *v);
void validate_group(struct validator *v, struct config_target_group *group, const struct doc_node *node);

#define validate_fault(v, node, ...)   doc_fault((v)->doc, DIAG_ERROR, node, __VA_ARGS__)
#define validate_warning(v, node, ...) doc_fault((v)->doc, DIAG_WARNING, node, __VA_ARGS__)

#endif
