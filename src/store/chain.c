/* SPDX-License-Identifier: Apache-2.0 */
#include "store/chain.h"

#include <stdio.h>

void chain_fini(struct chain *chain)
{
    printed_unref(&chain->document);
    *chain = (struct chain){0};
}

void chain_plan(const struct chain *chain, uint64_t expected, const struct printed *document,
                struct chain_row *row)
{
    *row = (struct chain_row){.is_whole = true};
    if (chain->version == 0 || chain->version != expected || chain->rows >= CHAIN_ROWS_MAX ||
        document->bytes < CHAIN_DOCUMENT_BYTES_MIN)
        return;
    printed_compare(chain->document, document, &row->change);
    row->is_whole = chain->bytes + row->change.middle_bytes > document->bytes / CHAIN_PART_MAX;
}

void chain_follow(struct chain *chain, uint64_t version, const char *token, const struct printed *document,
                  const struct chain_row *row)
{
    struct chain now = {.version = version, .document = printed_ref(document)};
    snprintf(now.token, sizeof(now.token), "%s", token);
    if (!row->is_whole) {
        now.rows = chain->rows + 1;
        now.bytes = chain->bytes + row->change.middle_bytes;
    }
    chain_fini(chain);
    *chain = now;
}

bool chain_read(struct text *text, uint64_t head, uint64_t tail, struct slice middle)
{
    if (head > text->len || tail > text->len - head)
        return false;
    text_reserve(text, middle.len);
    memmove(text->data + head + middle.len, text->data + text->len - tail, tail);
    if (middle.len)
        memcpy(text->data + head, middle.ptr, middle.len);
    text->len = head + middle.len + tail;
    text->data[text->len] = '\0';
    return true;
}
