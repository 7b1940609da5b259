/* SPDX-License-Identifier: Apache-2.0 */
/* JSON by hand, because the libraries at hand either keep no positions or read more than JSON; what clients
 * of an API send is judged by the RFC. The open containers are the way from a node to the root, so nothing
 * recurses. */
#include "doc/json.h"

struct reader {
    struct doc *doc;
    const char *at, *end;
    uint32_t line, column; /* of `counted`, from 1; columns count characters */
    const char *counted;
    struct text string; /* the last string read */
};

/* Brings line and column up to `at`. */
static void count_to(struct reader *r, const char *at)
{
    for (; r->counted < at; r->counted++) {
        if (*r->counted == '\n') {
            r->line++;
            r->column = 1;
        } else if (((unsigned char)*r->counted & 0xc0) != 0x80) {
            r->column++;
        }
    }
}

static bool broken(struct reader *r, const char *expected)
{
    count_to(r, r->at);
    if (r->at == r->end)
        doc_broken(r->doc, r->line, r->column, "is not valid JSON: the text ends here, expected %s",
                   expected);
    else
        doc_broken(r->doc, r->line, r->column, "is not valid JSON: expected %s", expected);
    return false;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool is_next(struct reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}

/* Four hexadecimal digits. */
static bool read_hex(struct reader *r, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        char c = r->at < r->end ? ascii_lower(*r->at) : '\0';
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return broken(r, "four hexadecimal digits after \\u");
        v = v * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *out = v;
    return true;
}

static void add_utf8(struct text *out, uint32_t c)
{
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(first[n] | c);
    text_add(out, slice_of(bytes, n));
}

/* \uXXXX, or two of them for a character beyond the first plane. */
static bool read_unicode(struct reader *r)
{
    uint32_t high, low;
    if (!read_hex(r, &high))
        return false;
    if (high >= 0xd800 && high < 0xe000) {
        bool pair = high < 0xdc00 && r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == 'u';
        if (!pair)
            return broken(r, "a pair of surrogates");
        r->at += 2;
        if (!read_hex(r, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return broken(r, "a pair of surrogates");
        high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    if (high == 0)
        return broken(r, "no \\u0000 in a text");
    add_utf8(&r->string, high);
    return true;
}

static bool read_escape(struct reader *r)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return broken(r, "the end of the text in quotes");
    const char *name = *r->at ? strchr(names, *r->at) : NULL;
    if (name) {
        text_add(&r->string, slice_of(&values[name - names], 1));
        r->at++;
        return true;
    }
    if (*r->at != 'u')
        return broken(r, "one of \" \\ / b f n r t u after a backslash");
    r->at++;
    return read_unicode(r);
}

/* From the opening quote to behind the closing one; the text is in r->string. */
static bool read_string(struct reader *r)
{
    r->string.len = 0;
    r->at++;
    for (;;) {
        const char *from = r->at;
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20)
            r->at++;
        text_add(&r->string, slice_of(from, (size_t)(r->at - from)));
        if (r->at == r->end || (unsigned char)*r->at < 0x20)
            return broken(r, "the end of the text in quotes");
        if (*r->at++ == '"')
            return true;
        if (!read_escape(r))
            return false;
    }
}

/* A word of letters, digits and the signs of numbers; true, false, null and numbers are what is allowed. */
static bool read_word(struct reader *r, struct doc_node *node)
{
    const char *from = r->at, *at = r->at;
    while (at < r->end && (strchr("+-.", *at) || (*at >= '0' && *at <= '9') ||
                           (ascii_lower(*at) >= 'a' && ascii_lower(*at) <= 'z')))
        at++;
    struct slice word = slice_of(from, (size_t)(at - from));
    if (word.len == 0)
        return broken(r, "a value");
    doc_set_scalar(r->doc, node, word, true);
    if (node->kind == DOC_STRING)
        return broken(r, "a value: a text in quotes, a number, true, false, null, [ or {");
    r->at = at;
    return true;
}

struct key {
    struct slice text; /* ptr NULL: an item of a list, or the root */
    uint32_t line, column;
};

/* "key": with its colon. */
static bool read_key(struct reader *r, struct key *key)
{
    if (!is_next(r, '"'))
        return broken(r, "a key in quotes");
    count_to(r, r->at);
    *key = (struct key){.line = r->line, .column = r->column};
    if (!read_string(r))
        return false;
    key->text = arena_slice(&r->doc->arena, text_slice(&r->string));
    skip_blanks(r);
    if (!is_next(r, ':'))
        return broken(r, "a colon after the key");
    r->at++;
    skip_blanks(r);
    return true;
}

/* Adds the value at r->at; a container is left open, its content comes next. NULL after reporting. */
static struct doc_node *read_value(struct reader *r, struct doc_node *parent, const struct key *key)
{
    count_to(r, r->at);
    enum doc_kind kind = is_next(r, '{') ? DOC_MAP : is_next(r, '[') ? DOC_LIST : DOC_STRING;
    struct doc_node *node = doc_add(r->doc, parent, key->text, kind, r->line, r->column);
    if (!node)
        return NULL;
    if (key->text.ptr) {
        node->key_line = key->line;
        node->key_column = key->column;
    }
    if (kind != DOC_STRING) {
        r->at++;
        return node;
    }
    if (!is_next(r, '"'))
        return read_word(r, node) ? node : NULL;
    if (!read_string(r))
        return NULL;
    doc_set_scalar(r->doc, node, text_slice(&r->string), false);
    return node;
}

static bool is_closing(struct reader *r, const struct doc_node *open)
{
    return is_next(r, open->kind == DOC_MAP ? '}' : ']');
}

/* One step inside `*open`: a closing bracket, or a member with what separates it from the one before. */
static bool read_member(struct reader *r, struct doc_node **open)
{
    struct doc_node *in = *open;
    skip_blanks(r);
    if (is_closing(r, in)) {
        r->at++;
        if (in->kind == DOC_MAP)
            doc_check_keys(r->doc, in);
        *open = in->parent;
        return true;
    }
    if (in->n > 0) {
        if (!is_next(r, ','))
            return broken(r, in->kind == DOC_MAP ? "a comma or }" : "a comma or ]");
        r->at++;
        skip_blanks(r);
    }
    struct key key = {0};
    if (in->kind == DOC_MAP && !read_key(r, &key))
        return false;
    struct doc_node *node = read_value(r, in, &key);
    if (!node)
        return false;
    if (node->kind == DOC_LIST || node->kind == DOC_MAP)
        *open = node;
    return true;
}

static void read_document(struct reader *r)
{
    skip_blanks(r);
    struct doc_node *open = read_value(r, NULL, &(struct key){0});
    if (open && open->kind != DOC_LIST && open->kind != DOC_MAP)
        open = NULL;
    while (open)
        if (!read_member(r, &open))
            return;
    skip_blanks(r);
    if (!r->doc->failed && r->at < r->end)
        broken(r, "nothing behind the document");
}

iso_err json_read(struct slice text, struct doc *doc)
{
    if (!doc_check_text(doc, text))
        return ISO_ERR_INVALID;
    struct reader r = {.doc = doc, .at = text.ptr, .end = text.ptr + text.len, .line = 1, .column = 1};
    if (slice_starts(text, SLICE("\xef\xbb\xbf")))
        r.at += 3;
    r.counted = r.at;
    text_init(&r.string);
    read_document(&r);
    text_fini(&r.string);
    return doc->failed ? ISO_ERR_INVALID : ISO_OK;
}
