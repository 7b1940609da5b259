/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says about who is let in. */
#ifndef ISOBAR_CONFIG_MODEL_GUARD_H
#define ISOBAR_CONFIG_MODEL_GUARD_H

#include "core/ip.h"

#include "config/model_tls.h"

struct config_pair;

/* By address; the longest prefix decides. */
struct config_sources {
    struct ip_prefix *allow; /* none: all that are not denied */
    uint32_t n_allow;
    struct ip_prefix *deny;
    uint32_t n_deny;
};

/* Of each address. */
struct config_connection_rate {
    bool set;
    uint32_t connections;
    uint32_t period_ms; /* key per_s */
    uint32_t burst;     /* 0: as many as connections */
    uint32_t max_clients;
};

/* Strict-Transport-Security. */
struct config_hsts {
    bool set;
    uint32_t max_age_s;
    bool include_subdomains, preload;
};

/* JSON Web Tokens that requests must bring. */
struct config_jwt {
    bool set;
    struct slice jwks_file;
    struct slice issuer;    /* ptr NULL: any */
    struct slice *audience; /* any of these; none: any */
    uint32_t n_audience;
    struct slice cookie; /* ptr NULL: only Authorization is looked at */
    uint32_t leeway_ms;  /* key leeway_s */
    bool needs_exp;
    struct config_pair *claims; /* field name, claim */
    uint32_t n_claims;
    struct config_place place;
};

/* Names and passwords that requests must bring. */
struct config_basic_auth {
    bool set;
    struct slice password_file;
    struct slice realm;
    struct slice user_field; /* that carries the name to the target; ptr NULL: none */
    struct config_place place;
};

#endif
