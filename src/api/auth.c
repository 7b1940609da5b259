/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 };

struct token {
    struct slice text, name;
    enum api_role role;
};

struct auth {
    struct arena arena; /* owns the texts */
    struct token *tokens;
    size_t n;
};

static iso_err fail(struct iso_diag *diag, const char *path, unsigned line, const char *what)
{
    diag_add(diag, DIAG_ERROR, path, line, 0, "/admin/token_file", "%s", what);
    return ISO_ERR_INVALID;
}

static iso_err read_file(const char *path, struct text *out, struct iso_diag *diag)
{
    char chunk[4096];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(diag, path, 0, strerror(errno));
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0 && out->len <= FILE_BYTES_MAX)
        text_add(out, slice_of(chunk, (size_t)n));
    int why = n < 0 ? errno : out->len > FILE_BYTES_MAX ? EFBIG : 0;
    if (!why && fstat(fd, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)))
        log_warning("%s: others than its owner have access to the tokens of the API", path);
    close(fd);
    return why ? fail(diag, path, 0, strerror(why)) : ISO_OK;
}

/* The next word of a line; false at its end. */
static bool next_word(struct slice *rest, struct slice *word)
{
    *rest = slice_trim(*rest);
    size_t len = 0;
    while (len < rest->len && rest->ptr[len] != ' ' && rest->ptr[len] != '\t')
        len++;
    *word = slice_of(rest->ptr, len);
    *rest = slice_of(rest->ptr + len, rest->len - len);
    return len > 0;
}

static bool find_role(struct slice word, enum api_role *role)
{
    for (int i = API_READ; i <= API_ADMIN; i++)
        if (slice_eq(word, slice_str(api_role_word((enum api_role)i)))) {
            *role = (enum api_role)i;
            return true;
        }
    return false;
}

static bool is_printable(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
            return false;
    return true;
}

static bool is_known(const struct auth *auth, struct slice text)
{
    for (size_t i = 0; i < auth->n; i++)
        if (slice_eq(auth->tokens[i].text, text))
            return true;
    return false;
}

static iso_err add_line(struct auth *auth, struct slice line, const char *path, unsigned number,
                        struct iso_diag *diag)
{
    struct slice role, text, name;
    struct token token;
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (!next_word(&line, &role) || role.ptr[0] == '#')
        return ISO_OK;
    if (!find_role(role, &token.role))
        return fail(diag, path, number, "does not begin with a role, expected read, operate or admin");
    if (!next_word(&line, &text))
        return fail(diag, path, number, "has no token behind the role");
    if (text.len < AUTH_TOKEN_MIN || text.len > AUTH_TOKEN_MAX || !is_printable(text))
        return fail(diag, path, number, "expected a token of 16 to 256 printable ASCII characters");
    if (is_known(auth, text))
        return fail(diag, path, number, "has the token of an earlier line");
    if (auth->n == AUTH_TOKENS_MAX)
        return fail(diag, path, number, "is one token too many, expected at most 1000");
    bool has_name = next_word(&line, &name) && name.ptr[0] != '#';
    if (has_name && !is_printable(name))
        return fail(diag, path, number, "expected a name of printable ASCII characters");
    token.text = arena_slice(&auth->arena, text);
    token.name = arena_slice(&auth->arena, has_name ? name : role);
    auth->tokens[auth->n++] = token;
    return ISO_OK;
}

iso_err auth_load(const char *path, struct auth **out, struct iso_diag *diag)
{
    struct text text;
    struct auth *auth = calloc(1, sizeof(*auth));
    iso_assert(auth != NULL);
    text_init(&text);
    arena_init(&auth->arena);
    auth->tokens = arena_array(&auth->arena, struct token, AUTH_TOKENS_MAX);
    iso_err err = read_file(path, &text, diag);
    struct slice rest = text_slice(&text), line;
    for (unsigned number = 1; !err && rest.len && slice_next(&rest, '\n', &line); number++)
        err = add_line(auth, line, path, number, diag);
    if (!err && auth->n == 0)
        err = fail(diag, path, 0, "has no token, expected lines such as: admin TOKEN NAME");
    text_fini(&text);
    if (err)
        auth_free(&auth);
    else
        *out = auth;
    return err;
}

void auth_free(struct auth **taken)
{
    struct auth *auth = *taken;
    *taken = NULL;
    if (!auth)
        return;
    arena_fini(&auth->arena);
    free(auth);
}

/* Every byte of the candidate is looked at for every token, whatever the first ones say. */
static bool is_same(struct slice candidate, struct slice token)
{
    size_t differs = candidate.len ^ token.len;
    for (size_t i = 0; i < candidate.len; i++)
        differs |= (size_t)(unsigned char)(candidate.ptr[i] ^ token.ptr[i % token.len]);
    return differs == 0;
}

bool auth_find(const struct auth *auth, struct slice authorization, enum api_role *role, struct slice *name)
{
    static const char scheme[] = "bearer ";
    const struct token *found = NULL;
    size_t n = sizeof(scheme) - 1;
    if (authorization.len <= n || !slice_caseeq(slice_of(authorization.ptr, n), slice_of(scheme, n)))
        return false;
    struct slice candidate = slice_trim(slice_of(authorization.ptr + n, authorization.len - n));
    if (candidate.len > AUTH_TOKEN_MAX)
        return false;
    for (size_t i = 0; i < auth->n; i++)
        if (is_same(candidate, auth->tokens[i].text))
            found = &auth->tokens[i];
    if (!found)
        return false;
    *role = found->role;
    *name = found->name;
    return true;
}
