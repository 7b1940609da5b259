/* SPDX-License-Identifier: Apache-2.0 */
/* ctl drain, enable, weight, sessions, explain: what an operator does in a shift. */
#include "ctl/ctl.h"

#include "core/ip.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Changes one target by a merge patch. */
static int patch(struct ctl *ctl, const char *body, const char *what)
{
    struct ctl_answer answer;
    struct text path;
    text_init(&path);
    text_printf(&path, "/v1/target-groups/");
    client_add_segment(&path, slice_str(ctl->argv[0]));
    text_printf(&path, "/targets/");
    client_add_segment(&path, slice_str(ctl->argv[1]));
    if (ctl->dry_run)
        text_printf(&path, "?dry_run=true");
    int status = ctl_send(ctl, "PATCH", path.data, "application/merge-patch+json", slice_str(body), &answer);
    if (!status && ctl->json)
        ctl_print_raw(&answer);
    else if (!status)
        printf("%s %s: %s\n", ctl->argv[0], ctl->argv[1], ctl->dry_run ? "nothing was done (dry run)" : what);
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}

/* Requests that the target still works on. */
static int count_active(const struct ctl *ctl, uint64_t *active)
{
    struct ctl_answer answer;
    struct text path;
    text_init(&path);
    text_printf(&path, "/v1/target-groups/");
    client_add_segment(&path, slice_str(ctl->argv[0]));
    text_printf(&path, "/health");
    int status = ctl_ask(ctl, "GET", path.data, &answer);
    *active = 0;
    for (const struct doc_node *one = !status && answer.doc.root ? answer.doc.root->first : NULL; one;
         one = one->next) {
        uint64_t n;
        if (slice_eq(ctl_text(one, "target"), slice_str(ctl->argv[1])) &&
            slice_u64(ctl_text(one, "in_flight"), &n))
            *active += n;
    }
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}

static int wait_for_drain(const struct ctl *ctl)
{
    enum { POLL_US = 200000 };
    time_t until = time(NULL) + (time_t)ctl->wait_s;
    for (;;) {
        uint64_t active;
        int status = count_active(ctl, &active);
        if (status)
            return status;
        if (active == 0) {
            if (!ctl->json)
                printf("%s %s: drained\n", ctl->argv[0], ctl->argv[1]);
            return CTL_OK;
        }
        if (time(NULL) >= until) {
            fprintf(stderr, "isobar ctl: %s still has %llu requests after %u s\n", ctl->argv[1],
                    (unsigned long long)active, ctl->wait_s);
            return CTL_DIFFERS;
        }
        usleep(POLL_US);
    }
}

int ctl_drain(struct ctl *ctl)
{
    if (ctl->argc != 2)
        return ctl_usage("a target group and a target are needed");
    int status = patch(ctl, "{\"enabled\":false}", "takes no new requests and finishes those it has");
    return status || !ctl->wait_s || ctl->dry_run ? status : wait_for_drain(ctl);
}

int ctl_enable(struct ctl *ctl)
{
    if (ctl->argc != 2)
        return ctl_usage("a target group and a target are needed");
    return patch(ctl, "{\"enabled\":true}", "enabled; it takes requests once its checks pass");
}

int ctl_weight(struct ctl *ctl)
{
    char body[64], what[64];
    uint64_t weight;
    if (ctl->argc != 3 || !slice_u64(slice_str(ctl->argv[2]), &weight) || weight > 65535)
        return ctl_usage("a target group, a target and a weight of 0 to 65535 are needed");
    snprintf(body, sizeof(body), "{\"weight\":%llu}", (unsigned long long)weight);
    snprintf(what, sizeof(what), "weight %llu", (unsigned long long)weight);
    return patch(ctl, body, what);
}

/* ---- sessions ---- */

static void add_group(const struct ctl *ctl, char joint, struct text *path)
{
    if (!ctl->group)
        return;
    text_printf(path, "%ctarget_group=", joint);
    client_add_segment(path, slice_str(ctl->group));
}

