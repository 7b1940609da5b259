/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include "config/decode.h"
#include "config/part.h"
#include "config/validate.h"
#include "doc/json.h"
#include "doc/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static iso_err fail_file(struct iso_diag *diag, const char *path, const char *what)
{
    diag_add(diag, DIAG_ERROR, path, 0, 0, "", "%s", what);
    return ISO_ERR_INVALID;
}

/* Reads to the end, one byte more than the limit at most: what is longer shows as longer. A pipe is read too
 * (`isobar check /dev/stdin`), so the size is not asked for. */
static iso_err read_all(int fd, struct text *out)
{
    char chunk[16384];
    while (out->len <= DOC_BYTES_MAX) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ISO_ERR_SYSTEM;
        if (n == 0)
            break;
        text_add(out, slice_of(chunk, (size_t)n));
    }
    return ISO_OK;
}

static iso_err read_file(const char *path, struct text *out, struct iso_diag *diag)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_file(diag, path, strerror(errno));
    struct stat st;
    iso_err err = ISO_OK;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        err = fail_file(diag, path, "is a folder, expected a file");
    else if (read_all(fd, out))
        err = fail_file(diag, path, strerror(errno));
    close(fd);
    return err;
}

/* The folder as it was named, symbolic links to the file not followed, but absolute: a later change of the
 * working directory moves nothing. Owns: the caller, by free(). */
static char *absolute_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    iso_assert(folder != NULL);
    char *absolute = realpath(folder, NULL);
    if (!absolute)
        return folder;
    free(folder);
    return absolute;
}

iso_err config_load_doc(struct doc *doc, const char *base_dir, struct config **config)
{
    return config_load_again(doc, base_dir, NULL, config);
}

iso_err config_load_again(struct doc *doc, const char *base_dir, const struct config *before,
                          struct config **config)
{
    struct config *built = calloc(1, sizeof(*built));
    iso_assert(built != NULL);
    arena_init(&built->arena);
    built->base_dir = arena_slice(&built->arena, slice_str(base_dir ? base_dir : ""));
    if (before && !slice_eq(before->base_dir, built->base_dir))
        before = NULL;
    decode_config(doc, base_dir, before, built);
    if (!doc_is_full(doc))
        validate_config(built, doc);
    doc_close_faults(doc);
    diag_sort(doc->diag);
    if (doc_faults(doc)) {
        config_free(built);
        return ISO_ERR_INVALID;
    }
    *config = built;
    return ISO_OK;
}

static iso_err read_doc(struct slice text, const char *name, struct doc *doc)
{
    return slice_ends(slice_str(name), SLICE(".json")) ? json_read(text, doc) : yaml_read(text, doc);
}

iso_err config_open_file(const char *path, struct config_source *out, struct iso_diag *diag)
{
    struct config_source source = {0};
    struct text text;
    text_init(&text);
    iso_err err = read_file(path, &text, diag);
    if (!err) {
        source.base_dir = absolute_folder(path);
        doc_init(&source.doc, path, diag);
        err = read_doc(text_slice(&text), path, &source.doc);
        if (!err)
            err = config_load_doc(&source.doc, source.base_dir, &source.config);
    }
    text_fini(&text);
    if (err)
        config_source_fini(&source);
    else
        *out = source;
    return err;
}

void config_source_fini(struct config_source *source)
{
    config_free(source->config);
    doc_fini(&source->doc);
    free(source->base_dir);
    *source = (struct config_source){0};
}

iso_err config_load_file(const char *path, struct config **config, struct iso_diag *diag)
{
    struct config_source source;
    iso_err err = config_open_file(path, &source, diag);
    if (err)
        return err;
    *config = source.config;
    source.config = NULL;
    config_source_fini(&source);
    return ISO_OK;
}

iso_err config_load_text(struct slice text, const char *name, const char *base_dir, struct config **config,
                         struct iso_diag *diag)
{
    struct doc doc;
    doc_init(&doc, name, diag);
    iso_err err = read_doc(text, name, &doc);
    if (!err)
        err = config_load_doc(&doc, base_dir, config);
    doc_fini(&doc);
    return err;
}

struct config *config_share(struct config *config)
{
    config->n_shares++;
    return config;
}

void config_free(struct config *config)
{
    if (!config)
        return;
    if (config->n_shares > 0) {
        config->n_shares--;
        return;
    }
    for (uint32_t i = 0; i < config->n_target_groups; i++)
        config_part_unref(&config->target_groups[i].part);
    arena_fini(&config->arena);
    free(config);
}
