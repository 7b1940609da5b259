/* SPDX-License-Identifier: Apache-2.0 */
#include "config/endpoint.h"

bool endpoint_parse(struct slice text, struct config_endpoint *out, const char **why)
{
    struct config_endpoint endpoint = {.text = text};
    if (slice_starts(text, SLICE("unix:"))) {
        endpoint.unix_path = slice_of(text.ptr + 5, text.len - 5);
        bool printable = true;
        for (size_t i = 0; i < text.len; i++)
            printable &= (unsigned char)text.ptr[i] >= 0x20 && text.ptr[i] != 0x7f;
        if (endpoint.unix_path.len == 0 || endpoint.unix_path.len > ENDPOINT_UNIX_MAX || !printable) {
            *why = "a path of 1 to 107 bytes without control characters must follow unix:";
            return false;
        }
        *out = endpoint;
        return true;
    }

    size_t colon = text.len;
    while (colon > 0 && text.ptr[colon - 1] != ':')
        colon--;
    uint64_t port;
    if (colon == 0 || !slice_u64(slice_of(text.ptr + colon, text.len - colon), &port) || port > UINT16_MAX) {
        *why = "a port from 0 to 65535 must follow the last colon";
        return false;
    }
    struct slice host = slice_of(text.ptr, colon - 1);
    /* "::1:80" would be an address without a port as well: IPv6 needs its brackets here. */
    bool bare_ipv6 = host.len && host.ptr[0] != '[' && slice_find(host, ':') < host.len;
    if (bare_ipv6 || (host.len && !ip_parse(host, &endpoint.ip))) {
        *why = bare_ipv6 ? "an IPv6 address must stand in brackets before the port"
                         : "an IP address must stand before the port";
        return false;
    }
    endpoint.port = (uint16_t)port;
    *out = endpoint;
    return true;
}

static size_t print_port(uint16_t port, char *out)
{
    size_t n = 0;
    for (unsigned left = port, scale = 10000; scale; left %= scale, scale /= 10)
        if (n || left >= scale || scale == 1)
            out[n++] = (char)('0' + left / scale);
    return n;
}

void endpoint_name(struct config_endpoint *endpoint, struct arena *arena)
{
    if (endpoint->unix_path.ptr) {
        endpoint->text = slice_str(arena_printf(arena, "unix:%.*s", SLICE_ARG(endpoint->unix_path)));
        return;
    }
    /* By hand: there may be a hundred thousand of them, and printf takes most of a load then. */
    char text[IP_TEXT_MAX + sizeof("[]:65535")];
    bool v6 = endpoint->ip.family == 6;
    size_t len = 0;
    if (v6)
        text[len++] = '[';
    if (endpoint->ip.family)
        len += ip_print(&endpoint->ip, text + len);
    if (v6)
        text[len++] = ']';
    text[len++] = ':';
    len += print_port(endpoint->port, text + len);
    endpoint->text = arena_slice(arena, slice_of(text, len));
}

bool endpoint_is_any(const struct config_endpoint *endpoint)
{
    static const uint8_t zero[16];
    return !endpoint->unix_path.ptr && memcmp(endpoint->ip.bytes, zero, sizeof(zero)) == 0;
}

bool endpoint_is_local(const struct config_endpoint *endpoint)
{
    static const struct ip_addr loopback6 = {.family = 6, .bytes = {[15] = 1}};
    if (endpoint->unix_path.ptr)
        return true;
    return endpoint->ip.family == 4 ? endpoint->ip.bytes[0] == 127
                                    : endpoint->ip.family == 6 && ip_eq(&endpoint->ip, &loopback6);
}
