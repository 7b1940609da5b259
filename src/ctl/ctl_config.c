/* SPDX-License-Identifier: Apache-2.0 */
/* ctl apply, diff, export, versions, rollback: the configuration as a whole. */
#include "ctl/ctl.h"

#include "doc/json_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = DOC_BYTES_MAX };

/* Everything in a file; "-" is standard input. */
static bool read_file(const char *path, struct text *out)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char data[16384];
    size_t n;
    if (!file) {
        fprintf(stderr, "isobar ctl: %s: %s\n", path, strerror(errno));
        return false;
    }
    text_add(out, SLICE(""));
    while ((n = fread(data, 1, sizeof(data), file)) > 0 && out->len <= FILE_BYTES_MAX)
        text_add(out, slice_of(data, n));
    bool ok = !ferror(file) && out->len <= FILE_BYTES_MAX;
    if (!ok)
        fprintf(stderr, "isobar ctl: %s: cannot be read, or is larger than %d MiB\n", path,
                FILE_BYTES_MAX >> 20);
    if (file != stdin)
        fclose(file);
    return ok;
}

static const char *type_of(const char *path)
{
    size_t len = strlen(path);
    return len > 5 && strcmp(path + len - 5, ".json") == 0 ? "application/json" : "application/yaml";
}

static const char *mark_of(struct slice change)
{
    return slice_eq(change, SLICE("added")) ? "+" : slice_eq(change, SLICE("removed")) ? "-" : "~";
}

static void print_changes(const struct doc_node *changes)
{
    for (const struct doc_node *one = changes ? changes->first : NULL; one; one = one->next)
        printf("%s %.*s: %.*s\n", mark_of(ctl_text(one, "change")), SLICE_ARG(ctl_text(one, "object")),
               SLICE_ARG(ctl_text(one, "what")));
}

static void print_targets(const struct doc_node *impact, const char *key, const char *what)
{
    const struct doc_node *list = doc_get(impact, key);
    for (const struct doc_node *one = list ? list->first : NULL; one; one = one->next)
        printf("  %-10s %.*s %.*s\n", what, SLICE_ARG(ctl_text(one, "target_group")),
               SLICE_ARG(ctl_text(one, "target")));
}

/* Targets that come and go, capacity, keys that move. */
static void print_impact(const struct doc_node *impact)
{
    const struct doc_node *groups = doc_get(impact, "target_groups");
    if (!impact)
        return;
    printf("traffic:\n");
    print_targets(impact, "targets_added", "added");
    print_targets(impact, "targets_removed", "removed");
    print_targets(impact, "targets_drained", "drained");
    print_targets(impact, "targets_restored", "restored");
    print_targets(impact, "targets_reweighted", "reweighted");
    for (const struct doc_node *one = groups ? groups->first : NULL; one; one = one->next) {
        printf("  %.*s: capacity %.*s to %.*s", SLICE_ARG(ctl_text(one, "target_group")),
               SLICE_ARG(ctl_text(one, "capacity_before")), SLICE_ARG(ctl_text(one, "capacity_after")));
        struct slice moved = ctl_text(one, "hash_keys_moved_pct");
        if (!slice_eq(moved, SLICE("-")))
            printf(", %.*s%% of the hash keys move", SLICE_ARG(moved));
        printf("\n");
    }
}

static int put_config(struct ctl *ctl, bool dry_run)
{
    struct ctl_answer answer = {0};
    struct text file;
    if (ctl->argc != 1)
        return ctl_usage("one FILE is needed (- is standard input)");
    text_init(&file);
    int status = CTL_USAGE;
    if (read_file(ctl->argv[0], &file)) {
        status = ctl_send(ctl, "PUT", dry_run ? "/v1/config?dry_run=true" : "/v1/config",
                          type_of(ctl->argv[0]), text_slice(&file), &answer);
        const struct doc_node *root = answer.doc.root;
        const struct doc_node *changes = !status && root ? doc_get(root, "changes") : NULL;
        if (!status && ctl->json)
            ctl_print_raw(&answer);
        else if (!status && root) {
            print_changes(changes);
            if (dry_run && changes && changes->n)
                print_impact(doc_get(root, "impact"));
            else if (!dry_run)
                printf(changes && changes->n ? "version %.*s is in force\n"
                                             : "no change: version %.*s stays in force\n",
                       SLICE_ARG(ctl_text(root, "version")));
        }
        if (!status && dry_run && changes && changes->n)
            status = CTL_DIFFERS;
        ctl_answer_fini(&answer);
    }
    text_fini(&file);
    return status;
}

