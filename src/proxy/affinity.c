/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/affinity.h"

#include "core/clock.h"
#include "core/hash.h"
#include "proxy/affinity_share.h"
#include "proxy/exchange.h"
#include "shared/session_key.h"

#include <stdlib.h>
#include <sys/random.h>

/* Targets are named by session_target_id(): in the table 32 bits of it serve, in the cookie all 64. */
enum {
    ID_DIGITS = 16,
    SESSION_BYTES = 16,
    COOKIE_MAX = 384, /* the longest name of a target: of a service, with an address */
};

struct affinity_id {
    uint64_t id;
    uint32_t target;
};

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct affinity_id *)a)->id, y = ((const struct affinity_id *)b)->id;
    return (x > y) - (x < y);
}

void affinity_build(struct snapshot *snapshot, struct snap_group *group)
{
    const struct config_affinity *config = &group->config->affinity;
    if (config->type == CONFIG_AFFINITY_NONE)
        return;
    group->affinity = arena_array(&snapshot->arena, struct affinity_id, group->n_targets + 1);
    for (uint32_t i = 0; i < group->n_targets; i++)
        group->affinity[i] = (struct affinity_id){session_target_id(group->pool.names[i]), i};
    qsort(group->affinity, group->n_targets, sizeof(*group->affinity), by_id);
    group->affinity_key = (struct siphash_key){iso_hash64(config->secret, 1), iso_hash64(config->secret, 2)};
    if (config->type != CONFIG_AFFINITY_COOKIE && !group->runtime->sessions)
        group->runtime->sessions = local_sessions_new(config->max_sessions);
}

static uint64_t id_of(const struct snap_group *group, uint32_t target)
{
    return session_target_id(group->pool.names[target]);
}

