/* SPDX-License-Identifier: Apache-2.0 */
/* Replays packet vectors of another balancer, kept outside this tree: ISOBAR_L4_VECTORS names the file ("l4
 * packet vectors, version 1"). Without it the test says so and is skipped. Reals are picked by other hashes
 * here, so the outer destination must be one of the VIP's reals, and the same one only where a connection id
 * decides; source, checksums and GUE source port are free; all else must match byte for byte. */
#include "harness.h"

#include "l4/decap.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What differs on purpose. */
static const struct {
    const char *name, *why;
} exceptions[] = {
    {"base/12", "IP options are followed, not dropped"},
    {"gue/10", "IP options are followed, not dropped"},
    {"base/14", "its fragment header says protocol 122, which is no VIP's: passed"},
    {"gue/12", "its fragment header says protocol 122, which is no VIP's: passed"},
    {"icmp_toobig/01", "no DF: dropped and counted, an error would not be right (RFC 1191)"},
    {"gue/19", "sent to the balancer: decapsulation is a program of its own"},
    {"gue/20", "sent to the balancer: decapsulation is a program of its own"},
    {"gue/21", "sent to the balancer: decapsulation is a program of its own"},
};

/* Sets about features that Isobar does not have. */
static const struct {
    const char *set, *why;
} absent[] = {
    {"hc", "health checks do not go through a tc program"},
    {"hc_gue", "health checks do not go through a tc program"},
    {"icmp_toobig_gue", "no target even for their own program, says the file"},
    {"egress_decap", "replies do not come back through the packet tier"},
    {"xpop_decap", "tunnels are not balanced a second time"},
    {"src_lpm", "no routing by source prefix"},
    {"tpr", "no server id in a TCP option"},
    {"tpr_gue", "no server id in a TCP option"},
    {"udp_stable", "no stable-routing header"},
    {"udp_migration_1", "a real is up or down for all VIPs"},
    {"udp_migration_2", "a real is up or down for all VIPs"},
};

static const char *const by_id[] = {"base/26", "base/27", "base/29", "base/30", "base/31", "base/32",
                                    "base/34", "base/35", "gue/24",  "gue/25",  "gue/27",  "gue/28",
                                    "gue/29",  "gue/30",  "gue/33",  "gue/34"};

static json_t *file;

static void need_file(void)
{
    if (!file) {
        print_message("skipped, because ISOBAR_L4_VECTORS names no file\n");
        skip();
    }
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static void decode(const char *base64, struct frame *frame)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0, n = 0;
    frame->n = 0;
    for (; *base64 && *base64 != '='; base64++) {
        bits = bits << 6 | (uint32_t)(strchr(alphabet, *base64) - alphabet);
        if ((n += 6) >= 8)
            frame->b[frame->n++] = (uint8_t)(bits >> (n -= 8));
    }
}

static const char *exception(const char *name)
{
    for (size_t i = 0; i < iso_countof(exceptions); i++)
        if (!strcmp(exceptions[i].name, name))
            return exceptions[i].why;
    return NULL;
}

static uint32_t real_get(struct rig *rig, const char *ip, bool gue)
{
    for (uint32_t i = 0; i < rig->spec.n_reals; i++)
        if (slice_eq(rig->spec.reals[i].name, slice_str(ip)))
            return i;
    uint32_t i = rig_real(rig, ip, 1);
    rig->spec.reals[i].gue = gue;
    return i;
}

