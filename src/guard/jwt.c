/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/jwt.h"

#include "doc/json.h"
#include "guard/claims.h"
#include "guard/jwt_cache.h"
#include "tls/cert.h"
#include "tls/jws.h"

#include <stdlib.h>

enum { FILE_BYTES_MAX = 1 << 20, KEYS_MAX = 100 };

struct jwt_key {
    struct slice id; /* owns: the verifier's arena; ptr NULL: none */
    struct jws_key *key;
};

struct jwt_verifier {
    uint32_t refs;
    uint64_t number; /* no other has or had it; from 1 */
    struct arena arena;
    struct jwt_key keys[KEYS_MAX]; /* owns */
    uint32_t n_keys;
};

void jwt_unref(struct jwt_verifier **taken)
{
    struct jwt_verifier *verifier = *taken;
    *taken = NULL;
    if (!verifier || --verifier->refs > 0)
        return;
    for (uint32_t i = 0; i < verifier->n_keys; i++)
        jws_key_free(verifier->keys[i].key);
    arena_fini(&verifier->arena);
    free(verifier);
}

/* A member that is a text; ptr NULL: it is not. */
static struct slice text_of(const struct doc_node *map, const char *key)
{
    const struct doc_node *node = doc_get(map, key);
    return node && node->kind == DOC_STRING ? node->text : (struct slice){0};
}

/* The bytes of a member in base64. */
static struct slice bytes_of(struct jwt_verifier *verifier, const struct doc_node *map, const char *key)
{
    struct slice text = text_of(map, key), bytes = {0};
    char *room = arena_alloc(&verifier->arena, text.len + 4);
    struct scratch scratch = {room, room + text.len + 4};
    return text.ptr && claims_decode64(text, &scratch, &bytes) ? bytes : (struct slice){0};
}

static iso_err make_key(struct jwt_verifier *verifier, const struct doc_node *jwk, struct jws_key **out)
{
    struct slice kind = text_of(jwk, "kty");
    if (slice_eq(kind, SLICE("RSA")))
        return jws_key_rsa(bytes_of(verifier, jwk, "n"), bytes_of(verifier, jwk, "e"), out);
    if (slice_eq(kind, SLICE("EC")) && slice_eq(text_of(jwk, "crv"), SLICE("P-256")))
        return jws_key_p256(bytes_of(verifier, jwk, "x"), bytes_of(verifier, jwk, "y"), out);
    if (slice_eq(kind, SLICE("oct")))
        return jws_key_hmac(bytes_of(verifier, jwk, "k"), out);
    return ISO_ERR_INVALID;
}

/* Is it for signatures, and of an algorithm that we know? Others may stand in the same file. */
static bool is_for_us(const struct doc_node *jwk)
{
    struct slice use = text_of(jwk, "use"), algorithm = text_of(jwk, "alg");
    return (!use.ptr || slice_eq(use, SLICE("sig"))) &&
           (!algorithm.ptr || slice_eq(algorithm, SLICE("RS256")) || slice_eq(algorithm, SLICE("ES256")) ||
            slice_eq(algorithm, SLICE("HS256")));
}

static void add_keys(struct jwt_verifier *verifier, const struct doc_node *root)
{
    const struct doc_node *list = doc_get(root, "keys");
    const struct doc_node *jwk = list && list->kind == DOC_LIST ? list->first : NULL;
    for (; jwk && verifier->n_keys < KEYS_MAX; jwk = jwk->next) {
        struct jwt_key *key = &verifier->keys[verifier->n_keys];
        struct slice algorithm = text_of(jwk, "alg");
        if (jwk->kind != DOC_MAP || !is_for_us(jwk) || make_key(verifier, jwk, &key->key))
            continue;
        if (algorithm.ptr && !slice_eq(algorithm, jws_key_algorithm(key->key))) {
            jws_key_free(key->key);
            continue;
        }
        key->id = text_of(jwk, "kid");
        if (key->id.ptr)
            key->id = arena_slice(&verifier->arena, key->id);
        verifier->n_keys++;
    }
}

static iso_err fail(struct iso_diag *diag, const struct config_jwt *config, const char *why)
{
    const struct config_place *place = &config->place;
    diag_add(diag, DIAG_ERROR, place->file, place->line, place->column, place->path, "jwks_file %.*s: %s",
             SLICE_ARG(config->jwks_file), why);
    return ISO_ERR_INVALID;
}

