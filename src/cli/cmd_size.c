/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar size`: the back of an envelope. From rates and sizes to numbers of packet nodes and proxies, load
 * of health checks, and memory of tables, with every assumption printed and changeable (J5). Computes only.
 */
#include "cli/cmd.h"

#include "core/check.h"
#include "core/slice.h"
#include "l4/abi.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cmd_size_help[] =
    "usage: isobar size [--requests N] [--request-bytes N] [--response-bytes N] [options]\n"
    "\n"
    "Says how many packet nodes (L4) and proxies (L7) a load needs, what health checks add, and what tables\n"
    "take. Each number is an assumption with a default; measure yours and give it.\n"
    "\n"
    "the load:\n"
    "  --requests N            requests a second at the peak (1000000)\n"
    "  --request-bytes N       of a request, with headers (1500)\n"
    "  --response-bytes N      of an answer, with headers (10000)\n"
    "  --packets-per-request N from a client, acknowledgements included (0: as the sizes make it)\n"
    "  --requests-per-connection N   that a connection carries (10)\n"
    "  --connection-s N        that a connection stays open (60)\n"
    "\n"
    "what a machine does:\n"
    "  --l4-packets N          packets a second that a packet node forwards (8000000: two cores at 4 "
    "million)\n"
    "  --l7-requests N         requests a second that a proxy serves (100000)\n"
    "  --nic-gbit N            of each machine (25)\n"
    "  --load-pct N            how full machines may be at the peak (60)\n"
    "  --spare N               machines of each kind that may be missing (2)\n"
    "\n"
    "what is behind and beside:\n"
    "  --targets N             backends (500)\n"
    "  --zones N               with --checkers health checkers each (3)\n"
    "  --checkers N            (3)\n"
    "  --check-interval-s N    (5)\n"
    "  --vips N                VIPs (10)\n"
    "  --table-size N          slots of a Maglev table (65537)\n"
    "  --flow-entries N        of a packet node's flow table (1048576)\n"
    "\n"
    "  -h, --help              this text\n"
    "\n"
    "examples:\n"
    "  a region of 400 Gbit/s in 100 million packets a second, with 50,000 backends:\n"
    "    isobar size --requests 10000000 --packets-per-request 10 --request-bytes 4340 \\\n"
    "                --response-bytes 25000 --targets 50000 --spare 3 --nic-gbit 40\n"
    "  a million requests a second of 2 KB over proxies that may be full, two to spare:\n"
    "    isobar size --request-bytes 2000 --load-pct 100 --connection-s 10\n"
    "\n"
    "exit status: 0 done, 2 called wrongly\n";

struct size {
    double requests, request_bytes, response_bytes, packets_per_request, requests_per_connection,
        connection_s;
    double l4_packets, l7_requests, nic_gbit, load_pct, spare;
    double targets, zones, checkers, check_interval_s, vips, table_size, flow_entries;
};

static const struct {
    const char *name;
    size_t offset;
    double least, most;
} numbers[] = {
#define NUMBER(name, field, least, most)                                                                     \
    {                                                                                                        \
        name, offsetof(struct size, field), least, most                                                      \
    }
    NUMBER("requests", requests, 1, 1e12),
    NUMBER("request-bytes", request_bytes, 1, 1e12),
    NUMBER("response-bytes", response_bytes, 1, 1e12),
    NUMBER("packets-per-request", packets_per_request, 0, 1e9),
    NUMBER("requests-per-connection", requests_per_connection, 1, 1e9),
    NUMBER("connection-s", connection_s, 1, 1e9),
    NUMBER("l4-packets", l4_packets, 1, 1e12),
    NUMBER("l7-requests", l7_requests, 1, 1e12),
    NUMBER("nic-gbit", nic_gbit, 1, 1e6),
    NUMBER("load-pct", load_pct, 1, 100),
    NUMBER("spare", spare, 0, 1e6),
    NUMBER("targets", targets, 1, 1e9),
    NUMBER("zones", zones, 1, 1e6),
    NUMBER("checkers", checkers, 1, 1e6),
    NUMBER("check-interval-s", check_interval_s, 1, 1e6),
    NUMBER("vips", vips, 1, 1e6),
    NUMBER("table-size", table_size, 3, 1 << 24),
    NUMBER("flow-entries", flow_entries, 1, 1e12),
#undef NUMBER
};

static double round_up(double x)
{
    double whole = (double)(uint64_t)x;
    return whole < x ? whole + 1 : whole;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Packets of `bytes` of payload, with one acknowledgement for two of them from the other side. */
static double packets_of(double bytes)
{
    return round_up(bytes / 1448);
}

static void print_sizes(const struct size *s)
{
    double connections = s->requests / s->requests_per_connection;
    double open = connections * s->connection_s;
    /* Clients send the request, an acknowledgement for every other packet of the answer, and four packets to
     * open and close a connection. */
    double in_packets =
        s->requests * (packets_of(s->request_bytes) + round_up(packets_of(s->response_bytes) / 2)) +
        connections * 4;
    if (s->packets_per_request > 0)
        in_packets = s->requests * s->packets_per_request;
    double in_gbit = (s->requests * s->request_bytes + in_packets * 66) * 8 / 1e9;
    double out_gbit = s->requests * (s->response_bytes + packets_of(s->response_bytes) * 66) * 8 / 1e9;
    double usable = s->load_pct / 100;
    double l4 = round_up(larger(in_packets / (s->l4_packets * usable), in_gbit / (s->nic_gbit * usable)));
    double l7 = round_up(
        larger(s->requests / (s->l7_requests * usable), (in_gbit + out_gbit) / (s->nic_gbit * usable)));

    printf("load at the peak\n");
    printf("  requests                %14.0f /s\n", s->requests);
    printf("  new connections         %14.0f /s\n", connections);
    printf("  open connections        %14.0f\n", open);
    printf("  of requests, answers    %14.1f, %.1f GB/s, without packet headers\n",
           s->requests * s->request_bytes / 1e9, s->requests * s->response_bytes / 1e9);
    printf("  from clients            %14.0f packets/s, %.1f Gbit/s\n", in_packets, in_gbit);
    printf("  to clients              %14.1f Gbit/s, past the packet nodes (direct return)\n", out_gbit);
    printf("machines, at most %.0f %% full, %.0f spare of each kind\n", s->load_pct, s->spare);
    printf("  packet nodes (L4)       %14.0f\n", l4 + s->spare);
    printf("  proxies (L7)            %14.0f\n", l7 + s->spare);
    printf("  of a proxy's share      %14.0f open connections\n", open / l7);

    double all = s->targets * (l7 + s->spare) / s->check_interval_s;
    double few = s->targets * s->zones * s->checkers / s->check_interval_s;
    printf("health checks, every %.0f s\n", s->check_interval_s);
    printf("  by every proxy          %14.0f /s, %.1f a target\n", all, all / s->targets);
    printf("  by %.0f checkers in %.0f zones%*s%14.0f /s, %.1f a target\n", s->checkers, s->zones,
           s->checkers < 10 && s->zones < 10 ? 3 : 1, "", few, few / s->targets);

    double rings = 2 + 6; /* every VIP over the same proxies: one set */
    double slot = sizeof(uint16_t) + sizeof(struct l4_move);
    printf("tables of a packet node\n");
    printf("  Maglev                  %14.1f MiB: %.0f rings of %.0f slots, %.0f bytes each\n",
           rings * slot * s->table_size / (1 << 20), rings, s->table_size, slot);
    printf("  flows                   %14.1f MiB: %.0f entries of %zu bytes\n",
           s->flow_entries * sizeof(struct l4_flow) / (1 << 20), s->flow_entries, sizeof(struct l4_flow));
    printf("  VIPs                    %14.1f MiB\n", 2.0 * sizeof(struct l4_vip_bank) / (1 << 20));
    printf("  share of a proxy        %14.0f slots, %.2f %% of the flows move when one leaves\n",
           s->table_size / l7, 100 / l7);
    if (s->table_size < 100 * l7)
        printf("  note: fewer than 100 slots a proxy; a table of 655373 keeps shares within 1 %%\n");
    if (s->vips > L4_VIPS)
        printf("  note: a packet node takes %d VIPs\n", L4_VIPS);
}

int cmd_size(int argc, char **argv)
{
    struct size size = {.requests = 1e6,
                        .request_bytes = 1500,
                        .response_bytes = 10000,
                        .requests_per_connection = 10,
                        .connection_s = 60,
                        .l4_packets = 8e6,
                        .l7_requests = 1e5,
                        .nic_gbit = 25,
                        .load_pct = 60,
                        .spare = 2,
                        .targets = 500,
                        .zones = 3,
                        .checkers = 3,
                        .check_interval_s = 5,
                        .vips = 10,
                        .table_size = 65537,
                        .flow_entries = 1048576};
    struct option options[iso_countof(numbers) + 2] = {0};
    for (size_t i = 0; i < iso_countof(numbers); i++)
        options[i] = (struct option){numbers[i].name, required_argument, NULL, (int)i + 256};
    options[iso_countof(numbers)] = (struct option){"help", no_argument, NULL, 'h'};
    int option;
    optind = 1;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(cmd_size_help, stdout);
            return 0;
        }
        if (option < 256) {
            fputs(cmd_size_help, stderr);
            return 2;
        }
        uint64_t value;
        double *field = (double *)(void *)((char *)&size + numbers[option - 256].offset);
        if (!slice_u64(slice_str(optarg), &value) || (double)value < numbers[option - 256].least ||
            (double)value > numbers[option - 256].most) {
            fprintf(stderr, "isobar size: --%s is \"%s\", expected a whole number from %.0f to %.0f\n",
                    numbers[option - 256].name, optarg, numbers[option - 256].least,
                    numbers[option - 256].most);
            return 2;
        }
        *field = (double)value;
    }
    if (optind < argc) {
        fputs(cmd_size_help, stderr);
        return 2;
    }
    print_sizes(&size);
    return 0;
}