static void build(struct rig *rig, const json_t *environment, bool gue)
{
    size_t i, j;
    json_t *vip, *real, *id;
    rig_init(rig);
    rig->spec.node.gateway_set = true;
    memcpy(rig->spec.node.gateway, "\0\0\xde\xad\xbe\xaf", 6);
    rig->spec.node.gue_port = 9886;
    assert_true(ip_parse(SLICE("10.0.13.37"), &rig->spec.node.gue_source4));
    assert_true(ip_parse(SLICE("fc00:2307::1337"), &rig->spec.node.gue_source6));
    rig->spec.node.rings = 60;
    json_array_foreach(json_object_get(environment, "vips"), i, vip)
    {
        uint32_t set = rig_set(rig, 16);
        rig->spec.sets[set].n_reals = 0;
        json_array_foreach(json_object_get(vip, "reals"), j, real) rig->spec.sets[set]
            .reals[rig->spec.sets[set].n_reals++] = real_get(rig, json_string_value(real), gue);
        json_int_t flags = json_integer_value(json_object_get(vip, "flags"));
        const json_t *bits = json_object_get(vip, "prefix");
        const char *prefix = json_is_integer(bits) ? arena_printf(&rig->arena, "%s/%d", text(vip, "address"),
                                                                  (int)json_integer_value(bits))
                                                   : text(vip, "address");
        rig_vip(rig, prefix, (uint16_t)json_integer_value(json_object_get(vip, "port")),
                strcmp(text(vip, "proto"), "udp") ? 6 : 17,
                L4_VIP_TRACK | (flags & 4 ? L4_VIP_QUIC : 0) | (flags & 8 ? L4_VIP_HASH_PORT : 0), set);
    }
    json_array_foreach(json_object_get(environment, "server_ids"), i, id)
    {
        uint32_t *ids = rig->spec.reals[real_get(rig, text(id, "real"), gue)].server_ids;
        ids[ids[0] != 0] = (uint32_t)json_integer_value(json_object_get(id, "id"));
    }
    rig_start(rig);
}

/* Bytes of the outer header that a balancer is free to choose become those of the other. */
static void level(const struct frame *want, struct frame *got, const char *encapsulation)
{
    uint32_t ip = 14, header = want->b[12] == 0x08 ? 20 : 40;
    if (header == 20) {
        memcpy(got->b + ip + 10, want->b + ip + 10, 10); /* checksum, source, destination */
    } else {
        memcpy(got->b + ip + 8, want->b + ip + 8, 32);
    }
    if (!strcmp(encapsulation, "gue")) {
        memcpy(got->b + ip + header, want->b + ip + header, 2);         /* source port */
        memcpy(got->b + ip + header + 6, want->b + ip + header + 6, 2); /* checksum */
    }
}

static bool is_by_id(const char *name)
{
    for (size_t i = 0; i < iso_countof(by_id); i++)
        if (!strcmp(by_id[i], name))
            return true;
    return false;
}

static bool replay(struct rig *rig, const json_t *vector)
{
    static const char *const verdicts[] = {"XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX"};
    struct frame in, want, got;
    const char *name = text(vector, "name"), *encapsulation = text(vector, "encapsulation");
    decode(text(vector, "input_b64"), &in);
    decode(text(vector, "expected_output_b64"), &want);
    const char *verdict = verdicts[rig_run(rig, &in, &got) & 3];
    if (strcmp(verdict, text(vector, "expected_return"))) {
        print_message("%s: %s, expected %s (%s)\n", name, verdict, text(vector, "expected_return"),
                      text(vector, "about"));
        return false;
    }
    if (strcmp(verdict, "XDP_DROP") == 0)
        return true;
    bool tunnel = encapsulation[0] && strcmp(encapsulation, "none");
    if (tunnel) {
        int real = rig_real_of(rig, &got);
        if (real < 0 || !(frame_sums_right(&got, 14) || got.b[12] == 0x86 || !strcmp(encapsulation, "gue"))) {
            print_message("%s: no real's address or wrong checksums\n", name);
            return false;
        }
        if (is_by_id(name) &&
            !slice_eq(rig->spec.reals[real].name, slice_str(text(vector, "real_chosen_upstream")))) {
            print_message("%s: to %.*s, expected %s\n", name, SLICE_ARG(rig->spec.reals[real].name),
                          text(vector, "real_chosen_upstream"));
            return false;
        }
        if ((got.b[12] == 0x08) != (want.b[12] == 0x08))
            return true; /* a real of the other family, where the VIP has both */
        level(&want, &got, encapsulation);
    }
    if (got.n != want.n || memcmp(got.b, want.b, got.n)) {
        uint32_t at = 0;
        while (at < got.n && at < want.n && got.b[at] == want.b[at])
            at++;
        print_message("%s: %u bytes, expected %u; first difference at %u: %02x, expected %02x (%s)\n", name,
                      got.n, want.n, at, got.b[at], want.b[at], text(vector, "about"));
        return false;
    }
    return true;
}

