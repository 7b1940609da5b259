/* SPDX-License-Identifier: Apache-2.0 */
#include "config/checks.h"

#include "config/decode.h"
#include "config/endpoint.h"
#include "config/suggest.h"
#include "observe/accesslog.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <stdarg.h>
#include <stdio.h>

enum { NAME_MAX_BYTES = 128, HOST_MAX_BYTES = 253, LABEL_MAX_BYTES = 63, REGEX_MAX_BYTES = 4096 };

/* "is the text "x", " and the rest. Always false, so that checks can end with it. */
static bool refuse(struct decoder *decoder, const struct doc_node *node, const char *fmt, ...)
    ISO_PRINTF(3, 4);

static bool refuse(struct decoder *decoder, const struct doc_node *node, const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    doc_fault(decoder->doc, DIAG_ERROR, node, "is %s, %s", decode_describe(decoder, node), why);
    return false;
}

static bool is_alnum(char c)
{
    return (unsigned)(ascii_lower(c) - 'a') < 26u || (unsigned)(c - '0') < 10u;
}

static bool all_of(struct slice s, const char *others)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.ptr[i]) && (s.ptr[i] == '\0' || !strchr(others, s.ptr[i])))
            return false;
    return s.len > 0;
}

static bool has_control(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
            return true;
    return false;
}

static bool is_token(struct slice s)
{
    return all_of(s, "!#$%&'*+-.^_`|~");
}

static struct slice to_lower(struct decoder *decoder, struct slice s)
{
    struct slice copy = arena_slice(decoder->arena, s);
    for (size_t i = 0; i < copy.len; i++)
        ((char *)copy.ptr)[i] = ascii_lower(copy.ptr[i]);
    return copy;
}

bool check_name(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return (text->len <= NAME_MAX_BYTES && all_of(*text, "._-/:@")) ||
           refuse(decoder, node, "expected " EXPECT_NAME);
}

/* The bytes that http1/target lets into a path: others would match nothing, and a rewrite would send them. */
static bool is_wire_path(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f || s.ptr[i] == '\\')
            return false;
    return true;
}

bool check_path(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    if (text->len == 0 || text->ptr[0] != '/')
        return refuse(decoder, node, "expected " EXPECT_PATH);
    if (!is_wire_path(*text))
        return refuse(decoder, node, "expected a path as it is on the wire: a blank is %%20");
    if (slice_find(*text, '?') < text->len || slice_find(*text, '#') < text->len)
        return refuse(decoder, node, "expected a path without ? and #");
    return true;
}

bool check_request_target(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return (text->len > 0 && text->ptr[0] == '/' && is_wire_path(*text) &&
            slice_find(*text, '#') == text->len) ||
           refuse(decoder, node, "expected " EXPECT_TARGET);
}

static bool is_host_name(struct slice s)
{
    struct slice label;
    if (s.len == 0 || s.len > HOST_MAX_BYTES)
        return false;
    while (slice_next(&s, '.', &label))
        if (label.len > LABEL_MAX_BYTES || !all_of(label, "-_"))
            return false;
    return true;
}

bool check_host_pattern(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    struct slice name = *text;
    struct ip_addr addr;
    if (slice_starts(name, SLICE("*.")))
        name = slice_of(name.ptr + 2, name.len - 2);
    if (!is_host_name(name) && !ip_parse(*text, &addr)) {
        bool port = slice_find(name, ':') < name.len;
        return refuse(decoder, node, "expected " EXPECT_HOST "%s", port ? "; a port is not matched" : "");
    }
    *text = to_lower(decoder, *text);
    return true;
}

bool check_host(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    size_t len = text->len;
    while (len > 0 && text->ptr[len - 1] >= '0' && text->ptr[len - 1] <= '9')
        len--;
    struct slice name =
        len > 0 && len < text->len && text->ptr[len - 1] == ':' ? slice_of(text->ptr, len - 1) : *text;
    struct ip_addr addr;
    return is_host_name(name) || ip_parse(name, &addr) ||
           refuse(decoder, node, "expected a host name or an address, with or without a port");
}

static bool read_dns_name(struct decoder *decoder, struct slice *text)
{
    struct ip_addr addr;
    struct slice name = *text;
    if (slice_ends(name, SLICE(".")))
        name.len--;
    if (!is_host_name(name) || ip_parse(name, &addr))
        return false;
    for (struct slice rest = name, label; slice_next(&rest, '.', &label);)
        if (label.len == 0)
            return false;
    *text = to_lower(decoder, name);
    return true;
}

bool check_target_host(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return read_dns_name(decoder, text) || refuse(decoder, node, "expected " EXPECT_TARGET_HOST);
}

bool check_srv(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return (slice_starts(*text, SLICE("_")) && read_dns_name(decoder, text)) ||
           refuse(decoder, node, "expected " EXPECT_SRV);
}