/* The first id at or above; ids of the table have only their upper half. */
static uint32_t find_id(const struct snap_group *group, uint64_t id, bool upper_half)
{
    uint32_t lo = 0, hi = group->n_targets;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (group->affinity[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == group->n_targets)
        return BALANCE_NONE;
    uint64_t found = group->affinity[lo].id;
    return (upper_half ? found >> 32 == id >> 32 : found == id) ? group->affinity[lo].target : BALANCE_NONE;
}

static uint32_t find_name(const struct snap_group *group, struct slice name)
{
    return find_id(group, session_target_id(name), false);
}

static void put_hex(char *out, uint64_t v)
{
    for (int i = 0; i < ID_DIGITS; i++)
        out[i] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
}

static bool get_hex(struct slice s, uint64_t *out)
{
    uint64_t v = 0;
    if (s.len != ID_DIGITS)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 16;
        if (digit > 15)
            return false;
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

/* The value of a cookie for a target; returns its length. */
static size_t put_cookie_value(const struct snap_group *group, uint32_t target, char out[COOKIE_MAX])
{
    struct slice name = group->pool.names[target];
    if (group->config->affinity.id == CONFIG_COOKIE_PLAIN) {
        size_t n = name.len < COOKIE_MAX ? name.len : COOKIE_MAX;
        memcpy(out, name.ptr, n);
        return n;
    }
    put_hex(out, id_of(group, target));
    if (group->config->affinity.id == CONFIG_COOKIE_OPAQUE)
        return ID_DIGITS;
    out[ID_DIGITS] = '.';
    put_hex(out + ID_DIGITS + 1, siphash(&group->affinity_key, slice_of(out, ID_DIGITS)));
    return 2 * ID_DIGITS + 1;
}

/* What a cookie names; anything that we would not have sent names nothing (case C-128). */
static uint32_t read_cookie_value(const struct snap_group *group, struct slice value)
{
    uint64_t id, mac;
    switch ((enum config_cookie_id)group->config->affinity.id) {
    case CONFIG_COOKIE_PLAIN:
        return find_name(group, value);
    case CONFIG_COOKIE_OPAQUE:
        return get_hex(value, &id) ? find_id(group, id, false) : BALANCE_NONE;
    case CONFIG_COOKIE_SIGNED:
        break;
    }
    struct slice text = slice_of(value.ptr, value.len < ID_DIGITS ? value.len : ID_DIGITS);
    if (value.len != 2 * ID_DIGITS + 1 || value.ptr[ID_DIGITS] != '.' || !get_hex(text, &id) ||
        !get_hex(slice_of(value.ptr + ID_DIGITS + 1, ID_DIGITS), &mac))
        return BALANCE_NONE;
    uint64_t difference =
        mac ^ siphash(&group->affinity_key, text); /* one comparison: no timing to learn from */
    return difference == 0 ? find_id(group, id, false) : BALANCE_NONE;
}

static uint64_t session_key(const struct snap_group *group, struct slice id)
{
    return session_table_key(&group->runtime->session_salt, id);
}

static uint64_t address_key(const struct snap_group *group, const struct ip_addr *ip)
{
    return session_table_key_of_client(&group->runtime->session_salt, ip);
}

static uint32_t now_s(const struct exchange *x)
{
    return (uint32_t)(x->worker->loop.now_ns / NS_PER_S);
}

static uint32_t ttl_s(const struct exchange *x)
{
    return x->group->config->affinity.ttl_ms / 1000;
}

/* How the client is known: by the cookie it sent, or by its address. Types cookie: the target that the cookie
 * names; the others: the key of the table. */
static void identify(const struct snap_group *group, struct http_message *msg, const struct ip_addr *client,
                     struct affinity_view *who)
{
    const struct config_affinity *config = &group->config->affinity;
    struct slice value = {0};
    *who = (struct affinity_view){.target = BALANCE_NONE};
    who->has_cookie = config->type != CONFIG_AFFINITY_CLIENT_IP &&
                      http_message_cookie(msg, config->cookie, &value) && value.len > 0 &&
                      value.len <= COOKIE_MAX;
    if (config->type != CONFIG_AFFINITY_COOKIE)
        who->key = who->has_cookie ? session_key(group, value) : address_key(group, client);
    else if (who->has_cookie)
        who->target = read_cookie_value(group, value);
    who->session = who->has_cookie ? value : (struct slice){0};
}

void affinity_note_request(struct exchange *x, struct http_message *msg)
{
    const struct config_affinity *config = &x->group->config->affinity;
    struct affinity_view who;
    uint32_t half;
    bool is_renewed = false;
    x->bound_target = BALANCE_NONE;
    if (config->type == CONFIG_AFFINITY_NONE)
        return;
    identify(x->group, msg, &x->client_ip, &who);
    x->bound_target = who.target;
    if (config->type == CONFIG_AFFINITY_COOKIE)
        return;
    x->has_session = who.has_cookie;
    x->session_key = who.key;
    share_note_client(x, who.session);
    if (!local_sessions_find(x->group->runtime->sessions, who.key, now_s(x), ttl_s(x), &half, &is_renewed))
        share_ask(x);
    else
        x->bound_target = find_id(x->group, (uint64_t)half << 32, true);
    if (is_renewed)
        share_note_renewed(x);
}

void affinity_adopt(struct exchange *x, struct slice name)
{
    uint32_t target = find_name(x->group, name);
    if (target == BALANCE_NONE)
        return; /* it has left the group: the algorithm decides, and binds anew */
    x->bound_target = target;
    local_sessions_put(x->group->runtime->sessions, x->session_key, now_s(x), ttl_s(x),
                       session_target_half(name));
}

/* Active, or draining with time left: its sessions may stay (C3, case C-101). So they may while health is
 * ignored (D5): a session that moved at every request would be no session. */
static bool may_serve_session(const struct snap_group *group, uint32_t target, uint64_t wall_ns)
{
    const struct health_status *health = &group->targets[target]->health;
    if (health_is_usable(health))
        return true;
    if (atomic_load_explicit(&group->runtime->health.is_panicking, memory_order_relaxed) &&
        health_is_usable_in_panic(health, true))
        return true;
    uint64_t since_ns =
        atomic_load_explicit(&((struct health_status *)health)->changed_wall_ns, memory_order_relaxed);
    uint64_t delay_ns = group->config->deregistration_delay_ms * NS_PER_MS;
    return atomic_load_explicit(&((struct health_status *)health)->state, memory_order_relaxed) ==
               TARGET_DRAINING &&
           wall_ns < since_ns + delay_ns;
}

/* What the table says of view->key. */
static void look(const struct snap_group *group, uint64_t now_ns, struct affinity_view *view)
{
    struct local_session session;
    uint32_t now = (uint32_t)(now_ns / NS_PER_S);
    if (!local_sessions_peek(group->runtime->sessions, view->key, now, &session))
        return;
    view->target = find_id(group, (uint64_t)session.target << 32, true);
    view->age_s = now - session.bound_s;
    view->left_s = session.expires_s - now;
}

void affinity_peek(const struct snap_group *group, struct http_message *msg, const struct ip_addr *client,
                   uint64_t now_ns, uint64_t wall_ns, struct affinity_view *view)
{
    identify(group, msg, client, view);
    if (group->config->affinity.type != CONFIG_AFFINITY_COOKIE)
        look(group, now_ns, view);
    view->may_serve = view->target != BALANCE_NONE && may_serve_session(group, view->target, wall_ns);
}

static uint64_t key_of(const struct snap_group *group, struct slice id)
{
    struct ip_addr ip;
    return ip_parse(id, &ip) ? address_key(group, &ip) : session_key(group, id);
}

bool affinity_session_find(const struct snap_group *group, struct slice id, uint64_t now_ns,
                           struct affinity_view *view)
{
    *view = (struct affinity_view){.target = BALANCE_NONE};
    if (!group->runtime->sessions || !group->affinity)
        return false;
    view->key = key_of(group, id);
    look(group, now_ns, view);
    return view->target != BALANCE_NONE;
}

bool affinity_session_end(const struct snap_group *group, struct slice id)
{
    if (group->shared && group->runtime->sessions)
        shared_state_forget(group->shared, group->config->name, id);
    return group->runtime->sessions && local_sessions_drop(group->runtime->sessions, key_of(group, id));
}

uint32_t affinity_target(struct exchange *x)
{
    struct group_counters *counters = &x->group->runtime->workers[x->worker->index];
    if (x->bound_target == BALANCE_NONE || x->n_tried > 0)
        return BALANCE_NONE;
    if (may_serve_session(x->group, x->bound_target, x->worker->loop.wall_ns)) {
        counter_add(&counters->affinity_hits, 1);
        return x->bound_target;
    }
    counter_add(&counters->affinity_broken, 1);
    if (x->group->runtime->sessions)
        local_sessions_drop(x->group->runtime->sessions, x->session_key);
    x->bound_target = BALANCE_NONE;
    return BALANCE_NONE;
}

static char *put(char *at, struct slice s)
{
    memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static bool add_set_cookie(struct exchange *x, struct http_message *msg, struct scratch *scratch,
                           struct slice value)
{
    static const struct slice same_site[] = {[CONFIG_SAME_SITE_LAX] = {"; SameSite=Lax", 14},
                                             [CONFIG_SAME_SITE_STRICT] = {"; SameSite=Strict", 17},
                                             [CONFIG_SAME_SITE_NONE] = {"; SameSite=None", 15}};
    const struct config_affinity *config = &x->group->config->affinity;
    size_t most = config->cookie.len + value.len + config->path.len + config->domain.len + 128;
    char *text = scratch_take(scratch, most), *at = text;
    if (!text)
        return false;
    at = put(put(at, config->cookie), SLICE("="));
    at = put(put(put(at, value), SLICE("; Path=")), config->path);
    if (config->domain.len)
        at = put(put(at, SLICE("; Domain=")), config->domain);
    if (config->cookie_max_age && config->ttl_ms) {
        char digits[16];
        size_t n = sizeof(digits);
        for (uint32_t v = ttl_s(x); v || n == sizeof(digits); v /= 10)
            digits[--n] = (char)('0' + v % 10);
        at = put(put(at, SLICE("; Max-Age=")), slice_of(digits + n, sizeof(digits) - n));
    }
    if (config->http_only)
        at = put(at, SLICE("; HttpOnly"));
    if (config->secure)
        at = put(at, SLICE("; Secure"));
    at = put(at, same_site[config->same_site]);
    return http_message_add(msg, SLICE("Set-Cookie"), slice_of(text, (size_t)(at - text)));
}

/* A new session's id: not to be guessed, since whoever knows it is sent where its owner is. */
static bool make_session_id(char out[2 * SESSION_BYTES])
{
    uint64_t words[2];
    if (getrandom(words, sizeof(words), GRND_NONBLOCK) != sizeof(words))
        return false;
    put_hex(out, words[0]);
    put_hex(out + ID_DIGITS, words[1]);
    return true;
}

/* `session` is a new one's id; ptr NULL: the client is the one of the request. */
static void bind_session(struct exchange *x, struct slice session, uint32_t target)
{
    local_sessions_put(x->group->runtime->sessions, x->session_key, now_s(x), ttl_s(x),
                       session_target_half(x->group->pool.names[target]));
    share_bind(x, session, target);
}

bool affinity_note_answer(struct exchange *x, struct http_message *msg, struct scratch *scratch)
{
    const struct config_affinity *config = &x->group->config->affinity;
    uint32_t target = x->tried[x->n_tried - 1];
    char value[COOKIE_MAX];
    switch ((enum config_affinity_type)config->type) {
    case CONFIG_AFFINITY_NONE:
        return true;
    case CONFIG_AFFINITY_COOKIE:
        if (x->bound_target == target)
            return true;
        return add_set_cookie(x, msg, scratch, slice_of(value, put_cookie_value(x->group, target, value)));
    case CONFIG_AFFINITY_CLIENT_IP:
        if (x->bound_target != target)
            bind_session(x, (struct slice){0}, target);
        return true;
    case CONFIG_AFFINITY_SESSION:
        break;
    }
    if (x->bound_target != target)
        bind_session(x, (struct slice){0}, target);
    if (x->has_session || !make_session_id(value))
        return true; /* without an id the address still binds it */
    x->session_key = session_key(x->group, slice_of(value, 2 * SESSION_BYTES));
    bind_session(x, slice_of(value, 2 * SESSION_BYTES), target);
    return add_set_cookie(x, msg, scratch, slice_of(value, 2 * SESSION_BYTES));
}
