/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an exchange once it has ended: counters, the latency histogram, the access log line. */
#ifndef ISOBAR_PROXY_ACCOUNT_H
#define ISOBAR_PROXY_ACCOUNT_H

#include "proxy/exchange.h"

/* Counts and logs, once. */
void exchange_account(struct exchange *x);
/* One line of the access log; a full ring is counted. */
void exchange_write_log(struct worker *worker, const struct snapshot_log *log,
                        const struct accesslog_entry *entry);

#endif