bool check_dns_server(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    enum { DNS_PORT = 53 };
    struct config_endpoint endpoint = {.port = DNS_PORT};
    const char *why;
    bool is_good = ip_parse(*text, &endpoint.ip) || endpoint_parse(*text, &endpoint, &why);
    if (!is_good || endpoint.unix_path.ptr || endpoint.port == 0 || endpoint_is_any(&endpoint))
        return refuse(decoder, node, "expected " EXPECT_DNS_SERVER);
    endpoint_name(&endpoint, decoder->arena);
    *text = endpoint.text;
    return true;
}

bool check_cookie_attribute(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->ptr[i] <= ' ' || text->ptr[i] >= 0x7f || text->ptr[i] == ';')
            return refuse(decoder, node, "expected " EXPECT_COOKIE_ATTRIBUTE);
    return true;
}

bool check_token(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return is_token(*text) || refuse(decoder, node, "expected " EXPECT_TOKEN);
}

bool check_method(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    static const char *const known[] = {"GET",   "HEAD",    "POST",    "PUT",  "DELETE",
                                        "PATCH", "OPTIONS", "CONNECT", "TRACE"};
    if (!is_token(*text))
        return refuse(decoder, node, "expected a method such as GET");
    for (size_t i = 0; i < iso_countof(known); i++)
        if (slice_caseeq(*text, slice_str(known[i])) && !slice_eq(*text, slice_str(known[i])))
            return refuse(decoder, node, "did you mean \"%s\"? Methods are written in capitals", known[i]);
    return true;
}

bool check_limit_key(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    size_t colon = slice_find(*text, ':');
    struct slice kind = slice_of(text->ptr, colon);
    if (colon == text->len)
        return slice_eq(kind, SLICE("client_ip")) || slice_eq(kind, SLICE("all")) ||
               refuse(decoder, node, "expected " EXPECT_LIMIT_KEY);
    struct slice name = slice_of(text->ptr + colon + 1, text->len - colon - 1);
    bool is_header = slice_eq(kind, SLICE("header"));
    if (!is_header && !slice_eq(kind, SLICE("cookie")) && !slice_eq(kind, SLICE("query")))
        return refuse(decoder, node, "expected " EXPECT_LIMIT_KEY);
    if (!is_token(name))
        return refuse(decoder, node, "which names no %.*s, expected " EXPECT_TOKEN, SLICE_ARG(kind));
    if (is_header)
        *text = to_lower(decoder, *text);
    return true;
}

static bool is_token_key(struct decoder *decoder, const struct doc_node *node, struct slice name)
{
    if (is_token(name))
        return true;
    doc_fault_key(decoder->doc, DIAG_ERROR, node, "is no valid name, expected " EXPECT_TOKEN);
    return false;
}

bool check_token_name(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return is_token_key(decoder, node, *text);
}

bool check_field_name(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    *text = to_lower(decoder, *text);
    return is_token_key(decoder, node, *text);
}

/* What decides where a message ends and who may see it (RFC 9110 7.6.1, RFC 9112 6). */
static bool is_ours(struct decoder *decoder, const struct doc_node *node, struct slice name)
{
    static const char *const ours[] = {"connection", "content-length",    "host",
                                       "keep-alive", "proxy-connection",  "te",
                                       "trailer",    "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < iso_countof(ours); i++) {
        if (!slice_caseeq(name, slice_str(ours[i])))
            continue;
        doc_fault_key(decoder->doc, DIAG_ERROR, node, "the field \"%s\" is set by the balancer alone%s",
                      ours[i], strcmp(ours[i], "host") == 0 ? "; see rewrite.host" : "");
        return true;
    }
    return false;
}

bool check_own_field(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return is_token_key(decoder, node, *text) && !is_ours(decoder, node, *text);
}

bool check_removed_field(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return check_token(decoder, node, text) && !is_ours(decoder, node, *text);
}

bool check_field_value(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return (!has_control(*text) && slice_trim(*text).len == text->len) ||
           refuse(decoder, node, "expected " EXPECT_VALUE);
}

bool check_log_file(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    if (slice_eq(*text, SLICE("off")) || slice_eq(*text, SLICE("stdout")))
        return true;
    if (text->len == 0 || text->ptr[text->len - 1] == '/' || has_control(*text))
        return refuse(decoder, node, "expected \"off\", \"stdout\" or a file name");
    *text = decode_absolute(decoder, *text);
    return true;
}

bool check_file(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    if (text->len == 0 || text->ptr[text->len - 1] == '/' || has_control(*text))
        return refuse(decoder, node, "expected " EXPECT_FILE);
    *text = decode_absolute(decoder, *text);
    return true;
}

bool check_off_or_file(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return slice_eq(*text, SLICE("off")) || check_file(decoder, node, text);
}

