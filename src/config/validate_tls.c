/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and the TLS settings of listeners, as far as no file is needed for it: what the files hold is
 * looked at when a snapshot is built and by `isobar check`. */
#include "config/validate_internal.h"

#include "config/suggest.h"

enum { SUGGESTED_MAX = 1000 };

struct config_place validate_place(struct validator *v, const struct doc_node *node)
{
    return (struct config_place){.file = arena_str(&v->config->arena, v->doc->name ? v->doc->name : ""),
                                 .path = doc_path(node, &v->config->arena),
                                 .line = node->line,
                                 .column = node->column};
}

/* A choice that goes without saying, and what contradicts itself. */
static void settle_clients(struct validator *v, struct config_clients *clients, const struct doc_node *node)
{
    bool has_auth = validate_has(node, "client_auth"), has_ca = clients->ca_file.ptr != NULL;
    clients->set = has_auth || validate_has(node, "client_ca_file") || validate_has(node, "crl_file");
    if (!has_auth && has_ca)
        clients->auth = CONFIG_AUTH_REQUIRED;
    if (has_auth && clients->auth != CONFIG_AUTH_NONE && !validate_has(node, "client_ca_file"))
        validate_fault(v, doc_get(node, "client_auth"),
                       "asks for certificates, but there is no client_ca_file to verify them by");
    if (!has_ca && validate_has(node, "crl_file"))
        validate_fault(v, doc_get(node, "crl_file"), "stands without client_ca_file");
}

/* Files, or texts. */
static void check_material(struct validator *v, const struct doc_node *node)
{
    bool has_file = validate_has(node, "cert_file"), has_pem = validate_has(node, "cert_pem");
    if (!has_file && !has_pem)
        validate_fault(v, node,
                       "has no \"cert_file\": PEM: the certificate, then its chain; nor \"cert_pem\" in its "
                       "place");
    else if (has_file && has_pem)
        validate_fault(v, doc_get(node, "cert_pem"), "stands beside cert_file, expected one of them");
    else if (has_file && validate_has(node, "key_pem"))
        validate_fault(v, doc_get(node, "key_pem"), "belongs to cert_pem; expected key_file");
    else if (has_pem && validate_has(node, "key_file"))
        validate_fault(v, doc_get(node, "key_file"), "belongs to cert_file; expected key_pem");
}

void validate_certificates(struct validator *v)
{
    const struct doc_node *node = doc_get(v->doc->root, "certificates");
    node = node ? node->first : NULL;
    for (uint32_t i = 0; i < v->config->n_certificates; i++, node = node->next) {
        struct config_certificate *certificate = &v->config->certificates[i];
        certificate->place = validate_place(v, node);
        settle_clients(v, &certificate->clients, node);
        if (node->kind == DOC_MAP)
            check_material(v, node);
        if (certificate->name.ptr)
            names_add(&v->certificates, certificate->name, i, doc_get(node, "name"));
    }
    names_sort(&v->certificates);
}

static void resolve(struct validator *v, struct config_listener *listener, const struct doc_node *node)
{
    const struct doc_node *list = doc_get(node, "certificates");
    const struct doc_node *item = list && list->kind == DOC_LIST ? list->first : list;
    listener->certificates = arena_array(&v->config->arena, uint32_t, listener->n_certificates + 1);
    for (uint32_t i = 0; i < listener->n_certificates; i++, item = item->next ? item->next : item) {
        struct slice wanted = listener->certificate_names[i];
        const struct name *found = names_find(&v->certificates, wanted);
        if (found) {
            listener->certificates[i] = found->index;
            continue;
        }
        struct suggestion near = {0};
        for (uint32_t j = 0; j < v->certificates.n && j < SUGGESTED_MAX && !doc_is_full(v->doc); j++)
            suggest_offer(&near, wanted, v->certificates.all[j].text.ptr);
        validate_fault(v, item, "is \"%.*s\", but no certificate has that name%s%s%s", SLICE_ARG(wanted),
                       near.name                ? "; did you mean \""
                       : v->certificates.n == 0 ? "; there are no certificates"
                                                : "",
                       near.name ? near.name : "", near.name ? "\"?" : "");
    }
}

