/* SPDX-License-Identifier: Apache-2.0 */
/* A small blocking HTTP client for the command line: one request on a connection of its own to the admin
 * listener of a running isobar. Limits keep a broken server from costing more than time and 64 MiB. */
#ifndef ISOBAR_CTL_CLIENT_H
#define ISOBAR_CTL_CLIENT_H

#include "core/text.h"

enum { CLIENT_BODY_MAX = 64 << 20, CLIENT_TIMEOUT_S = 60, CLIENT_FAULT_MAX = 320 };

struct client {
    const char *address; /* "127.0.0.1:8443", "http://HOST:PORT", "https://HOST:PORT", "unix:/path" */
    const char *token;   /* NULL: none */
    const char *ca_file; /* of https; NULL: the system's authorities */
};

struct client_request {
    const char *method;
    const char *path; /* with its query, percent-encoded */
    const char *content_type;
    struct slice body;    /* ptr NULL: none */
    const char *if_match; /* NULL: none */
};

struct client_reply {
    unsigned status;
    char content_type[64];
    struct text body; /* owns */
};

/* True when an answer came, whatever its status; else `fault` says what went wrong. client_reply_fini() is
 * due in either case. */
bool client_call(const struct client *client, const struct client_request *request,
                 struct client_reply *reply, char fault[CLIENT_FAULT_MAX]);
void client_reply_fini(struct client_reply *reply);

/* Appends a segment of a path: all but unreserved characters and ':' are percent-encoded. */
void client_add_segment(struct text *path, struct slice segment);

#endif
