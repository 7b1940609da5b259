/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners that relay: TCP knows nothing of what it passes on, TLS what the ClientHello says. */
#include "config/validate_internal.h"

static void refuse_keys(struct validator *v, const struct doc_node *node, const char *const *keys, size_t n,
                        const char *where)
{
    for (size_t i = 0; i < n; i++)
        if (validate_has(node, keys[i]))
            validate_fault(v, doc_get(node, keys[i]), "belongs to listeners with protocol: %s", where);
}

void validate_relay_listener(struct validator *v, const struct config_listener *listener,
                             const struct doc_node *node)
{
    static const char *const http_only[] = {"redirect", "security_headers", "http2", "rules"};
    bool is_tls = listener->protocol == CONFIG_TLS, has_default = validate_has(node, "default_target_group");
    const char *name = is_tls ? "TLS" : listener->protocol == CONFIG_UDP ? "UDP" : "TCP";
    for (size_t i = 0; i < (is_tls ? 3 : 4); i++)
        if (validate_has(node, http_only[i]))
            validate_fault(v, doc_get(node, http_only[i]),
                           "belongs to listeners with protocol: HTTP or HTTPS, but this one has %s", name);
    if (!is_tls && !has_default)
        validate_fault(v, node,
                       "has protocol: %s and no \"default_target_group\", expected the group to connect to",
                       name);
    if (listener->protocol == CONFIG_UDP && validate_has(node, "unix"))
        validate_fault(v, doc_get(node, "unix"), "has no datagrams, expected a port with protocol: UDP");
    if (listener->protocol == CONFIG_UDP && validate_has(node, "proxy_protocol"))
        validate_fault(v, doc_get(node, "proxy_protocol"),
                       "is of connections, but this listener has protocol: UDP");
    if (is_tls && !has_default && !validate_has(node, "rules"))
        validate_fault(v, node, "would take no connection, expected default_target_group or rules");
}

void validate_rule_protocol(struct validator *v, const struct config_listener *listener,
                            const struct doc_node *node)
{
    static const char *const http_rule[] = {"redirect", "respond", "rewrite",   "rate_limit",
                                            "sources",  "jwt",     "basic_auth"};
    static const char *const http_match[] = {"host",    "path",    "path_prefix", "path_regex",
                                             "methods", "headers", "cookies",     "query"};
    static const char *const tls_match[] = {"sni", "alpn"};
    const struct doc_node *match = doc_get(node, "match");
    if (listener->protocol == CONFIG_TLS) {
        refuse_keys(v, node, http_rule, iso_countof(http_rule), "HTTP or HTTPS, but this one has TLS");
        refuse_keys(v, match, http_match, iso_countof(http_match), "HTTP or HTTPS, but this one has TLS");
    } else {
        refuse_keys(v, match, tls_match, iso_countof(tls_match),
                    "TLS, which looks at nothing else; here the match for a name is \"host\"");
    }
}
