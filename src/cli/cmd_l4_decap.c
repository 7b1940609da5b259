/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar l4 decap`: attaches the decapsulation to an interface of a machine behind the packet tier and ends.
 */
#include "cli/cmd_l4.h"

#include "config/load.h"
#include "l4/decap.h"
#include "l4/vips.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 256 };

static const char usage[] =
    "usage: isobar l4 decap --interface NAME... --vip ADDRESS... [--gue-port N]\n"
    "                       [--mode native|generic|native_or_generic] [--pin FOLDER]\n"
    "The default folder is /sys/fs/bpf/isobar-decap; isobar l4 detach --pin takes it off.\n";

static bool read_mode(const char *text, enum l4_mode *mode)
{
    static const char *const names[] = {"native", "generic", "native_or_generic"};
    for (unsigned i = 0; i < 3; i++)
        if (!strcmp(text, names[i])) {
            *mode = (enum l4_mode)i;
            return true;
        }
    return false;
}

int cmd_l4_decap(int argc, char **argv)
{
    static const struct option options[] = {{"interface", required_argument, NULL, 'i'},
                                            {"vip", required_argument, NULL, 'v'},
                                            {"gue-port", required_argument, NULL, 'g'},
                                            {"mode", required_argument, NULL, 'm'},
                                            {"pin", required_argument, NULL, 'p'},
                                            {"config", required_argument, NULL, 'c'},
                                            {0}};
    struct slice interfaces[MANY];
    struct ip_addr vips[MANY];
    struct l4_decap decap = {
        .interfaces = interfaces, .vips = vips, .pin = SLICE("/sys/fs/bpf/isobar-decap")};
    struct iso_diag diag;
    const char *file = NULL;
    struct config *config = NULL;
    struct arena arena;
    struct l4_spec spec;
    uint64_t port;
    int option;
    bool right = true;
    optind = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && right)
        switch (option) {
        case 'i':
            right = decap.n_interfaces < MANY;
            if (right)
                interfaces[decap.n_interfaces++] = slice_str(optarg);
            break;
        case 'v':
            right = decap.n_vips < MANY && ip_parse(slice_str(optarg), &vips[decap.n_vips]);
            decap.n_vips += right;
            break;
        case 'g':
            right = slice_u64(slice_str(optarg), &port) && port > 0 && port < 65536;
            decap.gue_port = (uint16_t)(right ? port : 0);
            break;
        case 'm':
            right = read_mode(optarg, &decap.mode);
            break;
        case 'p':
            decap.pin = slice_str(optarg);
            break;
        case 'c':
            file = optarg;
            break;
        default:
            right = false;
        }
    if (!right || optind < argc || !decap.n_interfaces || !decap.n_vips) {
        fputs(usage, stderr);
        return 2;
    }
    diag_init(&diag);
    arena_init(&arena);
    iso_err err = file ? config_load_file(file, &config, &diag) : ISO_OK;
    if (!err && file)
        err = l4_spec_from_config(config, &arena, &spec, &diag);
    if (!err && file) {
        decap.hops = spec.reals;
        decap.n_hops = spec.n_reals;
    }
    if (!err)
        err = l4_decap_attach(&decap, &diag);
    diag_print(&diag);
    config_free(config);
    arena_fini(&arena);
    diag_fini(&diag);
    return err ? 1 : 0;
}
