/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/lookup.h"

#include "core/check.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The thread and the owner each hold it; whoever is the last frees it. */
struct lookup {
    char host[256], port[8];
    struct loop *loop; /* borrows: outlives the owner's interest */
    struct loop_call call;
    lookup_done_fn *done;
    void *owner;
    struct net_addr addr;
    int error; /* of getaddrinfo() */
    pthread_mutex_t lock;
    bool is_wanted; /* under lock */
};

static void tell(struct loop *loop, void *arg)
{
    struct lookup *lookup = arg;
    lookup_done_fn *done = lookup->done;
    void *owner = lookup->owner;
    struct net_addr addr = lookup->addr;
    int error = lookup->error;
    pthread_mutex_lock(&lookup->lock); /* the thread has posted from within it: now it is out */
    bool is_wanted = lookup->is_wanted;
    pthread_mutex_unlock(&lookup->lock);
    if (is_wanted)
        done(owner, error ? NULL : &addr, error ? gai_strerror(error) : NULL);
    pthread_mutex_destroy(&lookup->lock);
    free(lookup);
}

static void *ask(void *arg)
{
    struct lookup *lookup = arg;
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    lookup->error = getaddrinfo(lookup->host, lookup->port, &want, &found);
    if (!lookup->error && found->ai_addrlen <= sizeof(lookup->addr.in6)) {
        memcpy(&lookup->addr.sa, found->ai_addr, found->ai_addrlen);
        lookup->addr.len = found->ai_addrlen;
    }
    if (found)
        freeaddrinfo(found);
    return lookup;
}

static void *run(void *arg)
{
    struct lookup *lookup = ask(arg);
    pthread_mutex_lock(&lookup->lock);
    bool is_wanted = lookup->is_wanted;
    if (is_wanted) /* within the lock: the loop lives as long as somebody wants to know */
        loop_post(lookup->loop, &lookup->call);
    pthread_mutex_unlock(&lookup->lock);
    if (!is_wanted) {
        pthread_mutex_destroy(&lookup->lock);
        free(lookup);
    }
    return NULL;
}

struct lookup *lookup_start(struct loop *loop, const char *host, uint16_t port, lookup_done_fn *done,
                            void *owner)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    pthread_attr_t attr;
    pthread_t thread;
    iso_assert(lookup != NULL);
    snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    snprintf(lookup->port, sizeof(lookup->port), "%u", port);
    lookup->loop = loop;
    lookup->done = done;
    lookup->owner = owner;
    lookup->is_wanted = true;
    lookup->call = (struct loop_call){.fn = tell, .arg = lookup};
    pthread_mutex_init(&lookup->lock, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, run, lookup)) {
        lookup->error = EAI_AGAIN;
        loop_post(loop, &lookup->call);
    }
    pthread_attr_destroy(&attr);
    return lookup;
}

void lookup_end(struct lookup **ended)
{
    struct lookup *lookup = *ended;
    *ended = NULL;
    if (!lookup)
        return;
    pthread_mutex_lock(&lookup->lock);
    lookup->is_wanted = false; /* the thread frees it, or tell() when it is on its way */
    pthread_mutex_unlock(&lookup->lock);
}
