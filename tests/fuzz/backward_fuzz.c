/* SPDX-License-Identifier: Apache-2.0 */
/* An answer's way back through the proxy but for the sockets: parsed, changed by a rule, framed for the
 * client's version, written, and parsed again as the client would. The client must read one response with the
 * framing that was decided here and the very fields that were kept. The input is a response head; its length
 * chooses the request's method and the client's version. */
#include "http1/parse.h"
#include "http1/write.h"
#include "transform/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct http_message msg, again;
static char room[1 << 10], out[256 << 10];

static bool is_kept(const struct http_field *f)
{
    return !(f->flags & HTTP_FIELD_DROP);
}

static void check_fields(void)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < msg.n_fields; i++) {
        const struct http_field *f = &msg.fields[i];
        if (!is_kept(f))
            continue;
        while (at < again.n_fields && !is_kept(&again.fields[at]))
            at++;
        iso_assert(at < again.n_fields);
        iso_assert(slice_eq(http_field_name(f), http_field_name(&again.fields[at])));
        iso_assert(slice_eq(http_field_value(f), http_field_value(&again.fields[at])));
        at++;
    }
    for (; at < again.n_fields; at++)
        iso_assert(!is_kept(&again.fields[at]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct h1_limits limits = {.head_bytes = 65536, .uri_bytes = 8192, .fields = 250};
    static const struct h1_limits clients_limits = {.head_bytes = 1 << 20, .uri_bytes = 8192, .fields = 256};
    static struct slice remove[] = {{"server", 6}};
    static struct config_pair set[] = {{{"X-Frame-Options", 15}, {"DENY", 4}}};
    static const struct config_rule rule = {
        .rewrite.response = {.remove = remove, .n_remove = 1, .set = set, .n_set = 1}};
    enum http_method method = len & 1 ? HTTP_HEAD : HTTP_GET;
    unsigned client_minor = len & 2 ? 0 : 1;
    enum http_reject why;
    size_t used;
    if (h1_parse_response((const char *)data, len, &limits, method, &msg, &used, &why) != H1_COMPLETE)
        return 0;
    struct scratch scratch = {room, room + sizeof(room)};
    iso_assert(rewrite_response(&rule, &msg, &scratch));
    if (msg.framing == HTTP_BODY_CHUNKED && client_minor == 0)
        msg.framing = HTTP_BODY_UNTIL_CLOSE;
    bool close = msg.framing == HTTP_BODY_UNTIL_CLOSE;
    size_t n = h1_write_response(out, sizeof(out), &msg, client_minor, close);
    iso_assert(n > 0);
    iso_assert(h1_parse_response(out, n, &clients_limits, method, &again, &used, &why) == H1_COMPLETE);
    iso_assert(used == n && again.status == msg.status);
    iso_assert(again.framing == msg.framing && again.content_length == msg.content_length);
    iso_assert(again.status < 200 || again.keep_alive == !close);
    iso_assert(again.upgrade == msg.upgrade);
    check_fields();
    return 0;
}
