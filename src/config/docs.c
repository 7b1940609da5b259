/* SPDX-License-Identifier: Apache-2.0 */
#include "config/docs.h"

#include "config/schema.h"

static void write_escaped(struct text *out, const char *text)
{
    for (; *text; text++)
        text_printf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void write_kind(struct text *out, const struct schema_key *key)
{
    struct text kind;
    text_init(&kind);
    if (schema_is_section(key))
        text_printf(&kind, "map");
    else if (schema_is_list(key))
        text_printf(&kind, "list of maps");
    else
        key->type->expect(key, &kind);
    write_escaped(out, kind.data);
    text_fini(&kind);
}

static void write_key(struct text *out, const struct schema_key *key)
{
    text_printf(out, "| `%s` | ", key->name);
    write_kind(out, key);
    if (key->required)
        text_printf(out, " | **required** | ");
    else if (key->default_text)
        text_printf(out, " | `%s` | ", key->default_text);
    else
        text_printf(out, " | | ");
    write_escaped(out, key->doc);
    text_printf(out, key->secret ? "; [secret](api.md#secrets) |\n" : " |\n");
}

static bool has_documented_choices(const struct schema_key *key)
{
    return key->choices && key->choices[0].name && key->choices[1].name;
}

static void write_choices(struct text *out, const struct schema_key *key)
{
    text_printf(out, "\n`%s`:\n\n| value | meaning |\n|---|---|\n", key->name);
    for (const struct schema_choice *choice = key->choices; choice->name; choice++) {
        text_printf(out, "| `%s` | ", choice->name);
        write_escaped(out, choice->doc);
        text_printf(out, " |\n");
    }
}

/* A section and those below it; the depth is that of the table. */
static void write_section(struct text *out, const struct schema_section *section, const char *path)
{
    const char *mark = *path ? "`" : "";
    text_printf(out, "%s## %s%s%s\n\n%s\n\n| key | value | default | |\n|---|---|---|---|\n",
                *path ? "\n" : "", mark, *path ? path : "Top of the document", mark, section->doc);
    for (const struct schema_key *key = section->keys; key->name; key++)
        write_key(out, key);
    for (const struct schema_key *key = section->keys; key->name; key++)
        if (has_documented_choices(key))
            write_choices(out, key);
    for (const struct schema_key *key = section->keys; key->name; key++) {
        if (!key->section)
            continue;
        struct text below;
        text_init(&below);
        text_printf(&below, "%s%s%s%s", path, *path ? "." : "", key->name, schema_is_list(key) ? "[]" : "");
        write_section(out, key->section, below.data);
        text_fini(&below);
    }
}

void config_write_reference(struct text *out)
{
    write_section(out, &schema_config, "");
}
