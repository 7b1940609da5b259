/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a client's connection after our last word. Closing with unread input would make the kernel send
 * RST, which can destroy the answer on its way: so only our side is closed, and what still comes is thrown
 * away for a while (RFC 9112 9.6). */
#ifndef ISOBAR_DOWNSTREAM_LINGER_H
#define ISOBAR_DOWNSTREAM_LINGER_H

#include "proxy/client.h"

/* Our last word is sent or queued: the connection ends once the peer has it. */
void client_end(struct client *client);
/* CLIENT_LINGER, and all output is sent: the time for the peer begins. */
void linger_begin(struct client *client);
/* CLIENT_LINGER: throws away what has come; may close the connection. */
void linger_read(struct client *client);

#endif