int ctl_apply(struct ctl *ctl)
{
    return put_config(ctl, ctl->dry_run);
}

int ctl_diff(struct ctl *ctl)
{
    return put_config(ctl, true);
}

/* What is printed goes into the file. A new one is for its owner only, since secrets are in it. */
static bool print_into(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0) {
        close(fd);
        return true;
    }
    fprintf(stderr, "isobar ctl: %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return false;
}

int ctl_export(struct ctl *ctl)
{
    struct ctl_answer answer;
    if (ctl->argc > 1)
        return ctl_usage("at most one FILE to write to");
    int status = ctl_ask(ctl, "GET", ctl->no_secrets ? "/v1/config" : "/v1/config?secrets=true", &answer);
    if (status == CTL_REFUSED && answer.reply.status == 403 && !ctl->no_secrets)
        fputs("isobar ctl: --no-secrets exports what the token may see\n", stderr);
    if (!status && ctl->argc == 1 && !print_into(ctl->argv[0]))
        status = CTL_USAGE;
    if (!status && !ctl->json && answer.doc.root)
        ctl_print_json(answer.doc.root);
    else if (!status)
        ctl_print_raw(&answer);
    ctl_answer_fini(&answer);
    return status;
}

static void print_versions(const struct doc_node *items)
{
    const char *titles[] = {"version", "at", "who", "changes"};
    struct ctl_table table;
    struct text out;
    ctl_table_init(&table, titles, iso_countof(titles));
    for (const struct doc_node *one = items ? items->first : NULL; one; one = one->next) {
        const struct doc_node *changes = doc_get(one, "changes");
        struct slice first = changes && changes->first ? ctl_text(changes->first, "object") : SLICE("-");
        ctl_table_add(&table, ctl_text(one, "version"));
        ctl_table_add(&table, ctl_text(one, "at"));
        ctl_table_add(&table, ctl_text(one, "who"));
        if (changes && changes->n > 1)
            ctl_table_addf(&table, "%.*s and %u more", SLICE_ARG(first), changes->n - 1);
        else
            ctl_table_add(&table, first);
    }
    text_init(&out);
    ctl_table_write(&table, &out);
    fwrite(out.data, 1, out.len, stdout);
    text_fini(&out);
    ctl_table_fini(&table);
}

int ctl_versions(struct ctl *ctl)
{
    struct ctl_answer answer;
    struct text path;
    if (ctl->argc > 1)
        return ctl_usage("at most one VERSION");
    text_init(&path);
    text_printf(&path, "/v1/versions");
    if (ctl->argc == 1) {
        text_printf(&path, "/");
        client_add_segment(&path, slice_str(ctl->argv[0]));
    }
    int status = ctl_ask(ctl, "GET", path.data, &answer);
    if (!status && (ctl->json || !answer.doc.root)) {
        ctl_print_raw(&answer);
    } else if (!status && ctl->argc == 1) {
        const struct doc_node *root = answer.doc.root;
        printf("version %.*s, %.*s, by %.*s\n", SLICE_ARG(ctl_text(root, "version")),
               SLICE_ARG(ctl_text(root, "at")), SLICE_ARG(ctl_text(root, "who")));
        print_changes(doc_get(root, "changes"));
    } else if (!status) {
        print_versions(doc_get(answer.doc.root, "items"));
    }
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}

int ctl_rollback(struct ctl *ctl)
{
    struct ctl_answer answer;
    struct text path;
    if (ctl->argc != 1)
        return ctl_usage("one VERSION is needed");
    text_init(&path);
    text_printf(&path, "/v1/versions/");
    client_add_segment(&path, slice_str(ctl->argv[0]));
    text_printf(&path, "/rollback%s", ctl->dry_run ? "?dry_run=true" : "");
    int status = ctl_send(ctl, "POST", path.data, "application/json", SLICE("{}"), &answer);
    if (!status && ctl->json) {
        ctl_print_raw(&answer);
    } else if (!status && answer.doc.root) {
        print_changes(doc_get(answer.doc.root, "changes"));
        if (ctl->dry_run)
            print_impact(doc_get(answer.doc.root, "impact"));
        else
            printf("version %.*s is in force\n", SLICE_ARG(ctl_text(answer.doc.root, "version")));
    }
    ctl_answer_fini(&answer);
    text_fini(&path);
    return status;
}
