/* SPDX-License-Identifier: Apache-2.0 */
/* YAML by libyaml's event stream, one event at a time, so that the limits of config/doc hold before the text
 * is read to its end. Anchors and aliases are refused: a few lines of them describe more values than memory
 * has
 * ("billion laughs"), and a value that begins with * or & is nearly always a forgotten pair of quotes. */
#include "doc/yaml.h"

#include <yaml.h>

struct reader {
    struct doc *doc;
    yaml_parser_t parser;
    struct doc_node *open; /* the list or map being read; NULL: the root is next */
    struct slice key;      /* of the value to come; ptr NULL: a key is next, or an item */
    uint32_t key_line, key_column;
    uint32_t documents;
};

#define QUOTE_HINT "a value that begins with * or & must stand in quotes"

/* libyaml counts from 0. */
static void broken_at(struct reader *reader, yaml_mark_t mark, const char *message)
{
    doc_broken(reader->doc, mark.line + 1, mark.column + 1, "%s", message);
}

/* What people usually did, by the words of libyaml's message. */
static const struct {
    const char *words, *hint;
} syntax_hints[] = {
    {"alias", QUOTE_HINT},
    {"anchor", QUOTE_HINT},
    {"cannot start any token", "a value that begins with @, `, % or a tab must stand in quotes"},
    {"mapping values are not allowed",
     "a text that contains \": \" must stand in quotes, and a key is indented as its neighbours are"},
    {"expected node content", "a value that begins with : or , must stand in quotes"},
    {"did not find expected key", "the keys of one map begin in the same column"},
};

static void report_syntax(struct reader *reader)
{
    yaml_parser_t *p = &reader->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    const char *context = p->context ? p->context : "";
    const char *hint = NULL;
    for (size_t i = 0; i < iso_countof(syntax_hints) && !hint; i++)
        if (strstr(problem, syntax_hints[i].words) || strstr(context, syntax_hints[i].words))
            hint = syntax_hints[i].hint;
    if (p->context && p->context_mark.line != p->problem_mark.line)
        doc_broken(reader->doc, p->problem_mark.line + 1, p->problem_mark.column + 1,
                   "is not valid YAML: %s (%s that begins on line %zu)%s%s", problem, context,
                   p->context_mark.line + 1, hint ? "; " : "", hint ? hint : "");
    else
        doc_broken(reader->doc, p->problem_mark.line + 1, p->problem_mark.column + 1,
                   "is not valid YAML: %s%s%s%s%s%s", problem, *context ? " (" : "", context,
                   *context ? ")" : "", hint ? "; " : "", hint ? hint : "");
}

static struct doc_node *add_value(struct reader *reader, enum doc_kind kind, yaml_mark_t mark)
{
    struct doc_node *node = doc_add(reader->doc, reader->open, reader->key, kind, (uint32_t)mark.line + 1,
                                    (uint32_t)mark.column + 1);
    if (node && reader->key.ptr) {
        node->key_line = reader->key_line;
        node->key_column = reader->key_column;
    }
    reader->key = (struct slice){0};
    return node;
}

static bool wants_key(const struct reader *reader)
{
    return reader->open && reader->open->kind == DOC_MAP && !reader->key.ptr;
}

static void read_scalar(struct reader *reader, const yaml_event_t *event)
{
    struct slice text = slice_of((const char *)event->data.scalar.value, event->data.scalar.length);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text.ptr, '\0', text.len)) {
        broken_at(reader, event->start_mark, "a text must not contain the character \\0");
        return;
    }
    if (wants_key(reader)) {
        reader->key = arena_slice(&reader->doc->arena, text);
        reader->key_line = (uint32_t)event->start_mark.line + 1;
        reader->key_column = (uint32_t)event->start_mark.column + 1;
        return;
    }
    struct doc_node *node = add_value(reader, DOC_STRING, event->start_mark);
    if (node)
        doc_set_scalar(reader->doc, node, text, plain);
}

static void open_container(struct reader *reader, enum doc_kind kind, const yaml_event_t *event)
{
    if (wants_key(reader)) {
        broken_at(
            reader, event->start_mark,
            "a key must be a plain text, not a list or a map; a value that begins with { or [ must stand "
            "in quotes");
        return;
    }
    struct doc_node *node = add_value(reader, kind, event->start_mark);
    if (node)
        reader->open = node;
}

static void close_container(struct reader *reader)
{
    struct doc_node *done = reader->open;
    if (done->kind == DOC_MAP)
        doc_check_keys(reader->doc, done);
    reader->open = done->parent;
}

static void read_event(struct reader *reader, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor, tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor, tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor, tag = event->data.mapping_start.tag;
        break;
    default:
        break;
    }
    if (anchor || event->type == YAML_ALIAS_EVENT) {
        doc_broken(reader->doc, event->start_mark.line + 1, event->start_mark.column + 1,
                   "anchors and aliases are not read; %s", QUOTE_HINT);
        return;
    }
    if (tag) {
        broken_at(reader, event->start_mark,
                  "tags are not read; a value that begins with ! must stand in quotes");
        return;
    }

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (reader->documents++ > 0)
            broken_at(reader, event->start_mark, "a second document begins here; expected one document");
        break;
    case YAML_SCALAR_EVENT:
        read_scalar(reader, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        open_container(reader, DOC_LIST, event);
        break;
    case YAML_MAPPING_START_EVENT:
        open_container(reader, DOC_MAP, event);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_container(reader);
        break;
    default:
        break;
    }
}

iso_err yaml_read(struct slice text, struct doc *doc)
{
    if (!doc_check_text(doc, text))
        return ISO_ERR_INVALID;

    struct reader reader = {.doc = doc};
    if (!yaml_parser_initialize(&reader.parser))
        return ISO_ERR_NOMEM;
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)(text.ptr ? text.ptr : ""), text.len);
    for (bool ended = false; !ended && !doc->failed;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader.parser, &event)) {
            report_syntax(&reader);
            break;
        }
        ended = event.type == YAML_STREAM_END_EVENT;
        read_event(&reader, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&reader.parser);
    return doc->failed ? ISO_ERR_INVALID : ISO_OK;
}
