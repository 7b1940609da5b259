/* SPDX-License-Identifier: Apache-2.0 */
/* How answers are put on a client's wire: answers_h1.c over an HTTP/1 connection, answers_h2.c over a stream
 * of an HTTP/2 connection. */
#ifndef ISOBAR_DOWNSTREAM_ANSWERS_H
#define ISOBAR_DOWNSTREAM_ANSWERS_H

#include "proxy/downstream.h"

extern const struct downstream downstream_h1, downstream_h2;

#endif
