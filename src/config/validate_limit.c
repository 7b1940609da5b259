/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limits: keys that go together, and numbers that come to a rate which can be counted. The shared state:
 * a URL that can be used. */
#include "config/validate_internal.h"

enum { KEY_PARTS_MAX = 4, REFILL_MAX_S = 30 * 86400 };

static void check_key(struct validator *v, const struct config_rate_limit *limit, const struct doc_node *key)
{
    if (limit->n_key > KEY_PARTS_MAX)
        validate_fault(v, key, "has %u parts, expected %d at most", limit->n_key, KEY_PARTS_MAX);
    for (uint32_t i = 0; i < limit->n_key; i++) {
        if (limit->n_key > 1 && slice_eq(limit->key[i], SLICE("all")))
            validate_fault(v, key, "names all beside other parts, expected it alone");
        for (uint32_t j = 0; j < i; j++)
            if (slice_eq(limit->key[i], limit->key[j]))
                validate_fault(v, key, "names %.*s twice", SLICE_ARG(limit->key[i]));
    }
}

void validate_rate_limit(struct validator *v, const struct config_rate_limit *limit,
                         const struct doc_node *node)
{
    if (node->kind != DOC_MAP)
        return;
    uint64_t burst = limit->burst ? limit->burst : limit->requests;
    if (validate_has(node, "key"))
        check_key(v, limit, doc_get(node, "key"));
    if (limit->algorithm == CONFIG_LIMIT_SLIDING_WINDOW && limit->burst)
        validate_fault(v, doc_get(node, "burst"), "is for token_bucket, expected none with sliding_window");
    if (limit->scope == CONFIG_LIMIT_FLEET && !v->config->shared_state.set)
        validate_fault(v, doc_get(node, "scope"), "is fleet, but there is no shared_state to count in");
    if (limit->requests && burst * limit->period_ms / limit->requests > REFILL_MAX_S * 1000ull)
        validate_fault(v, validate_at(node, "burst"),
                       "of %u would take more than 30 days to fill at %u requests in %u s, expected less",
                       limit->burst, limit->requests, limit->period_ms / 1000);
}

void validate_shared_state(struct validator *v)
{
    struct config_shared_state *shared = &v->config->shared_state;
    const struct doc_node *node = doc_get(v->doc->root, "shared_state");
    const char *why;
    if (!shared->url.ptr)
        return;
    if (!redis_url_parse(shared->url, &v->config->arena, &shared->server, &why))
        validate_fault(v, doc_get(node, "url"), "is no URL of a Redis, %s", why);
    else if (shared->ca_file.ptr && !shared->server.is_tls)
        validate_fault(v, doc_get(node, "ca_file"), "is for rediss://, but the url is redis://");
}
