/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for loader.c, attach.c, decap.c and kernel_routes.c in a build without libbpf, libmnl, clang or
 * bpftool: everything says so. */
#include "l4/decap.h"
#include "l4/kernel_routes.h"
#include "l4/loader.h"

static iso_err absent(struct iso_diag *diag)
{
    diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4",
             "this isobar was built without the packet tier: libbpf, libmnl, clang and bpftool are needed "
             "(-Dl4=enabled "
             "says which is missing)");
    return ISO_ERR_UNSUPPORTED;
}

iso_err l4_loader_open(const struct l4_spec *spec, struct l4_loader **loader, struct iso_diag *diag)
{
    return absent(diag);
}

iso_err l4_loader_peek(const char *pin, struct l4_loader **loader, struct iso_diag *diag)
{
    return absent(diag);
}

iso_err l4_kernel_routes_set(uint32_t table, const struct ip_prefix *wanted, uint32_t n,
                             struct iso_diag *diag)
{
    return absent(diag);
}

iso_err l4_loader_detach(const char *pin, struct iso_diag *diag)
{
    return absent(diag);
}

void l4_decap_leave_others(const char *pin, const struct slice *interfaces, uint32_t n) {}

iso_err l4_loader_attach(struct l4_loader *loader, uint32_t *replaced, struct iso_diag *diag)
{
    return absent(diag);
}

uint32_t l4_loader_attachments(const char *pin, struct l4_attachment *out, uint32_t cap)
{
    return 0;
}

void l4_loader_close(struct l4_loader *loader)
{
    iso_assert(loader == NULL);
}

const struct l4_view *l4_loader_view(const struct l4_loader *loader)
{
    iso_unreachable("no loader was ever opened");
}

bool l4_loader_took_over(const struct l4_loader *loader)
{
    iso_unreachable("no loader was ever opened");
}

uint32_t l4_loader_tick(struct l4_loader *loader)
{
    iso_unreachable("no loader was ever opened");
}

int l4_loader_program(const struct l4_loader *loader)
{
    iso_unreachable("no loader was ever opened");
}

iso_err l4_loader_run(struct l4_loader *loader, const void *frame, uint32_t bytes, void *out,
                      uint32_t out_cap, uint32_t *out_bytes, uint32_t *verdict)
{
    iso_unreachable("no loader was ever opened");
}

iso_err l4_loader_server_ids(struct l4_loader *loader, const struct l4_spec *spec)
{
    iso_unreachable("no loader was ever opened");
}

iso_err l4_loader_samples(struct l4_loader *loader, int timeout_ms, l4_sample_fn *fn, void *arg,
                          uint64_t *lost)
{
    iso_unreachable("no loader was ever opened");
}

iso_err l4_decap_attach(const struct l4_decap *decap, struct iso_diag *diag)
{
    return absent(diag);
}

iso_err l4_decap_events(const char *pin, uint64_t events[L4_EVENTS], struct iso_diag *diag)
{
    return absent(diag);
}

bool l4_decap_is_pinned(const char *pin)
{
    return false;
}

iso_err l4_loader_set_sampling(struct l4_loader *loader, const char *pin, uint32_t every,
                               struct iso_diag *diag)
{
    return absent(diag);
}
