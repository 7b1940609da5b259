/* SPDX-License-Identifier: Apache-2.0 */
/* How exchanges, relays and sessions end: the status that is answered with, the word of the access log and of
 * error bodies, and what it means. */
#ifndef ISOBAR_OBSERVE_ENDS_H
#define ISOBAR_OBSERVE_ENDS_H

enum exchange_end {
#define END(id, status, word, text) END_##id,
#include "observe/ends.def"
#undef END
};

/* What an errno value of connect() comes to. */
enum exchange_end exchange_end_of_connect(int err);
/* 0: nothing can be answered any more. */
unsigned exchange_end_status(enum exchange_end end);
/* Static. */
const char *exchange_end_word(enum exchange_end end);
const char *exchange_end_text(enum exchange_end end);

#endif
