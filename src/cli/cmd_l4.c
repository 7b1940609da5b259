/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar l4`: the packet tier's node. Starts the program, keeps its tables as the configuration says,
 * announces the VIPs, and leaves in order: withdraw, forward until the routers have followed, detach. What
 * the program needs is pinned, so it goes on when this process dies, and the next one takes it over. Single
 * thread; traffic never passes through here. The other subcommands are in cmd_l4_show.c. */
#include "cli/cmd.h"

#include "cli/cmd_l4.h"
#include "config/load.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "l4/kernel_routes.h"
#include "l4/loader.h"
#include "l4/routes.h"
#include "l4/vips.h"
#include "l4/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

const char cmd_l4_help[] =
    "usage: isobar l4 --config FILE\n"
    "       isobar l4 status|vips|counters|flows [--pin FOLDER | --config FILE]\n"
    "       isobar l4 lookup|explain PROTOCOL SOURCE SPORT VIP PORT [--syn] [--pin FOLDER | --config FILE]\n"
    "       isobar l4 sample [--every N] [--count N] [--pin FOLDER | --config FILE]\n"
    "       isobar l4 decap --interface NAME --vip ADDRESS... [--gue-port N] [--mode MODE] [--pin FOLDER]\n"
    "       isobar l4 detach [--pin FOLDER | --config FILE]\n"
    "\n"
    "The first form is a node of the packet tier: it balances packets for VIPs over the nodes of the\n"
    "configuration (see docs/l4.md). It needs CAP_BPF and CAP_NET_ADMIN, a bpf file system, and Linux 5.15.\n"
    "\n"
    "signals: HUP   read the configuration again; flows stay\n"
    "         TERM  leave: withdraw the VIPs, forward for linger_s, detach\n"
    "         USR2  end this process alone; the program goes on with the last tables, and the next\n"
    "               isobar l4 takes it over\n"
    "\n"
    "decap is for the machines behind it: it takes the tunnel header off packets for these VIPs and ends;\n"
    "the program stays attached until detach.\n"
    "\n"
    "options:\n"
    "  -c, --config FILE     the configuration; status and the like find the pin folder in it\n"
    "      --pin FOLDER      of maps on a bpf file system (/sys/fs/bpf/isobar-l4; decap: "
    "/sys/fs/bpf/isobar-decap)\n"
    "      --syn             lookup, explain: of a packet that opens a connection\n"
    "      --every N         sample: one packet in N (1)\n"
    "      --count N         sample: end after N packets (10)\n"
    "      --interface NAME  decap: where packets come in; may be repeated\n"
    "      --vip ADDRESS     decap: whose packets; may be repeated\n"
    "      --gue-port N      decap: of packets in UDP\n"
    "      --mode native|generic|native_or_generic   decap: how it is attached\n"
    "  -h, --help            this text\n"
    "\n"
    "exit status: 0 well, 1 it did not work, 2 called wrongly\n";

struct node {
    const char *file;
    struct config *config; /* owns */
    struct arena arena;    /* of the spec */
    struct l4_spec spec;   /* as configured */
    struct l4_spec live;   /* the same less what the checks found down */
    struct l4_watch watch;
    struct l4_loader *loader; /* owns */
    struct l4_tables tables;
    struct text announced;
    bool announce_failed;
    int lock; /* the pin folder, locked while this process is its writer */
    bool link_lost;
};

static iso_err read_spec(const char *file, struct config **config, struct arena *arena, struct l4_spec *spec,
                         struct iso_diag *diag)
{
    iso_err err = config_load_file(file, config, diag);
    if (err)
        return err;
    err = l4_spec_from_config(*config, arena, spec, diag);
    if (err) {
        config_free(*config);
        *config = NULL;
    }
    return err;
}

/* The spec as it is meant at this moment: its own reals, for the checks to judge. */
static void refresh(struct node *node)
{
    size_t bytes = sizeof(*node->spec.reals) * node->spec.n_reals;
    if (!node->live.reals || node->live.n_reals != node->spec.n_reals || node->live.vips != node->spec.vips) {
        node->live = node->spec;
        node->live.reals = arena_alloc(&node->arena, bytes + 1);
    }
    memcpy(node->live.reals, node->spec.reals, bytes);
}

static iso_err publish(struct node *node, struct iso_diag *diag)
{
    refresh(node);
    l4_watch_apply(&node->watch, &node->live);
    iso_err err = l4_tables_publish(&node->tables, &node->live, l4_loader_tick(node->loader), diag);
    if (!err)
        err = l4_loader_server_ids(node->loader, &node->live);
    if (!err)
        log_notice("l4: generation %llu: %u VIPs over %u nodes, %u rings written, %u slots moved",
                   (unsigned long long)l4_loader_view(node->loader)->control->generation, node->spec.n_vips,
                   node->spec.n_reals, node->tables.rebuilt, node->tables.moved);
    return err;
}

/* Loads a program for the node's settings, fills its tables, and puts it in place of what runs. */
static iso_err start(struct node *node, struct iso_diag *diag)
{
    struct l4_loader *loader = NULL;
    iso_err err = l4_loader_open(&node->spec, &loader, diag);
    if (err)
        return err;
    struct l4_loader *old_loader = node->loader;
    struct l4_tables old_tables = node->tables;
    node->loader = loader;
    l4_tables_init(&node->tables, l4_loader_view(loader));
    uint32_t replaced;
    err = publish(node, diag);
    if (!err)
        err = l4_loader_attach(loader, &replaced, diag);
    if (err) {
        l4_tables_fini(&node->tables);
        l4_loader_close(loader);
        node->loader = old_loader;
        node->tables = old_tables;
        return err;
    }
    if (old_loader) {
        l4_tables_fini(&old_tables);
        l4_loader_close(old_loader);
    }
    log_notice("l4: %u interfaces, of %u the program was replaced; %s", node->spec.node.n_interfaces,
               replaced, l4_loader_took_over(loader) ? "maps and flows taken over" : "new maps");
    return ISO_OK;
}

/* One writer for a pin folder. */
static bool lock_pin(struct node *node, struct slice pin)
{
    if (node->lock >= 0)
        return true;
    node->lock = open(pin.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (node->lock < 0)
        return true; /* made by the first attach; locked after it */
    if (!flock(node->lock, LOCK_EX | LOCK_NB))
        return true;
    fprintf(stderr, "isobar l4: another process runs the node pinned in %.*s\n", SLICE_ARG(pin));
    return false;
}

static void announce(struct node *node, bool leaving)
{
    struct iso_diag diag;
    diag_init(&diag);
    iso_err err =
        l4_routes_announce(&node->config->l4.announce, &node->live, leaving, &node->announced, &diag);
    if (err && !node->announce_failed)
        log_warning("l4: %s; trying again every second",
                    diag.first ? diag.first->message : iso_err_text(err));
    if (!err && node->announce_failed)
        log_notice("l4: the VIPs are announced");
    node->announce_failed = err != ISO_OK;
    diag_fini(&diag);
}

static bool is_same_node(const struct l4_node *a, const struct l4_node *b)
{
    bool same = a->n_interfaces == b->n_interfaces && slice_eq(a->pin, b->pin) && a->mode == b->mode &&
                a->table_size == b->table_size && a->flow_entries == b->flow_entries &&
                a->flow_per_cpu == b->flow_per_cpu && a->max_inserts_per_s == b->max_inserts_per_s &&
                a->max_packet == b->max_packet && a->gateway_set == b->gateway_set &&
                !memcmp(a->gateway, b->gateway, 6) && a->gue_port == b->gue_port &&
                a->reply_too_big == b->reply_too_big && a->hash_seed == b->hash_seed &&
                ip_eq(&a->source4.addr, &b->source4.addr) && a->source4.bits == b->source4.bits &&
                ip_eq(&a->source6.addr, &b->source6.addr) && a->source6.bits == b->source6.bits &&
                ip_eq(&a->gue_source4, &b->gue_source4) && ip_eq(&a->gue_source6, &b->gue_source6);
    for (uint32_t i = 0; same && i < a->n_interfaces; i++)
        same = slice_eq(a->interfaces[i], b->interfaces[i]);
    return same;
}

/* Everything that the loaded program has as constants or sizes is as before. */
static bool fits_program(const struct l4_spec *was, const struct l4_spec *now, uint32_t n_rings)
{
    bool gue_was = was->n_reals && was->reals[0].gue, gue_now = now->n_reals && now->reals[0].gue;
    return is_same_node(&was->node, &now->node) && gue_was == gue_now &&
           l4_tunnel_bytes(was) == l4_tunnel_bytes(now) && l4_rings_needed(now) <= n_rings;
}

/* A program that could be loaded but not attached shares its maps with the one that runs, and has written to
 * them. */
static void restore(struct node *node)
{
    struct iso_diag diag;
    diag_init(&diag);
    usleep(L4_GRACE_MS * 1000);
    if (publish(node, &diag))
        diag_print(&diag);
    diag_fini(&diag);
}

/* Routes in a table that the configuration names no more. */
static void leave_table(uint32_t was, uint32_t now)
{
    struct iso_diag diag;
    diag_init(&diag);
    if (was && was != now && l4_kernel_routes_set(was, NULL, 0, &diag))
        diag_print(&diag);
    diag_fini(&diag);
}

/* On a fault everything stays as it was. */
static void reload(struct node *node)
{
    bool tried = false;
    struct iso_diag diag;
    struct node old = *node;
    diag_init(&diag);
    arena_init(&node->arena);
    iso_err err = read_spec(node->file, &node->config, &node->arena, &node->spec, &diag);
    if (!err && !slice_eq(node->spec.node.pin, old.spec.node.pin)) {
        diag_add(&diag, DIAG_ERROR, "", 0, 0, "/l4/pin", "cannot change while the node runs");
        err = ISO_ERR_INVALID;
        config_free(node->config);
    } else if (!err) {
        if (fits_program(&old.spec, &node->spec, l4_loader_view(node->loader)->n_rings))
            err = publish(node, &diag);
        else
            err = start(node, &diag);
        tried = true;
        if (err)
            config_free(node->config);
    }
    if (err) {
        diag_print(&diag);
        log_error("l4: the configuration was not taken; everything stays as it was");
        arena_fini(&node->arena);
        node->arena = old.arena;
        node->spec = old.spec;
        node->live = old.live;
        node->config = old.config;
        if (tried)
            restore(node);
    } else {
        l4_watch_set(&node->watch, &node->spec, &node->config->l4.check);
        leave_table(old.config->l4.announce.kernel_table, node->config->l4.announce.kernel_table);
        config_free(old.config);
        arena_fini(&old.arena);
        announce(node, false);
    }
    diag_fini(&diag);
}

/* The program must be on every interface; an interface that went away and came back needs it anew. */
static void watch_links(struct node *node)
{
    struct l4_attachment found[64];
    uint32_t n = l4_loader_attachments(node->spec.node.pin.ptr, found, (uint32_t)iso_countof(found));
    uint32_t alive = 0;
    for (uint32_t i = 0; i < n; i++)
        alive += found[i].ifindex != 0;
    bool lost = alive < node->spec.node.n_interfaces;
    if (lost) {
        struct iso_diag diag;
        uint32_t replaced;
        diag_init(&diag);
        if (!l4_loader_attach(node->loader, &replaced, &diag))
            lost = false;
        diag_fini(&diag);
    }
    if (lost != node->link_lost) {
        if (lost)
            log_error("l4: the program is not on all interfaces: the VIPs are withdrawn");
        else
            log_notice("l4: the program is on all interfaces again");
        node->link_lost = lost;
        announce(node, lost);
    }
}

static void leave(struct node *node)
{
    struct iso_diag diag;
    diag_init(&diag);
    uint32_t linger_s = node->config->l4.linger_s;
    announce(node, true);
    bool was_announced = node->config->l4.announce.bird.ptr || node->config->l4.announce.kernel_table;
    if (was_announced && linger_s) {
        log_notice("l4: withdrawn; forwarding for another %u s", linger_s);
        sleep(linger_s);
    }
    if (l4_loader_detach(node->spec.node.pin.ptr, &diag))
        diag_print(&diag);
    log_notice("l4: detached");
    diag_fini(&diag);
}

static void check_nodes(struct node *node)
{
    struct iso_diag diag;
    if (!l4_watch_step(&node->watch, &node->config->l4.check, clock_mono_ns()))
        return;
    diag_init(&diag);
    if (publish(node, &diag))
        diag_print(&diag);
    diag_fini(&diag);
    announce(node, node->link_lost);
}

static void every_second(struct node *node)
{
    l4_tables_sweep(&node->tables, l4_loader_tick(node->loader));
    watch_links(node);
    if (node->announce_failed)
        announce(node, node->link_lost);
}

/* True: leave in order; false: end this process alone. */
static bool serve(struct node *node, const sigset_t *signals)
{
    uint64_t second_ns = clock_mono_ns();
    for (;;) {
        /* Checks of nodes are connections of this thread: looked at often enough for a timeout of some tens
         * of ms. */
        struct timespec pause = {.tv_nsec = node->watch.n ? 20000000 : 500000000};
        int number = sigtimedwait(signals, NULL, &pause);
        if (number == SIGTERM || number == SIGINT)
            return true;
        if (number == SIGUSR2)
            return false;
        if (number == SIGHUP)
            reload(node);
        check_nodes(node);
        if (clock_mono_ns() - second_ns >= NS_PER_S) {
            second_ns = clock_mono_ns();
            every_second(node);
        }
    }
}

/* A start that failed leaves no maps behind that nothing uses. */
static void tidy(const struct node *node)
{
    struct l4_attachment found;
    struct iso_diag diag;
    if (!node->spec.node.pin.len || l4_loader_attachments(node->spec.node.pin.ptr, &found, 1))
        return;
    diag_init(&diag);
    (void)!l4_loader_detach(node->spec.node.pin.ptr, &diag);
    diag_fini(&diag);
}

static int run_node(const char *file)
{
    struct node node = {.file = file, .lock = -1};
    struct iso_diag diag;
    sigset_t signals;
    diag_init(&diag);
    arena_init(&node.arena);
    text_init(&node.announced);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGUSR2);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);

    iso_err err = read_spec(file, &node.config, &node.arena, &node.spec, &diag);
    if (!err && !lock_pin(&node, node.spec.node.pin))
        err = ISO_ERR_EXISTS;
    if (!err)
        err = start(&node, &diag);
    if (!err && !lock_pin(&node, node.spec.node.pin))
        err = ISO_ERR_EXISTS;
    if (err) {
        diag_print(&diag);
        if (err != ISO_ERR_EXISTS)
            tidy(&node);
        return 1;
    }
    l4_watch_set(&node.watch, &node.spec, &node.config->l4.check);
    announce(&node, false);
    if (serve(&node, &signals))
        leave(&node);
    l4_watch_fini(&node.watch);
    l4_tables_fini(&node.tables);
    l4_loader_close(node.loader);
    config_free(node.config);
    arena_fini(&node.arena);
    text_fini(&node.announced);
    diag_fini(&diag);
    return 0;
}

int cmd_l4(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"status", cmd_l4_status}, {"vips", cmd_l4_vips},     {"counters", cmd_l4_counters},
                    {"flows", cmd_l4_flows},   {"lookup", cmd_l4_lookup}, {"explain", cmd_l4_explain},
                    {"sample", cmd_l4_sample}, {"decap", cmd_l4_decap},   {"detach", cmd_l4_detach}};
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
    for (size_t i = 0; argc > 1 && i < iso_countof(commands); i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    const char *file = NULL;
    int option;
    optind = 1;
    while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(cmd_l4_help, stdout);
            return 0;
        }
        if (option != 'c') {
            fputs(cmd_l4_help, stderr);
            return 2;
        }
        file = optarg;
    }
    if (!file || optind < argc) {
        fputs(cmd_l4_help, stderr);
        return 2;
    }
    return run_node(file);
}
