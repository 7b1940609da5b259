/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a program on an interface: one pinned link each, named link-INTERFACE. A link that is there
 * already gets the new program in one step, which loses no packet; its maps were taken over, or new ones were
 * filled before. */
#include "l4/loader_internal.h"

#include "core/log.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "l4/balancer.skel.h"
#pragma GCC diagnostic pop

static const char LINK_PREFIX[] = "link-";

iso_err l4_make_pin_folder(struct arena *arena, struct slice folder, struct iso_diag *diag)
{
    char *pin = arena_printf(arena, "%.*s", SLICE_ARG(folder));
    for (char *slash = strchr(pin + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(pin, 0700);
        *slash = '/';
    }
    if (mkdir(pin, 0700) && errno != EEXIST)
        return l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot make the folder", pin);
    struct statfs fs;
    if (statfs(pin, &fs) || (uint32_t)fs.f_type != BPF_FS_MAGIC) {
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/pin",
                 "%s is not on a bpf file system: mount -t bpf bpf /sys/fs/bpf, or choose another folder",
                 pin);
        return ISO_ERR_INVALID;
    }
    return ISO_OK;
}

iso_err l4_pin(struct arena *arena, struct slice pin, const char *name, int fd, struct iso_diag *diag)
{
    const char *path = l4_pin_path(arena, pin, name);
    unlink(path);
    return bpf_obj_pin(fd, path) ? l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot pin", path) : ISO_OK;
}

static iso_err pin_maps(struct l4_loader *loader, struct iso_diag *diag)
{
    struct bpf_map *map;
    iso_err err = ISO_OK;
    bpf_object__for_each_map(map, loader->skel->obj)
    {
        const char *name = bpf_map__name(map);
        bool is_new = !loader->took_over || !strcmp(name, "l4_samples");
        if (!strncmp(name, "l4_", 3) && is_new && !err)
            err = l4_pin(&loader->arena, loader->node.pin, name, bpf_map__fd(map), diag);
    }
    return err ? err : l4_pin(&loader->arena, loader->node.pin, "l4_clock_prog", loader->clock_fd, diag);
}

static iso_err explain_attach(int error, const char *name, struct iso_diag *diag)
{
    const char *why = "";
    if (error == EOPNOTSUPP)
        why = "; its driver has no native XDP: mode native_or_generic would use the slower generic one";
    else if (error == EBUSY || error == EEXIST)
        why = "; another XDP program is attached: detach it first (bpftool net shows it)";
    else if (error == ERANGE || error == EINVAL)
        why = "; its MTU is too large for XDP, or it has too few queues: a frame must fit one page (MTU up "
              "to about "
              "3500)";
    else if (error == EPERM || error == EACCES)
        why = "; the packet tier needs CAP_NET_ADMIN";
    diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/interfaces", "cannot attach to %s: %s%s", name, strerror(error),
             why);
    return ISO_ERR_SYSTEM;
}

/* Puts the program into the pinned link. False: there is none, or its interface is gone. */
static bool replace_program(const char *path, unsigned ifindex, int program)
{
    struct bpf_link_info info = {0};
    uint32_t bytes = sizeof(info);
    int link = bpf_obj_get(path);
    if (link < 0)
        return false;
    bool done = !bpf_obj_get_info_by_fd(link, &info, &bytes) && info.type == BPF_LINK_TYPE_XDP &&
                info.xdp.ifindex == ifindex && !bpf_link_update(link, program, NULL);
    close(link);
    if (!done)
        unlink(path);
    return done;
}

static int attach_new(unsigned ifindex, int program, enum l4_mode mode, bool *generic)
{
    LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
    *generic = mode == L4_GENERIC;
    if (*generic)
        opts.flags = XDP_FLAGS_SKB_MODE;
    int link = bpf_link_create(program, (int)ifindex, BPF_XDP, &opts);
    if (link < 0 && errno == EOPNOTSUPP && mode == L4_NATIVE_OR_GENERIC) {
        opts.flags = XDP_FLAGS_SKB_MODE;
        *generic = true;
        link = bpf_link_create(program, (int)ifindex, BPF_XDP, &opts);
    }
    return link;
}

