/* SPDX-License-Identifier: Apache-2.0 */
#include "process/files.h"

#include "core/clock.h"
#include "core/hash.h"

#include <sys/stat.h>

enum { STEADY_MS = 1000 };

static uint64_t add(uint64_t sum, struct slice file)
{
    struct stat st;
    if (!file.ptr)
        return sum;
    /* A path may be a link to what is changed as a whole, so its inode counts. */
    const uint64_t facts[] = {sum, stat(file.ptr, &st) == 0 ? (uint64_t)st.st_ino : 0,
                              (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec,
                              (uint64_t)st.st_size};
    bool exists = facts[1] != 0;
    return iso_hash64(slice_of((const char *)facts, exists ? sizeof(facts) : sizeof(facts[0])), exists);
}

static uint64_t add_clients(uint64_t sum, const struct config_clients *clients)
{
    return add(add(sum, clients->ca_file), clients->crl_file);
}

static uint64_t add_listener(uint64_t sum, const struct config_listener *listener)
{
    for (uint32_t i = 0; i < listener->tls.n_ticket_key_files; i++)
        sum = add(sum, listener->tls.ticket_key_files[i]);
    sum = add_clients(sum, &listener->tls.clients);
    for (uint32_t i = 0; i < listener->n_rules; i++) {
        sum = add(sum, listener->rules[i].jwt.jwks_file);
        sum = add(sum, listener->rules[i].basic_auth.password_file);
    }
    return sum;
}

uint64_t files_signature(const struct config *config)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < config->n_certificates; i++) {
        const struct config_certificate *certificate = &config->certificates[i];
        sum = add(add(add(sum, certificate->cert_file), certificate->key_file), certificate->ocsp_file);
        sum = add_clients(sum, &certificate->clients);
    }
    for (uint32_t l = 0; l < config->n_load_balancers; l++)
        for (uint32_t i = 0; i < config->load_balancers[l].n_listeners; i++)
            sum = add_listener(sum, &config->load_balancers[l].listeners[i]);
    for (uint32_t g = 0; g < config->n_target_groups; g++) {
        const struct config_group_tls *tls = &config->target_groups[g].tls;
        sum = add(add(add(sum, tls->ca_file), tls->cert_file), tls->key_file);
    }
    return sum;
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct files_watch *watch = container_of(timer, struct files_watch, timer);
    uint64_t now = files_signature(watch->config), wait_ms = watch->config->watch_files_ms;
    bool is_steady = now == watch->last;
    watch->last = now;
    if (now != watch->seen && !is_steady)
        wait_ms = STEADY_MS; /* it may still be written */
    loop_timer_set(loop, timer, loop->now_ns + wait_ms * NS_PER_MS);
    if (now == watch->seen || !is_steady)
        return;
    watch->seen = now; /* files that are of no use are not tried again until they change */
    watch->on_change(watch);
}

void files_watch_init(struct files_watch *watch, void (*on_change)(struct files_watch *watch))
{
    *watch = (struct files_watch){.on_change = on_change};
    loop_timer_init(&watch->timer, on_due);
}

void files_watch_set(struct files_watch *watch, struct loop *loop, const struct config *config)
{
    bool is_other = config != watch->config;
    watch->config = config;
    if (!is_other)
        return;
    watch->seen = watch->last = files_signature(config);
    if (config->watch_files_ms)
        loop_timer_set(loop, &watch->timer, loop->now_ns + config->watch_files_ms * NS_PER_MS);
    else
        loop_timer_clear(&watch->timer);
}
