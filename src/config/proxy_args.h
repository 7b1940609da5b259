/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of `isobar proxy`: no file, only options. They are made into a document, which goes the
 * way of every other one, so that an option allows and refuses what the key in a file does. */
#ifndef ISOBAR_CONFIG_PROXY_ARGS_H
#define ISOBAR_CONFIG_PROXY_ARGS_H

#include "config/load.h"

/* All as typed; NULL: not given. */
struct config_proxy_args {
    const char *const *listen; /* ":8080", "8080", "127.0.0.1:8080", "[::1]:8080", "unix:/path" */
    uint32_t n_listen;
    /* "HOST:PORT", ":PORT" (127.0.0.1), "http://HOST[:PORT]", "unix:/path"; ",weight=N" and ",backup" may
     * follow */
    const char *const *to;
    uint32_t n_to;
    const char *algorithm;
    const char *health_path; /* checks by HTTP instead of TCP */
    const char *admin;       /* address with port, "unix:/path" or "off" */
    const char *workers;
    const char *access_log; /* "stdout" or a file */
};

/* Faults name the option. A host name is resolved here, once: each of its addresses becomes a target (the
 * IPv4 ones when there are any). Relative paths begin at the working directory. Threads: any; may block in
 * the resolver. Owns: the caller, until config_source_fini(). */
iso_err config_for_proxy(const struct config_proxy_args *args, struct config_source *out,
                         struct iso_diag *diag) ISO_MUST_USE;

#endif
