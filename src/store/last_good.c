/* SPDX-License-Identifier: Apache-2.0 */
#include "store/last_good.h"

#include "core/hash.h"
#include "core/log.h"
#include "doc/doc.h"
#include "doc/printed.h"
#include "store/blocking.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_FORMAT                                                                                        \
    "{\"isobar_last_good\": 1, \"version\": %" PRIu64 ", \"bytes\": %zu, \"hash\": \"%016" PRIx64 "\"}\n"

enum { HEADER_BYTES_MAX = 160, CLOSE_MS = 3000 };

struct copy {
    struct blocking_job job;
    struct last_good *good; /* borrows; NULL: it has ended without waiting for this one */
    char *path;             /* owns */
    uint64_t version;
    struct printed *document; /* shared (counted) */
    int error;                /* errno; 0: written */
    const char *step;
};

struct last_good {
    struct blocking *thread; /* owns */
    char *path;              /* owns */
    uint64_t *failures;
    struct copy *writing, *next; /* own */
    bool has_failed;             /* said once, until one is written */
};

const char *last_good_path(const struct config_store *config, struct arena *arena)
{
    if (config->last_good.ptr)
        return slice_eq(config->last_good, SLICE("off")) ? NULL : arena_slice(arena, config->last_good).ptr;
    return slice_starts(config->url, SLICE("postgres")) ? LAST_GOOD_DEFAULT : NULL;
}

/* ---- writing, on the thread ---- */

static bool write_all(int fd, struct slice s)
{
    while (s.len) {
        ssize_t n = write(fd, s.ptr, s.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        s.ptr += n;
        s.len -= (size_t)n;
    }
    return true;
}

static bool sync_folder(const char *path)
{
    char *folder = strdup(path);
    iso_assert(folder != NULL);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        return false;
    bool synced = fsync(fd) == 0;
    close(fd);
    return synced;
}

static const char *write_text(const char *path, const char *beside, uint64_t version, struct slice document)
{
    char header[HEADER_BYTES_MAX];
    int n =
        snprintf(header, sizeof(header), HEADER_FORMAT, version, document.len, iso_hash64(document, version));
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); /* it may hold secrets */
    if (fd < 0)
        return "open";
    bool written = fchmod(fd, 0600) == 0 && /* one that was left behind keeps its mode otherwise */
                   write_all(fd, slice_of(header, (size_t)n)) && write_all(fd, document);
    bool synced = written && fsync(fd) == 0;
    int error = errno;
    close(fd);
    errno = error;
    if (!synced)
        return "write";
    if (rename(beside, path) < 0)
        return "rename";
    return sync_folder(path) ? NULL : "fsync the folder of";
}

static const char *write_copy(const char *beside, const struct copy *copy)
{
    struct text text;
    text_init(&text);
    printed_write(copy->document, &text);
    const char *step = write_text(copy->path, beside, copy->version, text_slice(&text));
    text_fini(&text);
    return step;
}

static void work(struct blocking_job *job)
{
    struct copy *copy = container_of(job, struct copy, job);
    char *beside;
    if (asprintf(&beside, "%s.new", copy->path) < 0)
        iso_unreachable("memory for a path");
    copy->step = write_copy(beside, copy);
    copy->error = copy->step ? errno : 0;
    if (copy->step)
        unlink(beside);
    free(beside);
}

/* ---- on the loop ---- */

static void free_copy(struct copy *copy)
{
    printed_unref(&copy->document);
    free(copy->path);
    free(copy);
}

static void note(struct last_good *good, const struct copy *copy)
{
    if (!copy->error) {
        good->has_failed = false;
        return;
    }
    (*good->failures)++;
    if (!good->has_failed)
        log_warning("store: the last good copy of version %" PRIu64 " cannot be kept: cannot %s %s: %s; a "
                    "start while the store is away would not find it (store.last_good names another file)",
                    copy->version, copy->step, good->path, strerror(copy->error));
    good->has_failed = true;
}

static void begin_next(struct last_good *good)
{
    if (good->writing || !good->next)
        return;
    good->writing = good->next;
    good->next = NULL;
    blocking_do(good->thread, &good->writing->job);
}