static uint64_t last_number; /* control thread only */

static iso_err load(const struct config_jwt *config, struct jwt_verifier **out, struct iso_diag *diag)
{
    struct jwt_verifier *verifier = calloc(1, sizeof(*verifier));
    struct iso_diag ignored;
    struct doc doc;
    size_t len = 0;
    iso_assert(verifier != NULL);
    verifier->refs = 1;
    verifier->number = ++last_number;
    arena_init(&verifier->arena);
    unsigned char *text = tls_read_file(config->jwks_file.ptr, FILE_BYTES_MAX, &len);
    if (!text) {
        jwt_unref(&verifier);
        return fail(diag, config, "cannot be read");
    }
    diag_init(&ignored);
    doc_init(&doc, config->jwks_file.ptr, &ignored);
    bool is_json = !json_read(slice_of((const char *)text, len), &doc);
    if (is_json)
        add_keys(verifier, doc.root);
    doc_fini(&doc);
    diag_fini(&ignored);
    free(text);
    if (verifier->n_keys > 0) {
        *out = verifier;
        return ISO_OK;
    }
    jwt_unref(&verifier);
    return fail(diag, config,
                is_json ? "has no key for RS256 (2048 bits at least), ES256 or HS256 (32 bytes at least) in "
                          "a list \"keys\""
                        : "is not JSON");
}

iso_err jwt_build(struct snapshot *snapshot, struct snap_listener *listener,
                  const struct snap_listener *earlier, struct iso_diag *diag)
{
    const struct config_listener *config = listener->config;
    listener->rule_jwt = arena_alloc(&snapshot->arena, sizeof(*listener->rule_jwt) * (config->n_rules + 1));
    for (uint32_t i = 0; i < config->n_rules; i++) {
        struct jwt_verifier *before = earlier ? earlier->rule_jwt[i] : NULL;
        if (!config->rules[i].jwt.set)
            continue;
        if (before) {
            before->refs++;
            listener->rule_jwt[i] = before;
            continue;
        }
        iso_err err = load(&config->rules[i].jwt, &listener->rule_jwt[i], diag);
        if (err)
            return err;
    }
    return ISO_OK;
}

/* The three parts of a token, and the room for what they hold. */
struct token {
    struct slice input, head, body, signature; /* the signed text; decoded */
    struct scratch room;
};

static bool find_text(const struct config_jwt *config, struct http_message *msg, struct slice *out)
{
    const struct slice scheme = SLICE("bearer ");
    if (config->cookie.ptr && http_message_cookie(msg, config->cookie, out))
        return true;
    struct http_field *field = http_message_find_name(msg, SLICE("authorization"));
    struct slice value = field ? http_field_value(field) : (struct slice){0};
    size_t n = scheme.len;
    if (value.len <= n || !slice_caseeq(slice_of(value.ptr, n), scheme))
        return false;
    *out = slice_trim(slice_of(value.ptr + n, value.len - n));
    return true;
}

static bool split(struct slice text, struct slice parts[3])
{
    struct slice rest = text;
    for (int i = 0; i < 3; i++)
        if (!slice_next(&rest, '.', &parts[i]))
            return false;
    return text.len <= JWT_BYTES_MAX && parts[0].len + parts[1].len + parts[2].len + 2 == text.len;
}

static bool take_apart(struct slice text, const struct slice parts[3], struct token *token)
{
    token->input = slice_of(text.ptr, parts[0].len + 1 + parts[1].len);
    return claims_decode64(parts[0], &token->room, &token->head) && claims_are_valid(token->head) &&
           claims_decode64(parts[1], &token->room, &token->body) &&
           claims_decode64(parts[2], &token->room, &token->signature);
}

/* Some key of the file made it: the one that it names, or one of those that have no name. The algorithm is
 * the key's; the token can only agree. */
