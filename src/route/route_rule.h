/* SPDX-License-Identifier: Apache-2.0 */
/* One compiled rule: where it stands in the order of precedence, and the conditions that are left to check
 * once host and path have led to it. Private to route*.c. */
#ifndef ISOBAR_ROUTE_ROUTE_RULE_H
#define ISOBAR_ROUTE_ROUTE_RULE_H

#include "config/model.h"
#include "core/diag.h"
#include "http/message.h"
#include "route/route.h"
#include "route/route_pattern.h"

enum route_host_class { ROUTE_HOST_EXACT, ROUTE_HOST_WILDCARD, ROUTE_HOST_ANY };
enum route_path_class { ROUTE_PATH_EXACT, ROUTE_PATH_PREFIX, ROUTE_PATH_REGEX, ROUTE_PATH_ANY };

struct route_header {
    uint8_t id;
    bool any_value;
    const struct config_pair *want; /* borrows from the config, as all below */
};

struct route_rule {
    const struct config_rule *rule;
    uint8_t host_class, path_class;
    struct slice host; /* of a wildcard: what stands behind the '*' */
    struct slice path; /* exact, or the prefix without its last '/' */
    uint32_t order;    /* in the file */

    bool is_free;            /* nothing below needs checking */
    uint32_t n_conditions;   /* beside host and path: more of them go first */
    uint32_t methods;        /* bits of enum http_method; 0: any, unless there are other_methods */
    bool other_methods;      /* some are not in the enum: compare texts */
    struct pattern *pattern; /* owns; NULL: none */
    struct route_header *headers;
};

struct route_request {
    struct http_message *message;
    const struct ip_addr *client;
    struct slice path;
    struct pattern_scratch *patterns;
    uint64_t gave_up;            /* patterns that reached their limit */
    uint32_t missed;             /* which header, cookie or parameter, when route_rule_miss() names one */
    struct route_verdict *trace; /* NULL: nobody asks; of the rules that were tried */
    uint32_t n_traced;
};

/* ISO_ERR_INVALID and an entry in `diag` when the rule's pattern does not compile. `out` is zeroed memory;
 * route_rule_fini() is due in either case. */
iso_err route_rule_init(const struct config_listener *listener, uint32_t index, struct arena *arena,
                        struct route_rule *out, struct iso_diag *diag) ISO_MUST_USE;
void route_rule_fini(struct route_rule *rule);

/* The first condition that does not hold, of all but host and the path's class. */
enum route_miss route_rule_miss(const struct route_rule *rule, struct route_request *request);

#endif
