/* SPDX-License-Identifier: Apache-2.0 */
/* One check of one target: connect, over TLS where the target speaks it, and for HTTP send a request and
 * judge the answer. Non-blocking on the owner's loop; ends by its deadline whatever the target does, with a
 * reason that says how far it came. Redirects are an answer, never followed. Each check uses a connection of
 * its own, because whether the target still accepts one is half of the question. Source: D1, D7; cases C-091
 * C-092 C-098. */
#ifndef ISOBAR_HEALTH_PROBE_H
#define ISOBAR_HEALTH_PROBE_H

#include "config/model.h"
#include "health/answer.h"
#include "http2/client.h"
#include "net/addr.h"
#include "net/conn.h"
#include "tls/client.h"
#include "tls/tls_layer.h"

/* What to do, made once per target. Everything it points to is its own. */
struct probe_plan {
    struct net_addr addr;
    struct config_health_check check; /* slices and ranges owned by the plan */
    struct body_pattern *pattern;     /* owns; NULL: none */
    struct slice request;             /* the whole HTTP request; empty: TCP only */
    struct slice message;             /* of a grpc check, behind the request */
    bool is_head;
    struct tls_client *tls;                   /* shared (counted); NULL: plain */
    enum config_proxy_version proxy_protocol; /* of the header that goes first */
};

/* `addr` is the target's; the check's own port replaces its port. Aborts when memory ends. */
struct probe_plan *probe_plan_new(const struct net_addr *addr, const struct config_health_check *check,
                                  struct tls_client *tls, enum config_proxy_version proxy_protocol);
void probe_plan_free(struct probe_plan *plan);
/* Do both check the same in the same way, thresholds and intervals included? */
bool probe_plan_eq(const struct probe_plan *a, const struct probe_plan *b);

struct probe;

struct probe_result {
    enum health_reason reason; /* OK, or why not */
    uint16_t http_status;      /* 0: no answer */
    uint64_t started_ns, ended_ns;
};

/* Called once per probe_start(), maybe before that returns; the probe may be started again
 * through a timer, so that no event of this turn meets its new socket. */
typedef void probe_done_fn(struct loop *loop, struct probe *probe, const struct probe_result *result);

enum probe_phase { PROBE_IDLE, PROBE_CONNECTING, PROBE_SECURING, PROBE_RECEIVING };

struct probe {
    struct conn conn;              /* its timer is the deadline */
    struct buf_pool *bufs;         /* borrows: the owner's */
    struct tls_thread *tls;        /* the same; NULL: plans have no TLS */
    const struct probe_plan *plan; /* borrows from the owner until done or aborted */
    probe_done_fn *on_done;
    uint64_t started_ns;
    struct answer answer; /* of an HTTP check */
    uint8_t phase;        /* enum probe_phase */
    /* Over HTTP/2. */
    struct http2_client_thread
        *http2; /* borrows: the owner's, set after probe_init(); NULL: no plan needs it */
    struct http2_client client;
    struct http2_stream *stream; /* owns */
    bool is_http2;               /* `client` is open */
    bool is_decided;
    enum health_reason decision;
};

void probe_init(struct probe *probe, struct buf_pool *bufs, struct tls_thread *tls, probe_done_fn *on_done);
bool probe_is_running(const struct probe *probe);
void probe_start(struct loop *loop, struct probe *probe, const struct probe_plan *plan);
/* Ends a probe without a call of on_done; nothing happens when none is running. */
void probe_abort(struct loop *loop, struct probe *probe);

#endif
