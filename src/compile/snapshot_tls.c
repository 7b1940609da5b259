/* SPDX-License-Identifier: Apache-2.0 */
#include "compile/snapshot_tls.h"

#include "core/clock.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const struct slice all_alpn[] = {SLICE("h2"), SLICE("http/1.1")};
static const struct slice target_alpn[] = {SLICE("http/1.1")}; /* unless the configuration says more */

static iso_err report(struct iso_diag *diag, const struct config_place *place, const struct tls_fault *fault)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", place->path, fault->key);
    diag_add(diag, DIAG_ERROR, place->file, place->line, place->column, path, "%s", fault->text);
    return ISO_ERR_INVALID;
}

/* Texts of the configuration end in NUL. */
static const char *text_of(struct slice s)
{
    return s.ptr;
}

static void warn_expired(const struct config_certificate *config, const struct tls_cert *cert,
                         struct iso_diag *diag)
{
    int64_t now_s = (int64_t)(clock_wall_ns() / NS_PER_S), end_s = tls_cert_not_after_s(cert);
    int64_t begin_s = tls_cert_not_before_s(cert);
    char when[32];
    struct tm tm;
    if (now_s <= end_s && now_s >= begin_s)
        return;
    time_t t = (time_t)(now_s > end_s ? end_s : begin_s);
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&t, &tm));
    diag_add(diag, DIAG_WARNING, config->place.file, config->place.line, config->place.column,
             config->place.path, "the certificate in %s %s %s",
             config->cert_file.ptr ? text_of(config->cert_file) : "cert_pem",
             now_s > end_s ? "has expired: it was valid until" : "is not valid yet: it begins on", when);
}

_Static_assert((int)CONFIG_AUTH_OPTIONAL == (int)TLS_AUTH_OPTIONAL &&
                   (int)CONFIG_AUTH_REQUIRED == (int)TLS_AUTH_REQUIRED,
               "one is the other's twin above tls/");

static struct tls_policy policy_of(const struct config_clients *clients, enum config_tls_version max_version)
{
    return (struct tls_policy){.has_auth = clients->set,
                               .auth = (enum tls_auth)clients->auth,
                               .ca_file = text_of(clients->ca_file),
                               .crl_file = text_of(clients->crl_file),
                               .max_version = max_version};
}

static iso_err load_cert(const struct config_certificate *config, struct tls_cert **out,
                         struct iso_diag *diag)
{
    const struct tls_cert_files files = {.name = text_of(config->name),
                                         .cert_file = text_of(config->cert_file),
                                         .cert_pem = text_of(config->cert_pem),
                                         .key_pem = text_of(config->key_pem),
                                         .key_file = text_of(config->key_file),
                                         .ocsp_file = text_of(config->ocsp_file),
                                         .policy = policy_of(&config->clients, config->max_version)};
    struct tls_fault fault;
    if (tls_cert_load(&files, out, &fault))
        return report(diag, &config->place, &fault);
    warn_expired(config, *out, diag);
    return ISO_OK;
}

/* All of them, so that every fault shows; those that failed stay NULL. */
static iso_err load_certs(const struct config *config, struct tls_cert **certs, struct iso_diag *diag)
{
    iso_err err = ISO_OK;
    for (uint32_t i = 0; i < config->n_certificates; i++)
        if (load_cert(&config->certificates[i], &certs[i], diag))
            err = ISO_ERR_INVALID;
    return err;
}

static iso_err make_server(const struct config_listener *config, struct tls_cert **certs, struct arena *arena,
                           struct tls_server **out, struct iso_diag *diag)
{
    const struct config_listener_tls *tls = &config->tls;
    struct tls_cert **chosen = arena_array(arena, struct tls_cert *, config->n_certificates);
    const char **tickets = arena_array(arena, const char *, tls->n_ticket_key_files + 1);
    for (uint32_t i = 0; i < config->n_certificates; i++)
        chosen[i] = certs[config->certificates[i]];
    for (uint32_t i = 0; i < tls->n_ticket_key_files; i++)
        tickets[i] = text_of(tls->ticket_key_files[i]);
    const struct tls_server_options options = {.name = config->name,
                                               .certs = chosen,
                                               .n_certs = config->n_certificates,
                                               .alpn = tls->n_alpn ? tls->alpn : all_alpn,
                                               .n_alpn = tls->n_alpn ? tls->n_alpn : iso_countof(all_alpn),
                                               .min_version = tls->min_version,
                                               .max_version = tls->max_version,
                                               .ciphers = text_of(tls->ciphers),
                                               .ciphersuites = text_of(tls->ciphersuites),
                                               .groups = text_of(tls->groups),
                                               .policy = policy_of(&tls->clients, CONFIG_TLS_UNSET),
                                               .ticket_files = tickets,
                                               .n_ticket_files = tls->n_ticket_key_files};
    struct tls_fault fault;
    if (tls_server_new(&options, out, &fault))
        return report(diag, &tls->place, &fault);
    return ISO_OK;
}

