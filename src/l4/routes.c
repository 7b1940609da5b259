/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/routes.h"

#include "l4/kernel_routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static bool has_real(const struct l4_spec *spec, const struct l4_spec_vip *vip)
{
    const struct l4_spec_set *set = &spec->sets[vip->set];
    for (uint32_t i = 0; i < set->n_reals; i++)
        if (l4_set_weight(spec, set, i))
            return true;
    return false;
}

static bool same_prefix(const struct ip_prefix *a, const struct ip_prefix *b)
{
    return a->bits == b->bits && ip_eq(&a->addr, &b->addr);
}

/* One address may be several VIPs; it is announced while one of them can be served. */
static bool is_wanted(const struct l4_spec *spec, uint32_t index, bool without_reals)
{
    const struct ip_prefix *prefix = &spec->vips[index].prefix;
    bool served = without_reals;
    for (uint32_t i = 0; i < spec->n_vips; i++) {
        if (!same_prefix(&spec->vips[i].prefix, prefix))
            continue;
        if (i < index)
            return false; /* written already */
        served = served || has_real(spec, &spec->vips[i]);
    }
    return served;
}

void l4_routes_write(const struct l4_spec *spec, bool without_reals, bool leaving, struct text *out)
{
    text_printf(out, "# Written by isobar l4; changes are lost.\n");
    for (int family = 4; family <= 6; family += 2) {
        text_printf(out, "protocol static isobar%d {\n    ipv%d;\n", family, family);
        for (uint32_t i = 0; i < spec->n_vips && !leaving; i++) {
            const struct ip_prefix *prefix = &spec->vips[i].prefix;
            char text[IP_TEXT_MAX];
            if (prefix->addr.family != family || !is_wanted(spec, i, without_reals))
                continue;
            int n = (int)ip_print(&prefix->addr, text);
            text_printf(out, "    route %.*s/%u blackhole;\n", n, text, prefix->bits);
        }
        text_printf(out, "}\n");
    }
}

static iso_err complain(struct iso_diag *diag, iso_err err, const char *what, const char *name,
                        const char *why)
{
    diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/announce", "%s %s: %s", what, name, why);
    return err;
}

/* Replaces the file in one step, so that BIRD never reads half of it. */
static iso_err replace_file(const char *path, struct slice content, struct iso_diag *diag)
{
    char folder[512], fresh[520];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = 0;
        mkdir(folder, 0755);
    }
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    FILE *file = fopen(fresh, "w");
    if (!file)
        return complain(diag, ISO_ERR_SYSTEM, "cannot write", fresh, strerror(errno));
    bool written = fwrite(content.ptr, 1, content.len, file) == content.len;
    written = !fclose(file) && written;
    if (!written || rename(fresh, path))
        return complain(diag, ISO_ERR_SYSTEM, "cannot write", path, strerror(errno));
    return ISO_OK;
}

/* Reads one reply: lines up to one with a code and a blank. The code, 0 when the line ended. */
static unsigned read_reply(FILE *bird, char *line, int cap)
{
    while (fgets(line, cap, bird)) {
        line[strcspn(line, "\n")] = 0;
        char *end;
        unsigned long code = strtoul(line, &end, 10);
        if (end == line + 4 && *end == ' ')
            return (unsigned)code;
    }
    return 0;
}

static iso_err command_bird(const char *path, const char *command, struct iso_diag *diag)
{
    enum { BIRD_FAILED = 8000 };
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 5};
    char line[512] = "";
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        iso_err err = complain(diag, ISO_ERR_SYSTEM, "cannot reach BIRD at", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return err;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    FILE *bird = fdopen(fd, "r+");
    iso_assert(bird != NULL);
    unsigned code = read_reply(bird, line, sizeof(line));
    if (code && code < BIRD_FAILED) {
        fprintf(bird, "%s\n", command);
        fflush(bird);
        code = read_reply(bird, line, sizeof(line));
    }
    fclose(bird);
    if (!code || code >= BIRD_FAILED)
        return complain(diag, ISO_ERR_PROTOCOL, "BIRD refused", command, line[0] ? line : "no answer");
    return ISO_OK;
}

/* Exactly the VIPs that have to be announced are routes of the kernel. */
static iso_err announce_to_kernel(const struct config_l4_announce *announce, const struct l4_spec *spec,
                                  bool leaving, struct iso_diag *diag)
{
    struct arena arena;
    arena_init(&arena);
    struct ip_prefix *wanted = arena_array(&arena, struct ip_prefix, spec->n_vips + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < spec->n_vips && !leaving; i++)
        if (is_wanted(spec, i, announce->without_reals))
            wanted[n++] = spec->vips[i].prefix;
    iso_err err = l4_kernel_routes_set(announce->kernel_table, wanted, n, diag);
    arena_fini(&arena);
    return err;
}

static iso_err announce_to_bird(const struct config_l4_announce *announce, const struct l4_spec *spec,
                                bool leaving, struct text *last, struct iso_diag *diag)
{
    struct text fresh;
    text_init(&fresh);
    l4_routes_write(spec, announce->without_reals, leaving, &fresh);
    iso_err err = ISO_OK;
    if (!slice_eq(text_slice(&fresh), text_slice(last))) {
        err = replace_file(announce->file.ptr, text_slice(&fresh), diag);
        if (!err)
            err = command_bird(announce->bird.ptr, "configure", diag);
    }
    if (err) {
        text_fini(&fresh);
        return err;
    }
    text_fini(last);
    *last = fresh;
    return ISO_OK;
}

iso_err l4_routes_announce(const struct config_l4_announce *announce, const struct l4_spec *spec,
                           bool leaving, struct text *last, struct iso_diag *diag)
{
    iso_err err = ISO_OK, kernel_err = ISO_OK;
    if (announce->bird.ptr)
        err = announce_to_bird(announce, spec, leaving, last, diag);
    if (announce->kernel_table)
        kernel_err = announce_to_kernel(announce, spec, leaving, diag);
    return err ? err : kernel_err;
}