static const char *name_of(enum config_protocol protocol)
{
    switch (protocol) {
    case CONFIG_HTTP:
        return "HTTP";
    case CONFIG_HTTPS:
        return "HTTPS";
    case CONFIG_TCP:
        return "TCP";
    case CONFIG_TLS:
        return "TLS, which is not decrypted";
    case CONFIG_UDP:
        return "UDP";
    case CONFIG_H2C:
        return "H2C";
    case CONFIG_GRPC:
        return "GRPC";
    }
    return "";
}

void validate_listener_tls(struct validator *v, struct config_listener *listener, const struct doc_node *node)
{
    bool is_tls = listener->protocol == CONFIG_HTTPS;
    const struct doc_node *tls = doc_get(node, "tls");
    listener->tls.place = validate_place(v, tls ? tls : node);
    if (!is_tls && (tls || validate_has(node, "certificates")))
        validate_fault(v, tls ? tls : doc_get(node, "certificates"),
                       "belongs to listeners with protocol: HTTPS, but this one has %s%s",
                       name_of(listener->protocol), validate_has(node, "protocol") ? "" : " (the default)");
    if (!is_tls && listener->hsts.set)
        validate_fault(
            v, doc_get(node, "hsts"),
            "belongs to listeners with protocol: HTTPS, but this one has %s%s: browsers believe it "
            "over TLS only",
            name_of(listener->protocol), validate_has(node, "protocol") ? "" : " (the default)");
    if (is_tls && !validate_has(node, "certificates"))
        validate_fault(v, validate_at(node, "protocol"),
                       "is HTTPS without certificates, expected the name of one at least");
    else if (is_tls && listener->n_certificates == 0)
        validate_fault(v, doc_get(node, "certificates"), "is empty, expected the name of one at least");
    if (listener->tls.min_version > listener->tls.max_version)
        validate_fault(v, validate_at(tls, "max_version"), "is older than min_version");
    settle_clients(v, &listener->tls.clients, tls);
    resolve(v, listener, node);
}

/* Targets of one name show a certificate for it, unless another is asked for. */
static void settle_sni(struct validator *v, struct config_target_group *group, const struct doc_node *list)
{
    struct slice host = {0};
    const struct doc_node *item = list ? list->first : NULL;
    if (!group->tls.verify || group->tls.sni.ptr)
        return;
    for (uint32_t i = 0; i < group->n_targets; i++, item = item->next) {
        struct slice other = group->targets[i].host;
        if (group->targets[i].srv.ptr || (host.ptr && !slice_eq(host, other)) ||
            (i > 0 && !host.ptr && other.ptr))
            validate_fault(v, item,
                           "is not the only name in the group, so which one certificates must show is open; "
                           "expected tls.sni, or tls.verify: false");
        else
            host = other;
    }
    group->tls.sni = host;
}

void validate_group_place(struct validator *v, struct config_target_group *group, const struct doc_node *node)
{
    const struct doc_node *tls = doc_get(node, "tls");
    if (group->protocol == CONFIG_HTTPS)
        group->tls.place = validate_place(v, tls ? tls : node);
}

void validate_group_tls(struct validator *v, struct config_target_group *group, const struct doc_node *node)
{
    const struct doc_node *tls = doc_get(node, "tls"), *list = doc_get(node, "targets");
    const struct doc_node *item = list ? list->first : NULL;
    bool is_tls = group->protocol == CONFIG_HTTPS;
    if (!is_tls && tls)
        validate_fault(v, tls, "belongs to target groups with protocol: HTTPS, but this one has %s%s",
                       name_of(group->protocol), validate_has(node, "protocol") ? "" : " (the default)");
    if (is_tls && group->tls.key_file.ptr && !group->tls.cert_file.ptr)
        validate_fault(v, doc_get(tls, "key_file"), "stands without cert_file");
    if (is_tls)
        settle_sni(v, group, list);
    for (uint32_t i = 0; i < group->n_targets; i++, item = item->next)
        if (is_tls && group->tls.verify && !group->tls.sni.ptr && group->targets[i].endpoint.unix_path.ptr)
            validate_fault(
                v, item,
                "is a unix socket, which no certificate can name; expected tls.sni, or tls.verify: "
                "false");
}
