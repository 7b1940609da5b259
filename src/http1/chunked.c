/* SPDX-License-Identifier: Apache-2.0 */
/* The chunked coding, decoded in place. Size lines are read a byte at a time by a small machine that knows
 * the whole grammar of extensions, because a recipient that is lax there (a bare CR or LF, white space, a
 * second line) is one that can be made to see another chunk than we do; extensions themselves are dropped.
 * Data is moved in runs. */
#include "http1/fields.h"

enum {
    LINE_MAX_BYTES = 512, /* of a size line with its extensions; signatures, the longest in use, take 100 */
};

enum state {
    SIZE,         /* hexadecimal digits; the first one is still to come while digits is 0 */
    ITEM_SPACE,   /* white space behind a size or a value: a ';' must follow */
    EXT_START,    /* behind ';' */
    EXT_NAME,     /* in the name */
    EXT_SPACE,    /* white space behind a name: '=' or ';' must follow */
    EXT_EQUALS,   /* behind '=' */
    EXT_VALUE,    /* in a token value */
    EXT_QUOTED,   /* in a quoted value */
    EXT_ESCAPE,   /* behind '\' in a quoted value */
    EXT_UNQUOTED, /* behind the closing quote */
    SIZE_LF,      /* behind the line's CR */
    DATA,         /* `left` bytes of data */
    DATA_CR,      /* behind the data */
    DATA_LF,      /* behind its CR */
    LAST,         /* the last chunk's line was read */
    BROKEN,       /* refused */
};

static int hex_digit(unsigned char c)
{
    if ((unsigned)(c - '0') < 10)
        return c - '0';
    c |= 0x20;
    return (unsigned)(c - 'a') < 6 ? c - 'a' + 10 : -1;
}

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\t';
}

/* What follows a size or a complete extension. */
static enum state after_item(unsigned char c, enum state space)
{
    return c == '\r' ? SIZE_LF : c == ';' ? EXT_START : is_space(c) ? space : BROKEN;
}

static enum state read_size(struct h1_chunked *chunk, unsigned char c)
{
    int digit = hex_digit(c);
    if (digit < 0)
        return chunk->digits ? after_item(c, ITEM_SPACE) : BROKEN;
    if (chunk->left >> 59) /* another digit would reach the sign bit of a file offset */
        return BROKEN;
    chunk->left = chunk->left << 4 | (unsigned)digit;
    chunk->digits = 1;
    return SIZE;
}

/* One byte of a size line. White space may stand around '=' and before ';', never before the line's end, and
 * a quoted value holds no control byte (RFC 9112 7.1.1, RFC 9110 5.6.4). */
static enum state read_line(struct h1_chunked *chunk, unsigned char c)
{
    bool token = h1_token_byte[c], control = (c < 0x20 && c != '\t') || c == 0x7f;
    switch ((enum state)chunk->state) {
    case SIZE:
        return read_size(chunk, c);
    case ITEM_SPACE:
        return c == ';' ? EXT_START : is_space(c) ? ITEM_SPACE : BROKEN;
    case EXT_START:
        return token ? EXT_NAME : is_space(c) ? EXT_START : BROKEN;
    case EXT_NAME:
        return token ? EXT_NAME : c == '=' ? EXT_EQUALS : after_item(c, EXT_SPACE);
    case EXT_SPACE:
        return c == '=' ? EXT_EQUALS : c == ';' ? EXT_START : is_space(c) ? EXT_SPACE : BROKEN;
    case EXT_EQUALS:
        return token ? EXT_VALUE : c == '"' ? EXT_QUOTED : is_space(c) ? EXT_EQUALS : BROKEN;
    case EXT_VALUE:
        return token ? EXT_VALUE : after_item(c, ITEM_SPACE);
    case EXT_QUOTED:
        return control ? BROKEN : c == '"' ? EXT_UNQUOTED : c == '\\' ? EXT_ESCAPE : EXT_QUOTED;
    case EXT_ESCAPE:
        return control ? BROKEN : EXT_QUOTED;
    case EXT_UNQUOTED:
        return after_item(c, ITEM_SPACE);
    case SIZE_LF:
        return c != '\n' ? BROKEN : chunk->left ? DATA : LAST;
    case DATA_CR:
        return c == '\r' ? DATA_LF : BROKEN;
    case DATA_LF:
        return c == '\n' ? SIZE : BROKEN;
    case DATA:
    case LAST:
    case BROKEN:
        break;
    }
    iso_unreachable("not a state of a size line");
}

enum h1_chunked_result h1_chunked_decode(struct h1_chunked *chunk, char *data, size_t len, size_t *used,
                                         size_t *body, enum http_reject *why)
{
    size_t in = 0, out = 0;
    while (in < len && chunk->state < LAST) {
        if (chunk->state == DATA) {
            size_t run = len - in < chunk->left ? len - in : (size_t)chunk->left;
            if (out != in)
                memmove(data + out, data + in, run);
            in += run;
            out += run;
            chunk->left -= run;
            if (chunk->left == 0)
                chunk->state = DATA_CR;
            continue;
        }
        chunk->state = (uint8_t)read_line(chunk, (unsigned char)data[in++]);
        if (++chunk->line_bytes > LINE_MAX_BYTES)
            chunk->state = BROKEN;
        if (chunk->state == DATA)
            chunk->line_bytes = chunk->digits = 0;
    }
    *used = in;
    *body = out;
    if (chunk->state == BROKEN) {
        *why = HTTP_REJECT_BAD_CHUNK;
        return H1_CHUNKED_REJECTED;
    }
    return chunk->state == LAST ? H1_CHUNKED_DATA_END : H1_CHUNKED_MORE;
}