static void done(struct blocking_job *job)
{
    struct copy *copy = container_of(job, struct copy, job);
    struct last_good *good = copy->good;
    note(good, copy);
    free_copy(copy);
    good->writing = NULL;
    begin_next(good);
}

static void discard(struct blocking_job *job)
{
    struct copy *copy = container_of(job, struct copy, job);
    if (copy->good)
        note(copy->good, copy);
    free_copy(copy);
}

iso_err last_good_open(const struct config_store *config, struct loop *loop, uint64_t *failures,
                       struct last_good **out)
{
    struct arena arena;
    *out = NULL;
    arena_init(&arena);
    const char *path = last_good_path(config, &arena);
    iso_err err = ISO_OK;
    if (path) {
        struct last_good *good = calloc(1, sizeof(*good));
        iso_assert(good != NULL);
        good->path = strdup(path);
        good->failures = failures;
        err = blocking_start(loop, "last good", &good->thread);
        if (err) {
            free(good->path);
            free(good);
        } else {
            *out = good;
        }
    }
    arena_fini(&arena);
    return err;
}

void last_good_write(struct last_good *good, uint64_t version, const struct printed *document)
{
    struct copy *copy = calloc(1, sizeof(*copy));
    iso_assert(copy != NULL);
    *copy = (struct copy){.job = {.work = work, .done = done, .discard = discard},
                          .good = good,
                          .path = strdup(good->path),
                          .version = version,
                          .document = printed_ref(document)};
    iso_assert(copy->path != NULL);
    if (good->next)
        free_copy(good->next);
    good->next = copy;
    begin_next(good);
}

void last_good_close(struct last_good **taken)
{
    struct last_good *good = *taken;
    *taken = NULL;
    struct copy *last = good->next ? good->next : good->writing;
    if (good->next)
        blocking_do(good->thread, &good->next->job);
    uint64_t version = last ? last->version : 0;
    if (!blocking_stop_within(&good->thread, CLOSE_MS)) {
        log_error("store: %s has not answered for %d ms and is not waited for: it may be of a version before "
                  "%" PRIu64,
                  good->path, CLOSE_MS, version);
        if (good->writing)
            good->writing->good = NULL;
        if (good->next)
            good->next->good = NULL;
    }
    free(good->path);
    free(good);
}

/* ---- reading ---- */

static iso_err read_whole(const char *path, struct text *out)
{
    char chunk[16384];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? ISO_ERR_NOT_FOUND : ISO_ERR_SYSTEM;
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0 && out->len <= DOC_BYTES_MAX + HEADER_BYTES_MAX)
        text_add(out, slice_of(chunk, (size_t)n));
    int error = errno;
    close(fd);
    errno = error;
    return n < 0 ? ISO_ERR_SYSTEM : ISO_OK;
}

static const char *parse(struct slice whole, uint64_t *version, struct slice *document)
{
    size_t bytes, line = slice_find(whole, '\n');
    uint64_t hash;
    char header[HEADER_BYTES_MAX];
    if (line >= sizeof(header) || line == whole.len)
        return "is not a last good copy";
    memcpy(header, whole.ptr, line);
    header[line] = 0;
    if (sscanf(header,
               "{\"isobar_last_good\": 1, \"version\": %" SCNu64 ", \"bytes\": %zu, \"hash\": \"%" SCNx64,
               version, &bytes, &hash) != 3)
        return "is not a last good copy";
    *document = slice_of(whole.ptr + line + 1, whole.len - line - 1);
    if (document->len != bytes || iso_hash64(*document, *version) != hash)
        return "is damaged: length or hash are not those of its first line";
    return NULL;
}

iso_err last_good_read(const char *path, uint64_t *version, struct text *document, struct iso_diag *diag)
{
    struct text whole;
    struct slice found;
    text_init(&whole);
    iso_err err = read_whole(path, &whole);
    const char *fault = err == ISO_ERR_SYSTEM ? strerror(errno) : NULL;
    if (!err)
        fault = parse(text_slice(&whole), version, &found);
    if (fault) {
        diag_add(diag, DIAG_ERROR, path, 0, 0, "", "%s", fault);
        err = ISO_ERR_INVALID;
    } else if (!err) {
        text_add(document, found);
    }
    text_fini(&whole);
    return err;
}
