/* SPDX-License-Identifier: Apache-2.0 */
/* "redis://user:password@host:6379/0", "rediss://..." over TLS; Valkey speaks the same. User and password may
 * be percent-encoded. Source: the redis and rediss schemes as registered with IANA. */
#ifndef ISOBAR_CONFIG_REDIS_URL_H
#define ISOBAR_CONFIG_REDIS_URL_H

#include "core/arena.h"

struct redis_url {
    bool is_tls;
    struct slice user, password; /* decoded; len 0: none */
    struct slice host;           /* without brackets */
    uint16_t port;               /* 6379 unless given */
    uint32_t db;
};

/* False and `*why` (constant) when it is none. Owns: the arena. */
bool redis_url_parse(struct slice text, struct arena *arena, struct redis_url *out, const char **why);

#endif
