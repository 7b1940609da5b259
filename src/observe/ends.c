/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/ends.h"

#include <errno.h>
#include <stdint.h>

static const struct {
    uint16_t status;
    const char *word, *text;
} ends[] = {
#define END(id, status, word, text) [END_##id] = {status, word, text},
#include "observe/ends.def"
#undef END
};

enum exchange_end exchange_end_of_connect(int err)
{
    return err == ECONNREFUSED || err == ENOENT ? END_CONNECT_REFUSED
           : err == ETIMEDOUT                   ? END_CONNECT_TIMEOUT
                                                : END_CONNECT_FAILED;
}

unsigned exchange_end_status(enum exchange_end end)
{
    return ends[end].status;
}

const char *exchange_end_word(enum exchange_end end)
{
    return ends[end].word;
}

const char *exchange_end_text(enum exchange_end end)
{
    return ends[end].text;
}
