/* SPDX-License-Identifier: Apache-2.0 */
#include "transform/grpc.h"

#include "core/clock.h"

bool grpc_is_content_type(struct slice value)
{
    static const struct slice name = {"application/grpc", 16};
    if (value.len < name.len || !slice_caseeq(slice_of(value.ptr, name.len), name))
        return false;
    char next = value.len > name.len ? value.ptr[name.len] : ';';
    return next == ';' || next == '+' || next == ' '; /* application/grpc-web is another protocol */
}

/* 0: no unit. */
static uint64_t unit_ns(char unit)
{
    switch (unit) {
    case 'H':
        return 3600 * NS_PER_S;
    case 'M':
        return 60 * NS_PER_S;
    case 'S':
        return NS_PER_S;
    case 'm':
        return NS_PER_MS;
    case 'u':
        return NS_PER_US;
    case 'n':
        return 1;
    default:
        return 0;
    }
}

bool grpc_timeout_ns(struct slice value, uint64_t *ns)
{
    static const uint64_t longest_ns = 365ull * 24 * 3600 * NS_PER_S;
    uint64_t n;
    if (value.len < 2 || value.len > 9 || !slice_u64(slice_of(value.ptr, value.len - 1), &n))
        return false;
    uint64_t unit = unit_ns(value.ptr[value.len - 1]);
    if (unit == 0 || n > longest_ns / unit)
        return false;
    *ns = n * unit;
    return true;
}

enum grpc_status grpc_status_of(unsigned http_status)
{
    switch (http_status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 413: /* not in the mapping, which is for proxies that know no gRPC */
    case 431:
        return GRPC_RESOURCE_EXHAUSTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

struct slice grpc_message(struct slice text, struct scratch *scratch)
{
    static const char hex[] = "0123456789ABCDEF";
    char *begin = scratch->at;
    for (size_t i = 0; i < text.len && scratch->end - scratch->at >= 3; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c >= 0x20 && c <= 0x7e && c != '%') {
            *scratch->at++ = (char)c;
            continue;
        }
        *scratch->at++ = '%';
        *scratch->at++ = hex[c >> 4];
        *scratch->at++ = hex[c & 15];
    }
    return slice_of(begin, (size_t)(scratch->at - begin));
}

enum grpc_status grpc_status_in(struct http_message *msg)
{
    const struct http_field *field = msg ? http_message_find_name(msg, SLICE("grpc-status")) : NULL;
    uint64_t status;
    if (!field || !slice_u64(http_field_value(field), &status))
        return GRPC_STATUS_UNKNOWN;
    return status <= GRPC_UNAUTHENTICATED ? (enum grpc_status)status : GRPC_UNKNOWN;
}

struct slice grpc_status_text(enum grpc_status status)
{
    static const char digits[] = "012345678910111213141516";
    if (status > GRPC_UNAUTHENTICATED)
        return (struct slice){0};
    return status < 10 ? slice_of(digits + status, 1) : slice_of(digits + 10 + 2 * (status - 10), 2);
}

enum passive_sign grpc_sign_of(enum grpc_status status)
{
    switch (status) {
    case GRPC_UNAVAILABLE:
        return PASSIVE_GATEWAY;
    case GRPC_UNKNOWN:
    case GRPC_INTERNAL:
    case GRPC_DATA_LOSS:
        return PASSIVE_5XX;
    case GRPC_OK:
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED: /* how short it is the caller decides */
    case GRPC_PERMISSION_DENIED:
    case GRPC_RESOURCE_EXHAUSTED:
    case GRPC_UNIMPLEMENTED:
    case GRPC_UNAUTHENTICATED:
    case GRPC_STATUS_UNKNOWN:
        break;
    }
    return PASSIVE_GOOD;
}
