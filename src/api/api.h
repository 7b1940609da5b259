/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the API: a request to the admin listener from its whole body to its answer. A handler gets the
 * call when the request is complete, the client is known and may do what the route is for. It fills `reply`
 * and returns; or it defers the call and answers later with api_finish(), on the same thread. A call outlives
 * its connection: when the client has gone, the answer is thrown away. Threads: control. */
#ifndef ISOBAR_API_API_H
#define ISOBAR_API_API_H

#include "core/arena.h"
#include "core/diag.h"
#include "core/text.h"
#include "http/message.h"

struct admin_conn;
struct api_call;
struct api_route;
struct control_view;
struct document;

/* What a client may do; each includes those before it. */
enum api_role {
    API_OPEN,    /* anybody: health of this node */
    API_READ,    /* look */
    API_OPERATE, /* drain, enable, weigh targets; end sessions */
    API_ADMIN,   /* everything */
};

/* "operate". */
const char *api_role_word(enum api_role role);

typedef void api_handler(struct api_call *call);

struct api_reply {
    unsigned status;           /* 200 unless the handler says otherwise */
    struct slice content_type; /* application/json unless the handler says otherwise */
    struct text body;
    struct slice etag, location, allow; /* in the call's arena; ptr NULL: none */
    unsigned retry_after_s;             /* 0: none */
};

enum { API_PARAMS_MAX = 4 };

struct api_call {
    struct arena arena;
    const struct control_view *view; /* borrows */
    struct document *document;       /* borrows: the configuration; NULL: this process has none */
    struct http_message *request;    /* owns, in the arena, with the bytes it borrows */
    const struct api_route *route;
    struct slice params[API_PARAMS_MAX]; /* what stood for the pattern's {names}, decoded; in the arena */
    unsigned n_params;
    struct slice body; /* owns, beside the arena: api_call_free() */
    enum api_role role;
    struct slice who; /* name of the token, "local" without one; in the arena */
    struct api_reply reply;
    struct admin_conn *conn;               /* borrows: who waits for the answer; NULL: nobody any more */
    void (*finish)(struct api_call *call); /* of who waits: takes the answered call */
    bool is_deferred;
};

struct api_call *api_call_new(void);
void api_call_free(struct api_call **call);

/* The answer comes later, by api_finish(). */
void api_defer(struct api_call *call);
/* Sends the answer of a deferred call and frees the call. */
void api_finish(struct api_call *call);

/* Makes the answer an error: {"error": {"code", "path", "message"}}, with the status. `path` is a JSON
 * pointer into the request's body, or the name of a parameter; "" when the fault is of the whole. */
void api_fail(struct api_call *call, unsigned status, const char *code, const char *path, const char *fmt,
              ...) ISO_PRINTF(5, 6);
/* The same from what a check found: the first error, and all of them in "errors". Warnings are left out. */
void api_fail_diag(struct api_call *call, unsigned status, const char *code, const struct iso_diag *diag);

/* A query parameter, percent-decoded, in the arena; false when it is not there. A broken escape is kept as it
 * stands. */
bool api_query(struct api_call *call, const char *name, struct slice *value);
/* Is the query parameter there and "true", "1" or without a value? */
bool api_query_flag(struct api_call *call, const char *name);
/* The value of a field of the request; ptr NULL when it is not there. */
struct slice api_field(struct api_call *call, const char *name);

/* Begins a reply of content "text/plain". */
void api_reply_plain(struct api_call *call);

#endif
