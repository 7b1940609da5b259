/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/account.h"

#include "core/clock.h"

void exchange_write_log(struct worker *worker, const struct snapshot_log *log,
                        const struct accesslog_entry *entry)
{
    if (!accesslog_write(log->log, worker->index, log->format, entry))
        counter_add(&worker->counters.accesslog_dropped, 1);
}

static void count_status(counter *first, unsigned status, counter *none)
{
    counter_add(status >= 100 && status < 600 ? &first[status / 100 - 1] : none, 1);
}

static void log_line_for(struct exchange *x, uint64_t duration_us)
{
    struct worker *worker = x->worker;
    const char *reason =
        x->reject ? http_reject_word((enum http_reject)x->reject) : exchange_end_word(x->end);
    struct accesslog_entry entry = {
        .wall_ns = x->begun_wall_ns,
        .duration_us = duration_us,
        .upstream_us = x->answer_ns ? (x->answer_ns - x->attempt_ns) / NS_PER_US : 0,
        .client = x->client_ip,
        .peer = x->client->peer,
        .peer_port = x->client->peer_port,
        .listener = x->listener->config->name,
        .rule = x->rule ? x->rule->name : (struct slice){0},
        .group = x->group ? x->group->config->name : (struct slice){0},
        .target = x->n_tried ? x->group->settings[x->tried[x->n_tried - 1]].endpoint.text : (struct slice){0},
        .method = x->log_method,
        .host = x->log_host,
        .path = x->log_path,
        .query = x->log_query,
        .request_id = x->log_request_id,
        .user_agent = x->log_user_agent,
        .referer = x->log_referer,
        .grpc_status = grpc_status_text((enum grpc_status)x->grpc_status),
        .protocol = x->client->downstream->protocol ? x->client->downstream->protocol
                    : x->client_minor               ? "HTTP/1.1"
                                                    : "HTTP/1.0",
        .status = x->status,
        .received_bytes = x->received_bytes,
        .sent_bytes = x->sent_bytes,
        .attempts = x->attempts,
        .reason = reason,
    };
    exchange_write_log(worker, x->snapshot->log, &entry);
}

void exchange_account(struct exchange *x)
{
    struct listener_counters *listener = x->client->listener->counters;
    if (x->is_accounted)
        return;
    x->is_accounted = true;
    uint64_t duration_us = (x->worker->loop.now_ns - x->begun_ns) / NS_PER_US;
    bool is_aborted = x->end == END_CLIENT_ABORT || x->end == END_CLIENT_ABORT_BODY ||
                      x->end == END_SHUTDOWN || x->end == END_TRUNCATED ||
                      (x->end == END_DRAINED && x->answer_begun && !x->is_tunnel) ||
                      (x->end == END_GRPC_DEADLINE && !x->answer_done) || x->end == END_TRUNCATED_TIMEOUT ||
                      x->end == END_CLIENT_READS_SLOWLY;
    count_status(&listener->requests_1xx, is_aborted ? 0 : x->status, &listener->requests_aborted);
    histogram_add(&listener->latency, duration_us);
    gauge_add(&listener->active_requests, -1);
    if (x->is_tunnel)
        gauge_add(&listener->active_tunnels, -1);
    if (x->snapshot->log)
        log_line_for(x, duration_us);
}