iso_err l4_attach_program(struct arena *arena, struct slice pin, const char *name, int program,
                          enum l4_mode mode, uint32_t *replaced, struct iso_diag *diag)
{
    unsigned ifindex = if_nametoindex(name);
    if (!ifindex) {
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/interfaces", "there is no interface %s", name);
        return ISO_ERR_NOT_FOUND;
    }
    const char *path = arena_printf(arena, "%.*s/%s%s", SLICE_ARG(pin), LINK_PREFIX, name);
    if (replace_program(path, ifindex, program)) {
        ++*replaced;
        return ISO_OK;
    }
    bool generic;
    int link = attach_new(ifindex, program, mode, &generic);
    if (link < 0)
        return explain_attach(errno, name, diag);
    iso_err err = ISO_OK;
    if (bpf_obj_pin(link, path))
        err = l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot pin the link", path);
    close(link);
    if (generic && mode != L4_GENERIC)
        log_warning("l4: %s has no native XDP: attached in generic mode, which costs several times as much",
                    name);
    return err;
}

iso_err l4_loader_attach(struct l4_loader *loader, uint32_t *replaced, struct iso_diag *diag)
{
    *replaced = 0;
    iso_err err = l4_make_pin_folder(&loader->arena, loader->node.pin, diag);
    if (!err)
        err = pin_maps(loader, diag);
    for (uint32_t i = 0; i < loader->node.n_interfaces && !err; i++)
        err = l4_attach_program(&loader->arena, loader->node.pin, loader->node.interfaces[i].ptr,
                                l4_loader_program(loader), loader->node.mode, replaced, diag);
    return err;
}

uint32_t l4_loader_attachments(const char *pin, struct l4_attachment *out, uint32_t cap)
{
    uint32_t n = 0;
    DIR *folder = opendir(pin);
    if (!folder)
        return 0;
    struct dirent *entry;
    while ((entry = readdir(folder)) && n < cap) {
        char path[512];
        struct bpf_link_info info = {0};
        uint32_t bytes = sizeof(info);
        if (strncmp(entry->d_name, LINK_PREFIX, strlen(LINK_PREFIX)) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", pin, entry->d_name);
        int link = bpf_obj_get(path);
        if (link < 0)
            continue;
        if (!bpf_obj_get_info_by_fd(link, &info, &bytes)) {
            LIBBPF_OPTS(bpf_xdp_query_opts, query);
            struct l4_attachment *a = &out[n++];
            *a = (struct l4_attachment){.ifindex = info.xdp.ifindex, .program = info.prog_id};
            snprintf(a->interface, sizeof(a->interface), "%.15s", entry->d_name + strlen(LINK_PREFIX));
            if (a->ifindex && !bpf_xdp_query((int)a->ifindex, 0, &query))
                a->native = query.attach_mode == XDP_ATTACHED_DRV;
        }
        close(link);
    }
    closedir(folder);
    return n;
}

/* Takes the program off and removes the link's pin. */
static void detach_link(const char *path)
{
    int link = bpf_obj_get(path);
    if (link >= 0) {
        bpf_link_detach(link);
        close(link);
    }
    unlink(path);
}

void l4_detach_interface(const char *pin, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s%s", pin, LINK_PREFIX, name);
    detach_link(path);
}

iso_err l4_loader_detach(const char *pin, struct iso_diag *diag)
{
    DIR *folder = opendir(pin);
    if (!folder)
        return errno == ENOENT ? ISO_ERR_NOT_FOUND
                               : l4_complain(diag, ISO_ERR_SYSTEM, errno, "cannot open", pin);
    struct dirent *entry;
    char path[512];
    while ((entry = readdir(folder))) {
        snprintf(path, sizeof(path), "%s/%s", pin, entry->d_name);
        if (!strncmp(entry->d_name, LINK_PREFIX, strlen(LINK_PREFIX))) {
            detach_link(path);
        } else if (!strncmp(entry->d_name, "l4_", 3)) {
            unlink(path);
        }
    }
    closedir(folder);
    if (rmdir(pin))
        log_warning("l4: %s is not empty and stays", pin);
    return ISO_OK;
}