static const json_t *environment_of(const char *name)
{
    size_t i;
    json_t *environment;
    json_array_foreach(json_object_get(file, "environments"), i,
                       environment) if (!strcmp(text(environment, "name"), name)) return environment;
    return NULL;
}

static void replay_set(const char *set, const char *environment, bool gue)
{
    struct rig rig;
    need_file();
    size_t i;
    json_t *vector;
    unsigned right = 0, wrong = 0, excepted = 0;
    build(&rig, environment_of(environment), gue);
    json_array_foreach(json_object_get(file, "vectors"), i, vector)
    {
        if (strcmp(text(vector, "set"), set))
            continue;
        const char *why = exception(text(vector, "name"));
        if (why) {
            print_message("%s: not compared: %s\n", text(vector, "name"), why);
            excepted++;
        } else if (replay(&rig, vector)) {
            right++;
        } else {
            wrong++;
        }
    }
    rig_stop(&rig);
    print_message("%s: %u as expected, %u not, %u not compared\n", set, right, wrong, excepted);
    assert_int_equal(wrong, 0);
    assert_true(right > 0);
}

static void ipip_vectors(void **state)
{
    replay_set("base", "base", false);
}

static void gue_vectors(void **state)
{
    replay_set("gue", "base", true);
}

static void prefix_vip_vectors(void **state)
{
    replay_set("cidr_vip", "cidr", true);
}

static void too_big_vectors(void **state)
{
    replay_set("icmp_toobig", "base", false);
}

static void decapsulation_vectors(void **state)
{
    struct ip_addr vips[2];
    struct l4_decap decap = {.vips = vips, .n_vips = 2, .gue_port = 9886};
    struct iso_diag diag;
    size_t i;
    json_t *vector;
    unsigned right = 0;
    need_file();
    diag_init(&diag);
    assert_true(ip_parse(SLICE("10.200.1.1"), &vips[0]));
    assert_true(ip_parse(SLICE("fc00:1::1"), &vips[1]));
    json_array_foreach(json_object_get(file, "vectors"), i, vector)
    {
        struct frame in, want, got;
        uint32_t verdict;
        if (strcmp(text(vector, "set"), "gue_decap_stats") ||
            strcmp(text(vector, "expected_return"), "XDP_PASS"))
            continue;
        decode(text(vector, "input_b64"), &in);
        decode(text(vector, "expected_output_b64"), &want);
        assert_int_equal(l4_decap_run(&decap, in.b, in.n, got.b, sizeof(got.b), &got.n, &verdict, &diag),
                         ISO_OK);
        assert_int_equal(verdict, XDP_PASS_);
        assert_int_equal(got.n, want.n);
        /* The other counts the tunnel as a hop of the inner packet; here its TTL stays as it is. */
        bool v6 = want.b[12] == 0x86;
        memcpy(want.b + (v6 ? 21 : 22), got.b + (v6 ? 21 : 22), 1);
        if (!v6)
            memcpy(want.b + 24, got.b + 24, 2);
        assert_true(frame_sums_right(&got, 14));
        assert_memory_equal(got.b + 14, want.b + 14, want.n - 14);
        right++;
    }
    diag_fini(&diag);
    assert_int_equal(right, 2);
}

static int open_file(void **state)
{
    const char *path = getenv("ISOBAR_L4_VECTORS");
    json_error_t error;
    if (!path)
        return 0;
    file = json_load_file(path, 0, &error);
    if (!file)
        fprintf(stderr, "%s: %s\n", path, error.text);
    for (size_t i = 0; i < iso_countof(absent) && file; i++)
        print_message("%s: not replayed: %s\n", absent[i].set, absent[i].why);
    return file ? 0 : -1;
}

static int close_file(void **state)
{
    json_decref(file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ipip_vectors),          cmocka_unit_test(gue_vectors),
        cmocka_unit_test(prefix_vip_vectors),    cmocka_unit_test(too_big_vectors),
        cmocka_unit_test(decapsulation_vectors),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
