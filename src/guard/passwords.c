/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/passwords.h"

#include "core/hash.h"
#include "guard/crypt_thread.h"
#include "tls/cert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

enum { FILE_BYTES_MAX = 4 << 20, KNOWN_PAIRS = 4096 };

struct user {
    struct slice name;
    const char *hash;
};

struct passwords {
    uint32_t refs; /* control thread only */
    struct arena arena;
    struct user *users; /* sorted by name */
    uint32_t n_users;
    struct siphash_key place_key, tag_key; /* random: pairs cannot be made to meet */
    _Atomic uint64_t known[KNOWN_PAIRS];   /* relaxed; tags of good pairs, each at its place; 0: none */
};

static int compare_names(const void *left, const void *right)
{
    return slice_compare(((const struct user *)left)->name, ((const struct user *)right)->name);
}

static iso_err fail(struct iso_diag *diag, const struct config_basic_auth *config, unsigned line,
                    const char *why)
{
    const struct config_place *place = &config->place;
    if (line)
        diag_add(diag, DIAG_ERROR, place->file, place->line, place->column, place->path,
                 "password_file %.*s, line %u: %s", SLICE_ARG(config->password_file), line, why);
    else
        diag_add(diag, DIAG_ERROR, place->file, place->line, place->column, place->path,
                 "password_file %.*s: %s", SLICE_ARG(config->password_file), why);
    return ISO_ERR_INVALID;
}

/* Of htpasswd's own kinds only those of crypt(3) are safe to keep. */
static const char *why_unusable(struct slice hash)
{
    if (slice_starts(hash, SLICE("$apr1$")) || slice_starts(hash, SLICE("{SHA}")))
        return "an MD5 or SHA-1 hash of Apache's; expected one of crypt(3), such as `htpasswd -B` makes";
    if (hash.len < 20 || hash.len > CRYPT_HASH_MAX || hash.ptr[0] != '$')
        return "expected NAME:HASH with a hash of crypt(3), such as $2y$..., $6$... or $y$...";
    return NULL;
}

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < ' ' || name.ptr[i] == 0x7f)
            return false;
    return name.len > 0;
}

static iso_err add_lines(struct passwords *passwords, const struct config_basic_auth *config,
                         struct slice text, struct iso_diag *diag)
{
    struct slice rest = text, line;
    uint32_t most = 1, number = 0;
    for (size_t i = 0; i < text.len; i++)
        most += text.ptr[i] == '\n';
    passwords->users = arena_array(&passwords->arena, struct user, most);
    while (slice_next(&rest, '\n', &line)) {
        number++;
        line = slice_trim(line);
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        size_t colon = slice_find(line, ':');
        struct slice hash =
            colon < line.len ? slice_of(line.ptr + colon + 1, line.len - colon - 1) : (struct slice){0};
        const char *why = why_unusable(hash);
        if (why || !is_name(slice_of(line.ptr, colon)))
            return fail(diag, config, number, why ? why : "expected a name without control characters");
        struct user *user = &passwords->users[passwords->n_users++];
        user->name = arena_slice(&passwords->arena, slice_of(line.ptr, colon));
        user->hash = arena_slice(&passwords->arena, hash).ptr;
    }
    return passwords->n_users ? ISO_OK : fail(diag, config, 0, "has no users");
}

iso_err passwords_load(const struct config_basic_auth *config, struct passwords **out, struct iso_diag *diag)
{
    size_t len = 0;
    unsigned char *text = tls_read_file(config->password_file.ptr, FILE_BYTES_MAX, &len);
    if (!text)
        return fail(diag, config, 0, "cannot be read");
    struct passwords *passwords = calloc(1, sizeof(*passwords));
    iso_assert(passwords != NULL);
    arena_init(&passwords->arena);
    iso_err err = add_lines(passwords, config, slice_of((const char *)text, len), diag);
    explicit_bzero(text, len);
    free(text);
    if (!err && (getrandom(&passwords->place_key, sizeof(passwords->place_key), 0) < 0 ||
                 getrandom(&passwords->tag_key, sizeof(passwords->tag_key), 0) < 0))
        err = fail(diag, config, 0, "no random numbers from the kernel");
    if (!err)
        err = crypt_thread_ref();
    if (err) {
        arena_fini(&passwords->arena);
        free(passwords);
        return err;
    }
    qsort(passwords->users, passwords->n_users, sizeof(*passwords->users), compare_names);
    passwords->refs = 1;
    *out = passwords;
    return ISO_OK;
}

struct passwords *passwords_ref(struct passwords *passwords)
{
    passwords->refs++;
    return passwords;
}

void passwords_unref(struct passwords **taken)
{
    struct passwords *passwords = *taken;
    *taken = NULL;
    if (!passwords || --passwords->refs > 0)
        return;
    arena_fini(&passwords->arena);
    free(passwords);
    crypt_thread_unref();
}

const char *passwords_find(const struct passwords *passwords, struct slice name, bool *exists)
{
    const struct user wanted = {.name = name};
    const struct user *user =
        bsearch(&wanted, passwords->users, passwords->n_users, sizeof(*passwords->users), compare_names);
    *exists = user != NULL;
    return user ? user->hash : passwords->users[0].hash;
}

static uint64_t tag_of(const struct passwords *passwords, struct slice pair)
{
    return siphash(&passwords->tag_key, pair) | 1; /* never 0 */
}

static size_t place_of(const struct passwords *passwords, struct slice pair)
{
    return siphash(&passwords->place_key, pair) % KNOWN_PAIRS;
}

bool passwords_knows(const struct passwords *passwords, struct slice pair)
{
    return atomic_load_explicit(&((struct passwords *)passwords)->known[place_of(passwords, pair)],
                                memory_order_relaxed) == tag_of(passwords, pair);
}

void passwords_remember(struct passwords *passwords, struct slice pair)
{
    atomic_store_explicit(&passwords->known[place_of(passwords, pair)], tag_of(passwords, pair),
                          memory_order_relaxed);
}
