/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/crypt_thread.h"

#include <crypt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;    /* of all below */
    pthread_cond_t has_work; /* or is to end */
    pthread_cond_t has_done;
    struct crypt_job *first, **last; /* waiting, oldest first */
    uint32_t n_waiting;
    const struct loop *working_for; /* whose job is being done; NULL: none */
    bool ends;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .has_work = PTHREAD_COND_INITIALIZER,
           .has_done = PTHREAD_COND_INITIALIZER,
           .last = &queue.first};

/* Control thread only. */
static pthread_t thread;
static uint32_t refs;

/* The same time whatever differs. */
static bool same_text(const char *a, const char *b)
{
    size_t n = strlen(a);
    unsigned char differs = strlen(b) != n;
    for (size_t i = 0; i < n && !differs; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return !differs;
}

static void compare(struct crypt_job *job, struct crypt_data *data)
{
    /* Not crypt_r(), which a sanitizer replaces and then cannot find. */
    const char *made = crypt_rn(job->password, job->hash, data, (int)sizeof(*data));
    job->matches = made && same_text(made, job->hash);
    explicit_bzero(job->password, sizeof(job->password));
}

bool crypt_compare(const char *password, const char *hash)
{
    struct crypt_data *data = calloc(1, sizeof(*data));
    iso_assert(data != NULL);
    const char *made = crypt_rn(password, hash, data, (int)sizeof(*data));
    bool matches = made && same_text(made, hash);
    free(data);
    return matches;
}

static struct crypt_job *take_first(void)
{
    struct crypt_job *job = queue.first;
    queue.first = job->next;
    if (!queue.first)
        queue.last = &queue.first;
    queue.n_waiting--;
    return job;
}

static void *run(void *arg)
{
    struct crypt_data *data = calloc(1, sizeof(*data)); /* 32 KiB */
    iso_assert(data != NULL);
    pthread_mutex_lock(&queue.lock);
    while (!queue.ends) {
        if (!queue.first) {
            pthread_cond_wait(&queue.has_work, &queue.lock);
            continue;
        }
        struct crypt_job *job = take_first();
        struct loop *home = job->home;
        queue.working_for = home;
        pthread_mutex_unlock(&queue.lock);
        compare(job, data);
        loop_post(home, &job->call);
        pthread_mutex_lock(&queue.lock);
        queue.working_for = NULL;
        pthread_cond_broadcast(&queue.has_done);
    }
    pthread_mutex_unlock(&queue.lock);
    free(data);
    return NULL;
}

iso_err crypt_thread_ref(void)
{
    if (refs == 0 && pthread_create(&thread, NULL, run, NULL) != 0)
        return ISO_ERR_SYSTEM;
    if (refs++ == 0)
        pthread_setname_np(thread, "passwords");
    return ISO_OK;
}

void crypt_thread_unref(void)
{
    if (--refs > 0)
        return;
    pthread_mutex_lock(&queue.lock);
    queue.ends = true;
    pthread_cond_signal(&queue.has_work);
    pthread_mutex_unlock(&queue.lock);
    pthread_join(thread, NULL);
    queue.ends = false;
}

bool crypt_post(struct crypt_job *job)
{
    pthread_mutex_lock(&queue.lock);
    bool has_room = queue.n_waiting < CRYPT_WAITING_MAX;
    if (has_room) {
        job->next = NULL;
        *queue.last = job;
        queue.last = &job->next;
        queue.n_waiting++;
        pthread_cond_signal(&queue.has_work);
    }
    pthread_mutex_unlock(&queue.lock);
    return has_room;
}

void crypt_forget(const struct loop *home)
{
    pthread_mutex_lock(&queue.lock);
    for (struct crypt_job **at = &queue.first; *at;) {
        struct crypt_job *job = *at;
        if (job->home != home) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        queue.n_waiting--;
        job->matches = false;
        loop_post(job->home, &job->call);
    }
    queue.last = &queue.first;
    while (*queue.last)
        queue.last = &(*queue.last)->next;
    while (queue.working_for == home)
        pthread_cond_wait(&queue.has_done, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
}