bool check_store_url(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    if (!has_control(*text) &&
        (slice_starts(*text, SLICE("postgresql://")) || slice_starts(*text, SLICE("postgres://"))))
        return true;
    struct slice file = slice_of(text->ptr + strlen("sqlite:"), text->len - strlen("sqlite:"));
    if (!slice_starts(*text, SLICE("sqlite:")))
        return refuse(decoder, node, "expected " EXPECT_STORE_URL);
    if (slice_starts(file, SLICE("//")))
        file = slice_of(file.ptr + 2, file.len - 2);
    if (!check_file(decoder, node, &file))
        return false;
    *text = slice_str(arena_printf(decoder->arena, "sqlite:%.*s", SLICE_ARG(file)));
    return true;
}

bool check_alpn(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return slice_eq(*text, SLICE("http/1.1")) || slice_eq(*text, SLICE("h2")) ||
           refuse(decoder, node, "expected " EXPECT_ALPN);
}

bool check_grpc_service(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    enum { SERVICE_BYTES_MAX = 127 }; /* one byte of length, see health/probe_h2.c */
    bool right = text->len > 0 && text->len <= SERVICE_BYTES_MAX;
    for (size_t i = 0; i < text->len && right; i++)
        right = (unsigned char)(text->ptr[i] - 0x21) < 0x5e;
    return right || refuse(decoder, node, "expected " EXPECT_GRPC_SERVICE);
}

bool check_target_alpn(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return slice_eq(*text, SLICE("h2")) || slice_eq(*text, SLICE("http/1.1")) ||
           refuse(decoder, node, "expected " EXPECT_TARGET_ALPN);
}

bool check_unix_path(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    struct slice path = decode_absolute(decoder, *text);
    if (text->len == 0 || path.len > ENDPOINT_UNIX_MAX || text->ptr[text->len - 1] == '/' ||
        has_control(*text))
        return refuse(decoder, node, "expected " EXPECT_UNIX);
    *text = path;
    return true;
}

/* With the options of route/route_pattern.c. */
bool check_regex(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    if (text->len == 0 || text->len > REGEX_MAX_BYTES)
        return refuse(decoder, node, "expected " EXPECT_REGEX " of 1 to %d bytes", REGEX_MAX_BYTES);
    int code;
    PCRE2_SIZE offset;
    pcre2_code *regex = pcre2_compile((PCRE2_SPTR)text->ptr, text->len,
                                      PCRE2_NEVER_UTF | PCRE2_DOLLAR_ENDONLY, &code, &offset, NULL);
    if (regex) {
        pcre2_code_free(regex);
        return true;
    }
    PCRE2_UCHAR why[200];
    pcre2_get_error_message(code, why, sizeof(why));
    return refuse(decoder, node, "expected " EXPECT_REGEX ": %s at offset %zu", (const char *)why, offset);
}

bool check_mac(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    bool right = text->len == 17;
    for (size_t i = 0; right && i < 17; i++)
        right = i % 3 == 2 ? text->ptr[i] == ':' : isxdigit((unsigned char)text->ptr[i]) != 0;
    return right || slice_eq(*text, SLICE("auto")) || refuse(decoder, node, "expected " EXPECT_MAC);
}

bool check_scheme(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    return slice_eq(*text, SLICE("http")) || slice_eq(*text, SLICE("https")) ||
           refuse(decoder, node, "expected " EXPECT_SCHEME);
}

bool check_template(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    static const char *const known[] = {"{host}", "{path}", "{query}"};
    if (text->len == 0 || !is_wire_path(*text))
        return refuse(decoder, node, "expected " EXPECT_TEMPLATE);
    for (size_t at = 0; at < text->len; at++) {
        struct slice rest = slice_of(text->ptr + at, text->len - at);
        bool found = false;
        for (size_t i = 0; i < iso_countof(known); i++)
            found |= slice_starts(rest, slice_str(known[i]));
        if (rest.ptr[0] == '{' && !found)
            return refuse(decoder, node, "expected only {host}, {path} or {query} in braces");
    }
    return true;
}

bool check_log_format(struct decoder *decoder, const struct doc_node *node, struct slice *text)
{
    static const char *const fields[] = {
#define LOG_FIELD(kind, id, name, what) name,
#include "observe/accesslog_fields.def"
#undef LOG_FIELD
    };
    struct accesslog_format *format = NULL;
    struct slice unknown = {0};
    if (has_control(*text))
        return refuse(decoder, node, "expected a text without control characters");
    if (accesslog_format_compile(*text, &format, &unknown) == ISO_OK) {
        bool constant = accesslog_format_is_constant(format);
        accesslog_format_free(format);
        return !constant || refuse(decoder, node, "expected " EXPECT_LOG_FORMAT);
    }
    struct suggestion near = {0};
    for (size_t i = 0; i < iso_countof(fields); i++)
        suggest_offer(&near, unknown, fields[i]);
    return refuse(decoder, node, "{%.*s} is no field%s%s%s", SLICE_ARG(unknown),
                  near.name ? ", did you mean {" : "", near.name ? near.name : ", see docs/access-log.md",
                  near.name ? "}?" : "");
}