static iso_err make_client(const struct config_target_group *config, struct tls_client **out,
                           struct iso_diag *diag)
{
    const struct config_group_tls *tls = &config->tls;
    const struct tls_client_options options = {.verify = tls->verify,
                                               .ca_file = text_of(tls->ca_file),
                                               .sni = text_of(tls->sni),
                                               .cert_file = text_of(tls->cert_file),
                                               .key_file = text_of(tls->key_file),
                                               .alpn = tls->n_alpn ? tls->alpn : target_alpn,
                                               .n_alpn =
                                                   tls->n_alpn ? tls->n_alpn : iso_countof(target_alpn)};
    struct tls_fault fault;
    if (config->protocol != CONFIG_HTTPS || !tls_client_new(&options, out, &fault))
        return ISO_OK;
    return report(diag, &tls->place, &fault);
}

iso_err snapshot_add_group_tls(struct snap_group *group, const struct snap_group *earlier,
                               struct iso_diag *diag)
{
    if (!earlier)
        return make_client(group->config, &group->tls, diag);
    group->tls = earlier->tls ? tls_client_ref(earlier->tls) : NULL;
    return ISO_OK;
}

iso_err snapshot_add_shared_tls(struct snapshot *snapshot, struct iso_diag *diag)
{
    const struct config_shared_state *shared = &snapshot->config->shared_state;
    struct ip_addr ip;
    const char *host = text_of(shared->server.host);
    const struct tls_client_options options = {.verify = true,
                                               .ca_file = text_of(shared->ca_file),
                                               .sni = ip_parse(shared->server.host, &ip) ? NULL : host};
    const struct config_place place = {.file = "", .path = "/shared_state"};
    struct tls_fault fault;
    if (!shared->server.is_tls || !tls_client_new(&options, &snapshot->shared_tls, &fault))
        return ISO_OK;
    return report(diag, &place, &fault);
}

iso_err snapshot_load_certs(struct snapshot *snapshot, const struct snapshot *earlier, struct iso_diag *diag)
{
    uint32_t n = snapshot->config->n_certificates;
    struct snap_certs *set =
        earlier ? earlier->cert_set : calloc(1, sizeof(*set) + n * sizeof(set->certs[0]));
    iso_assert(set != NULL);
    set->refs++;
    set->n = n;
    snapshot->cert_set = set;
    snapshot->certs = set->certs;
    snapshot->n_certs = n;
    return earlier ? ISO_OK : load_certs(snapshot->config, set->certs, diag);
}

void snapshot_release_certs(struct snapshot *snapshot)
{
    struct snap_certs *set = snapshot->cert_set;
    snapshot->cert_set = NULL;
    if (!set || --set->refs > 0)
        return;
    for (uint32_t i = 0; i < set->n; i++)
        tls_cert_free(set->certs[i]);
    free(set);
}

iso_err snapshot_add_tls(struct snapshot *snapshot, struct snap_listener *listener,
                         const struct snap_listener *earlier, struct iso_diag *diag)
{
    if (listener->config->protocol != CONFIG_HTTPS)
        return ISO_OK;
    if (earlier) {
        listener->tls = tls_server_ref(earlier->tls);
        return ISO_OK;
    }
    return make_server(listener->config, snapshot->certs, &snapshot->arena, &listener->tls, diag);
}

void snapshot_warn_expiring(const struct snapshot *snapshot)
{
    enum { WARN_DAYS = 14, DAY_S = 86400 };
    int64_t now_s = (int64_t)(clock_wall_ns() / NS_PER_S);
    for (uint32_t i = 0; i < snapshot->n_certs; i++) {
        const struct config_certificate *config = &snapshot->config->certificates[i];
        int64_t left_s = tls_cert_not_after_s(snapshot->certs[i]) - now_s;
        if (left_s < 0)
            log_warning("certificate %.*s has expired", SLICE_ARG(config->name));
        else if (left_s < WARN_DAYS * DAY_S)
            log_warning("certificate %.*s expires in %d days", SLICE_ARG(config->name),
                        (int)(left_s / DAY_S));
    }
}

iso_err snapshot_check_tls(const struct config *config, struct iso_diag *diag)
{
    struct arena arena;
    arena_init(&arena);
    struct tls_cert **certs = arena_array(&arena, struct tls_cert *, config->n_certificates + 1);
    iso_err err = load_certs(config, certs, diag);
    for (uint32_t l = 0; l < config->n_load_balancers && !err; l++)
        for (uint32_t i = 0; i < config->load_balancers[l].n_listeners && !err; i++) {
            const struct config_listener *listener = &config->load_balancers[l].listeners[i];
            struct tls_server *server = NULL;
            if (listener->protocol == CONFIG_HTTPS)
                err = make_server(listener, certs, &arena, &server, diag);
            if (server)
                tls_server_unref(&server);
        }
    for (uint32_t g = 0; g < config->n_target_groups; g++) {
        struct tls_client *client = NULL;
        if (make_client(&config->target_groups[g], &client, diag))
            err = ISO_ERR_INVALID;
        if (client)
            tls_client_unref(&client);
    }
    for (uint32_t i = 0; i < config->n_certificates; i++)
        tls_cert_free(certs[i]);
    arena_fini(&arena);
    return err;
}