static bool is_signed(const struct jwt_verifier *verifier, const struct token *token)
{
    struct claim algorithm, id, critical;
    struct scratch room = token->room;
    bool has_id = claims_find(token->head, SLICE("kid"), &id);
    if (!claims_find(token->head, SLICE("alg"), &algorithm) ||
        claims_find(token->head, SLICE("crit"),
                    &critical)) /* RFC 7515 4.1.11: what we must know, we do not */
        return false;
    for (uint32_t i = 0; i < verifier->n_keys; i++) {
        const struct jwt_key *key = &verifier->keys[i];
        bool is_named = !key->id.ptr || !has_id || claim_has_text(&id, key->id, room);
        if (is_named && claim_has_text(&algorithm, jws_key_algorithm(key->key), room) &&
            jws_verify(key->key, token->input, token->signature))
            return true;
    }
    return false;
}

static bool is_in_force(const struct config_jwt *config, struct slice body, uint64_t now_s)
{
    struct claim claim;
    uint64_t at_s, leeway_s = config->leeway_ms / 1000;
    if (claims_find(body, SLICE("exp"), &claim)) {
        if (claim.kind != CLAIM_NUMBER || !claim_seconds(&claim, &at_s) || now_s >= at_s + leeway_s)
            return false;
    } else if (config->needs_exp) {
        return false;
    }
    return !claims_find(body, SLICE("nbf"), &claim) ||
           (claim.kind == CLAIM_NUMBER && claim_seconds(&claim, &at_s) && now_s + leeway_s >= at_s);
}

static bool is_for_audience(const struct config_jwt *config, const struct token *token)
{
    struct claim claim;
    if (config->issuer.ptr && (!claims_find(token->body, SLICE("iss"), &claim) ||
                               !claim_has_text(&claim, config->issuer, token->room)))
        return false;
    if (config->n_audience == 0)
        return true;
    if (!claims_find(token->body, SLICE("aud"), &claim))
        return false;
    for (uint32_t i = 0; i < config->n_audience; i++)
        if (claim_has_text(&claim, config->audience[i], token->room))
            return true;
    return false;
}

static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    return text.len > 0;
}

/* The fields that the rule names carry claims and nothing that the client sent. False: there is no room. */
static bool add_claims(const struct config_jwt *config, struct token *token, struct http_message *msg)
{
    for (uint32_t i = 0; i < config->n_claims; i++) {
        struct claim claim;
        struct slice value;
        http_message_drop_name(msg, config->claims[i].name);
        if (!claims_find(token->body, config->claims[i].value, &claim))
            continue;
        if (claim.kind == CLAIM_NUMBER)
            value = claim.raw;
        else if (claim.kind != CLAIM_TEXT || !claim_text(&claim, &token->room, &value))
            continue;
        value = slice_trim(value);
        if (is_printable(value) && !http_message_add(msg, config->claims[i].name, value))
            return false;
    }
    return true;
}

/* Takes the token apart, as far as what it says; false: it is not good. */
static bool read_token(const struct jwt_verifier *verifier, struct jwt_cache *cache, struct slice text,
                       struct token *token)
{
    struct slice parts[3];
    struct jwt_tag tag;
    if (!split(text, parts))
        return false;
    if (cache) {
        jwt_cache_tag(cache, verifier->number, text, &tag);
        if (jwt_cache_knows(cache, &tag))
            return claims_decode64(parts[1], &token->room, &token->body);
    }
    if (!take_apart(text, parts, token) || !is_signed(verifier, token) || !claims_are_valid(token->body))
        return false;
    if (cache)
        jwt_cache_add(cache, &tag);
    return true;
}

enum exchange_end jwt_check(const struct jwt_verifier *verifier, const struct config_jwt *config,
                            uint64_t now_s, struct http_message *msg, char *room, struct jwt_cache *cache)
{
    struct token token = {.room = {room, room + JWT_ROOM_BYTES}};
    struct slice text;
    if (!find_text(config, msg, &text))
        return END_NO_CREDENTIALS;
    if (!read_token(verifier, cache, text, &token) || !is_for_audience(config, &token))
        return END_BAD_TOKEN;
    if (!is_in_force(config, token.body, now_s))
        return END_TOKEN_EXPIRED;
    return add_claims(config, &token, msg) ? END_NORMAL : END_HEAD_GREW;
}

struct slice jwt_challenge(enum exchange_end end)
{
    return end == END_NO_CREDENTIALS ? SLICE("Bearer") : SLICE("Bearer error=\"invalid_token\"");
}
