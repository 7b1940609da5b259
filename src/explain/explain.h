/* SPDX-License-Identifier: Apache-2.0 */
/* What would become of a request (K3): the listener it comes to, the rule that takes it and why others do
 * not, each stage that may refuse it, the answer or the target groups, and in each of them affinity, method,
 * candidates and choice. The code of the request path itself is asked (parser, route_explain(), select_in(),
 * affinity_peek()), over moving state of the explanation's own: nothing is sent, counted, renewed or given
 * up, and no cursor moves.
 *
 * What depends on a worker's cursor or on chance is answered as a distribution: the shares that the method
 * gives its targets with the loads of this moment. */
#ifndef ISOBAR_EXPLAIN_EXPLAIN_H
#define ISOBAR_EXPLAIN_EXPLAIN_H

#include "core/text.h"
#include "guard/basic_auth.h"
#include "proxy/affinity.h"
#include "proxy/select.h"
#include "shared/limiter.h"

struct explain_query {
    struct slice method;   /* ptr NULL: GET */
    struct slice url;      /* "http://shop.example:8080/a?b"; also https, ws, wss, tcp, tls, udp */
    struct slice listener; /* by its name; ptr NULL: found by the URL's scheme, address and port */
    const struct config_pair *headers;
    uint32_t n_headers;
    struct ip_addr from; /* the peer, or whom a proxy tells by a PROXY header */
    struct ip_addr via; /* the proxy that does; family 0: one that is believed, where the listener has some */
    /* A password that explain_request() has asked for and that was compared since; NULL: none. */
    const struct passwords *compared;
    bool is_match;
};

enum explain_verdict {
    EXPLAIN_PASSES,
    EXPLAIN_REFUSES,
    EXPLAIN_WOULD_REFUSE, /* but for its dry_run */
    EXPLAIN_ASSUMED,      /* it depends on what the question does not say */
};

enum { EXPLAIN_STAGES_MAX = 12 };

/* One thing that may refuse a connection or a request. */
struct explain_stage {
    const char *name;
    enum explain_verdict verdict;
    const char *why;
};

struct explain_rule {
    uint32_t index; /* in the file */
    struct slice name;
    bool is_taken;
    const char *why;
};

struct explain_target {
    const struct config_target *config;
    enum target_state state;
    uint32_t in_flight, connections;
    uint32_t weight_pct; /* of its weight in force: less than 100 while it starts slowly */
    bool is_eligible;    /* the method may choose it */
    bool has_score;
    double score;     /* what the method compares: in flight / weight in force, the lowest is best */
    double share_pct; /* of requests like this one, were there no affinity */
    const char *why;  /* it is (not) eligible */
};

struct explain_group {
    const struct snap_group *group;
    double share_pct; /* of requests that the rule sends there */
    bool is_panicking;
    const char *hash_of; /* "client_ip 192.0.2.1"; NULL: the method needs no hash */
    uint64_t hash;
    bool has_affinity;
    struct affinity_view affinity;
    const char *affinity_why;
    struct explain_target *targets;          /* [group->n_targets] */
    uint32_t chosen;                         /* BALANCE_NONE: one of several, or none */
    uint32_t next[SELECT_TRIED_MAX], n_next; /* with a hash: where retries would go */
    enum exchange_end fails;                 /* END_NORMAL: it does not */
    const char *why;
};

struct explain {
    struct arena arena; /* owns every text and array here */
    const struct explain_query *query;
    const struct snap_listener *listener;
    const char *listener_why;
    struct http_message msg;
    enum http_reject reject; /* the parser refuses the request, and nothing follows */
    struct ip_addr peer;     /* as the listener sees it */
    struct ip_addr client;
    bool peer_trusted;
    struct explain_stage stages[EXPLAIN_STAGES_MAX]; /* those that were reached, in their order */
    uint32_t n_stages;
    const char *refused_by;     /* the last of them; NULL: none refuses */
    bool is_closed;             /* the connection, without an answer */
    struct explain_rule *rules; /* those tried, in that order, then the others */
    uint32_t n_rules;
    const struct config_rule *rule;      /* NULL: the listener's default */
    const struct snap_limit *limit;      /* of the rule; NULL: none */
    struct limiter_verdict limited;      /* what it would say */
    struct passwords *asks;              /* borrows: a password must be compared to know more; NULL: no */
    struct basic_auth_question password; /* that one, and the hash to compare it with */
    enum exchange_end end;               /* answered by us: why; END_NORMAL: forwarded */
    unsigned status;                     /* of our own answer */
    struct slice location;               /* of a redirect */
    struct explain_group *groups;
    uint32_t n_groups;
};

/* Fills `out` (heavy: not for the stack). ISO_ERR_INVALID and a diagnostic when the query makes no sense: no
 * URL, an address that no listener has. The snapshot, the query and what they point to must stay until
 * explain_fini(), which is due in either case. Where `asks` is set the answer takes the password for good:
 * compare it (which is slow) and ask again. Units: both clocks as workers read them. Threads: control. */
iso_err explain_request(const struct snapshot *snapshot, const struct explain_query *query, uint64_t now_ns,
                        uint64_t wall_ns, struct explain *out, struct iso_diag *diag) ISO_MUST_USE;
void explain_fini(struct explain *explain);

/* One JSON object. */
void explain_write_json(const struct explain *explain, struct text *out);
/* For people. */
void explain_write_text(const struct explain *explain, struct text *out);

#endif
