/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"

#include "doc/json.h"

#include <stdarg.h>
#include <stdio.h>

int ctl_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("isobar ctl: ", stderr);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputs("; see isobar ctl --help\n", stderr);
    return CTL_USAGE;
}

/* {"error": {"code", "path", "message"}}, and all faults where there are several. */
static void print_error(const struct ctl_answer *answer)
{
    const struct doc_node *error = answer->doc.root ? doc_get(answer->doc.root, "error") : NULL;
    const struct doc_node *faults = answer->doc.root ? doc_get(error, "errors") : NULL;
    struct slice path = ctl_text(error, "path");
    if (!error) {
        fprintf(stderr, "isobar ctl: %u: %.*s\n", answer->reply.status,
                (int)(answer->reply.body.len < 500 ? answer->reply.body.len : 500),
                answer->reply.body.len ? answer->reply.body.data : "");
        return;
    }
    fprintf(stderr, "isobar ctl: %u %.*s: ", answer->reply.status, SLICE_ARG(ctl_text(error, "code")));
    if (!slice_eq(path, SLICE("-")))
        fprintf(stderr, "%.*s: ", SLICE_ARG(path));
    fprintf(stderr, "%.*s\n", SLICE_ARG(ctl_text(error, "message")));
    for (const struct doc_node *one = faults && faults->first ? faults->first->next : NULL; one;
         one = one->next)
        fprintf(stderr, "  %.*s: %.*s\n", SLICE_ARG(ctl_text(one, "path")),
                SLICE_ARG(ctl_text(one, "message")));
}

int ctl_send(const struct ctl *ctl, const char *method, const char *path, const char *content_type,
             struct slice body, struct ctl_answer *answer)
{
    char fault[CLIENT_FAULT_MAX];
    struct client_request request = {
        .method = method, .path = path, .content_type = content_type, .body = body};
    char if_match[64];
    if (ctl->version && body.ptr) {
        snprintf(if_match, sizeof(if_match), "\"%s\"", ctl->version);
        request.if_match = if_match;
    }
    diag_init(&answer->diag);
    doc_init(&answer->doc, "", &answer->diag);
    if (!client_call(&ctl->client, &request, &answer->reply, fault)) {
        fprintf(stderr, "isobar ctl: %s: %s\n", ctl->client.address, fault);
        return CTL_UNREACHABLE;
    }
    bool is_json = slice_starts(slice_str(answer->reply.content_type), SLICE("application/json"));
    if (is_json && answer->reply.body.len && json_read(text_slice(&answer->reply.body), &answer->doc))
        answer->doc.root = NULL;
    if (answer->reply.status < 400)
        return CTL_OK;
    if (ctl->json)
        fprintf(stderr, "%.*s", (int)answer->reply.body.len,
                answer->reply.body.len ? answer->reply.body.data : "");
    else
        print_error(answer);
    return CTL_REFUSED;
}

int ctl_ask(const struct ctl *ctl, const char *method, const char *path, struct ctl_answer *answer)
{
    return ctl_send(ctl, method, path, NULL, (struct slice){0}, answer);
}

void ctl_answer_fini(struct ctl_answer *answer)
{
    client_reply_fini(&answer->reply);
    doc_fini(&answer->doc);
    diag_fini(&answer->diag);
}
