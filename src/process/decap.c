/* SPDX-License-Identifier: Apache-2.0 */
#include "process/decap.h"

#include "core/log.h"
#include "core/text.h"
#include "l4/decap.h"
#include "l4/loader.h"

#include <stdio.h>
#include <stdlib.h>

struct decap {
    struct text attached; /* everything that the kernel was given last, to see whether it changed */
    struct text pin;      /* of the configuration in force; empty: none is attached */
};

struct decap *decap_new(void)
{
    struct decap *decap = calloc(1, sizeof(*decap));
    iso_assert(decap != NULL);
    text_init(&decap->attached);
    text_init(&decap->pin);
    return decap;
}

static void print_ip(struct text *out, const struct ip_addr *ip)
{
    char text[IP_TEXT_MAX];
    int n = (int)ip_print(ip, text);
    text_printf(out, " %.*s", n, text);
}

static void describe(const struct config *config, struct text *out)
{
    const struct config_decap *c = &config->decap;
    text_printf(out, "%.*s %d %u", SLICE_ARG(c->pin), c->mode, c->gue_port);
    for (uint32_t i = 0; i < c->n_interfaces; i++)
        text_printf(out, " %.*s", SLICE_ARG(c->interfaces[i]));
    for (uint32_t i = 0; i < c->n_vips; i++)
        print_ip(out, &c->vips[i].addr);
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        text_printf(out, " %u", config->nodes[i].server_id);
        print_ip(out, &config->nodes[i].ip);
    }
}

static iso_err attach(const struct config *config, struct iso_diag *diag)
{
    const struct config_decap *c = &config->decap;
    struct arena arena;
    arena_init(&arena);
    struct ip_addr *vips = arena_array(&arena, struct ip_addr, c->n_vips + 1);
    struct l4_spec_real *hops = arena_array(&arena, struct l4_spec_real, config->n_nodes + 1);
    for (uint32_t i = 0; i < c->n_vips; i++)
        vips[i] = c->vips[i].addr;
    for (uint32_t i = 0; i < config->n_nodes; i++)
        hops[i] =
            (struct l4_spec_real){.ip = config->nodes[i].ip, .server_ids = {config->nodes[i].server_id}};
    const struct l4_decap wanted = {.interfaces = c->interfaces,
                                    .n_interfaces = c->n_interfaces,
                                    .vips = vips,
                                    .n_vips = c->n_vips,
                                    .pin = c->pin,
                                    .mode = (enum l4_mode)c->mode,
                                    .gue_port = c->gue_port,
                                    .hops = hops,
                                    .n_hops = config->n_nodes};
    iso_err err = l4_decap_attach(&wanted, diag);
    arena_fini(&arena);
    return err;
}

/* The packet tier's words for faults, under the key that they are about here. */
static void retell(struct iso_diag *diag, const struct iso_diag *from)
{
    for (const struct diag_entry *entry = from->first; entry; entry = entry->next) {
        bool is_l4 = !strncmp(entry->path, "/l4", 3);
        char path[256];
        snprintf(path, sizeof(path), "%s%s", is_l4 ? "/decap" : "", entry->path + (is_l4 ? 3 : 0));
        diag_add(diag, entry->severity, entry->file, entry->line, entry->column, path, "%s", entry->message);
    }
}

iso_err decap_apply(struct decap *decap, const struct config *config, struct iso_diag *diag)
{
    struct text wanted;
    iso_err err = ISO_OK;
    if (!config->decap.set)
        return ISO_OK;
    text_init(&wanted);
    describe(config, &wanted);
    if (!slice_eq(text_slice(&wanted), text_slice(&decap->attached))) {
        struct iso_diag faults;
        diag_init(&faults);
        err = attach(config, &faults);
        retell(diag, &faults);
        diag_fini(&faults);
        /* A half of it may be attached after a fault: then nothing is known, and the next attempt is whole.
         */
        decap->attached.len = 0;
        if (!err)
            text_add(&decap->attached, text_slice(&wanted));
    }
    text_fini(&wanted);
    return err;
}

static void detach(struct decap *decap)
{
    struct iso_diag diag;
    diag_init(&diag);
    if (decap->pin.len && l4_loader_detach(decap->pin.data, &diag))
        log_error("decap: %s: %s", decap->pin.data, diag.first ? diag.first->message : "cannot detach");
    diag_fini(&diag);
    decap->pin.len = 0;
}

void decap_settle(struct decap *decap, const struct config *config)
{
    const struct config_decap *c = &config->decap;
    if (!c->set || !slice_eq(c->pin, text_slice(&decap->pin))) {
        detach(decap);
        if (!c->set) {
            decap->attached.len = 0;
            return;
        }
        text_add(&decap->pin, c->pin);
        log_notice("decap: %u VIPs on %u interfaces, pinned in %s", c->n_vips, c->n_interfaces,
                   decap->pin.data);
    }
    l4_decap_leave_others(decap->pin.data, c->interfaces, c->n_interfaces);
}

void decap_free(struct decap **decap, bool is_succeeded)
{
    if (!is_succeeded)
        detach(*decap);
    text_fini(&(*decap)->attached);
    text_fini(&(*decap)->pin);
    free(*decap);
    *decap = NULL;
}
