/* SPDX-License-Identifier: Apache-2.0 */
/* Request targets: origin form ("/path?query"), absolute form ("http://host/path") and, for OPTIONS, "*". The
 * authority form belongs to CONNECT, which never gets here. Bytes outside printable ASCII, '#' and, in a
 * path, '\' (which some backends take for '/') are refused; others that the grammar does not know pass,
 * because clients do send them in queries. */
#include "http1/target.h"
#include "http1/scan.h"

static bool split_absolute(struct http_message *msg)
{
    struct slice rest = msg->target, host;
    uint16_t port;
    size_t colon = slice_find(rest, ':');
    msg->scheme = slice_of(rest.ptr, colon);
    if (!slice_caseeq(msg->scheme, SLICE("http")) && !slice_caseeq(msg->scheme, SLICE("https")))
        return false;
    rest = slice_of(rest.ptr + colon, rest.len - colon);
    if (!slice_starts(rest, SLICE("://")))
        return false;
    rest = slice_of(rest.ptr + 3, rest.len - 3);
    size_t end = 0;
    while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?')
        end++;
    msg->authority = slice_of(rest.ptr, end);
    if (!http_host_parse(msg->authority, &host, &port))
        return false;
    if (end < rest.len && rest.ptr[end] == '/')
        msg->path = slice_of(rest.ptr + end, (size_t)(msg->target.ptr + msg->target.len - rest.ptr) - end);
    else if (end == rest.len && msg->method == HTTP_OPTIONS) /* RFC 9112 3.2.4 */
        msg->path = SLICE("*");
    else
        msg->path = SLICE("/");
    return true;
}

static bool split_target(struct http_message *msg, const char *query)
{
    struct slice target = msg->target;
    const char *end = target.ptr + target.len;
    if (target.ptr[0] == '/')
        msg->path = target;
    else if (target.len == 1 && target.ptr[0] == '*' && msg->method == HTTP_OPTIONS)
        msg->path = target;
    else if (!split_absolute(msg))
        return false;
    if (query) {
        msg->query = slice_of(query + 1, (size_t)(end - query - 1));
        if (msg->path.ptr >= target.ptr && msg->path.ptr < query)
            msg->path.len = (size_t)(query - msg->path.ptr);
    }
    return true;
}

enum h1_result h1_parse_target(const char *floor, const char **at, const char *end, uint32_t uri_bytes,
                               struct http_message *msg, enum http_reject *why)
{
    const char *begin = *at, *p = begin, *query = NULL;
    const char *limit = (size_t)(end - begin) > uri_bytes ? begin + uri_bytes + 1 : end;
    for (;; p++) {
        p = scan_target(floor, p, limit);
        if (p == limit || *p == ' ')
            break;
        if (*p == '?' && !query)
            query = p;
        else if (*p != '?' && !(*p == '\\' && query)) {
            *why = *p == '\n'                ? HTTP_REJECT_BARE_LF
                   : *p == '\r' && p > begin ? HTTP_REJECT_BAD_START_LINE
                                             : HTTP_REJECT_BAD_TARGET;
            return H1_REJECTED;
        }
    }
    if (p == limit) {
        *why = HTTP_REJECT_URI_TOO_LONG;
        return (size_t)(p - begin) > uri_bytes ? H1_REJECTED : H1_INCOMPLETE;
    }
    msg->target = slice_of(begin, (size_t)(p - begin));
    if (p == begin || !split_target(msg, query)) {
        *why = HTTP_REJECT_BAD_TARGET;
        return H1_REJECTED;
    }
    *at = p + 1;
    return H1_COMPLETE;
}