static bool is_address(const char *id)
{
    struct ip_addr ip;
    return ip_parse(slice_str(id), &ip);
}

int ctl_sessions(struct ctl *ctl)
{
    struct ctl_answer answer;
    struct text path;
    if (ctl->argc != 1)
        return ctl_usage("a client's address or the id of a session is needed");
    text_init(&path);
    if (ctl->end) {
        text_printf(&path, "/api/sessions/");
        client_add_segment(&path, slice_str(ctl->argv[0]));
        add_group(ctl, '?', &path);
    } else {
        text_printf(&path, "/api/sessions?%s=", is_address(ctl->argv[0]) ? "client_ip" : "session_id");
        client_add_segment(&path, slice_str(ctl->argv[0]));
        add_group(ctl, '&', &path);
    }
    int status = ctl_ask(ctl, ctl->end ? "DELETE" : "GET", path.data, &answer);
    const struct doc_node *root = answer.doc.root;
    if (!status && ctl->json)
        ctl_print_raw(&answer);
    else if (!status && ctl->end)
        printf("%s: ended; its next request is routed anew\n", ctl->argv[0]);
    else if (!status && root)
        printf("%s is bound to %.*s (target group %.*s) since %.*s, for another %.*s s\n", ctl->argv[0],
               SLICE_ARG(ctl_text(root, "server_id")), SLICE_ARG(ctl_text(root, "target_group")),
               SLICE_ARG(ctl_text(root, "created_at")), SLICE_ARG(ctl_text(root, "ttl_remaining_seconds")));
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}

/* ---- explain ---- */

static void add_member(struct text *body, const char *name, const char *value)
{
    if (!value)
        return;
    text_printf(body, ",\"%s\":", name);
    text_json(body, slice_str(value));
}

/* Values of one name stand together, as JSON has them. */
static void add_headers(const struct ctl *ctl, struct text *body)
{
    text_printf(body, ",\"headers\":{");
    const char *joint = "";
    for (uint32_t i = 0; i < ctl->n_headers; i++) {
        struct slice name = slice_of(ctl->headers[i], slice_find(slice_str(ctl->headers[i]), ':'));
        bool was_there = false;
        for (uint32_t k = 0; k < i; k++)
            was_there |=
                slice_caseeq(slice_of(ctl->headers[k], slice_find(slice_str(ctl->headers[k]), ':')), name);
        if (was_there)
            continue;
        text_printf(body, "%s", joint);
        text_json(body, name);
        joint = ":[";
        for (uint32_t k = i; k < ctl->n_headers; k++) {
            struct slice value = slice_str(ctl->headers[k]), its = {0};
            slice_next(&value, ':', &its);
            if (!slice_caseeq(its, name))
                continue;
            text_printf(body, "%s", joint);
            text_json(body, slice_trim(value));
            joint = ",";
        }
        text_printf(body, "]");
        joint = ",";
    }
    text_printf(body, "}");
}

int ctl_explain(struct ctl *ctl)
{
    struct ctl_answer answer;
    struct text body;
    if (ctl->argc != 1)
        return ctl_usage("one URL is needed");
    for (uint32_t i = 0; i < ctl->n_headers; i++)
        if (!strchr(ctl->headers[i], ':'))
            return ctl_usage("--header is expected as 'Name: value'");
    text_init(&body);
    text_printf(&body, "{\"url\":");
    text_json(&body, slice_str(ctl->argv[0]));
    add_member(&body, "method", ctl->method);
    add_member(&body, "from", ctl->from);
    add_member(&body, "via", ctl->via);
    add_member(&body, "listener", ctl->listener);
    add_headers(ctl, &body);
    text_printf(&body, "}");
    int status = ctl_send(ctl, "POST", ctl->json ? "/v1/explain" : "/v1/explain?text", "application/json",
                          text_slice(&body), &answer);
    if (!status)
        ctl_print_raw(&answer);
    ctl_answer_fini(&answer);
    text_fini(&body);
    return status;
}
