/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar completion bash|zsh`: completions made from the table of commands and their help texts. */
#include "cli/cmd.h"

#include "cli/help.h"
#include "core/check.h"

#include <stdio.h>

const char cmd_completion_help[] = "usage: isobar completion bash|zsh\n"
                                   "\n"
                                   "Prints completions of commands, options and their values for a shell:\n"
                                   "\n"
                                   "    eval \"$(isobar completion bash)\"        in ~/.bashrc\n"
                                   "    isobar completion zsh > ~/.zfunc/_isobar  with ~/.zfunc in fpath\n"
                                   "\n"
                                   "options:\n"
                                   "  -h, --help   this text\n"
                                   "\n"
                                   "exit status: 0 done, 2 called wrongly\n";

static const char *const methods[] = {
#define METHOD(id, name, needs_hash, text) name,
#include "balance/methods.def"
#undef METHOD
};

/* ---- values of options ---- */

enum value_kind { VALUE_NONE, VALUE_FILE, VALUE_FOLDER, VALUE_WORDS, VALUE_METHOD, VALUE_ANY };

static enum value_kind kind_of(const struct help_option *option)
{
    if (!option->value.ptr)
        return VALUE_NONE;
    if (slice_eq(option->name, SLICE("algorithm")))
        return VALUE_METHOD;
    if (slice_starts(option->value, SLICE("FILE")))
        return VALUE_FILE;
    if (slice_starts(option->value, SLICE("FOLDER")))
        return VALUE_FOLDER;
    return slice_find(option->value, '|') < option->value.len ? VALUE_WORDS : VALUE_ANY;
}

static void print_words(struct slice words)
{
    struct slice word;
    const char *joint = "";
    while (slice_next(&words, '|', &word)) {
        printf("%s%.*s", joint, SLICE_ARG(word));
        joint = " ";
    }
}

static void print_methods(void)
{
    for (size_t i = 0; i < iso_countof(methods); i++)
        printf("%s%s", i ? " " : "", methods[i]);
}

/* ---- bash ---- */

static void bash_name(void *context, const struct help_option *option)
{
    printf(" --%.*s", SLICE_ARG(option->name));
}

static void bash_word(void *context, struct slice word)
{
    printf(" %.*s", SLICE_ARG(word));
}

/* One arm of `case "$where $prev"`; `where` is the command, or "ctl get". */
static void bash_value(void *context, const struct help_option *option)
{
    const char *where = context;
    enum value_kind kind = kind_of(option);
    if (kind == VALUE_NONE)
        return;
    printf("    \"%s --%.*s\"", where, SLICE_ARG(option->name));
    if (option->letter)
        printf(" | \"%s -%c\"", where, option->letter);
    if (kind == VALUE_FILE || kind == VALUE_FOLDER) {
        printf(") COMPREPLY=($(compgen -%c -- \"$cur\")); return ;;\n", kind == VALUE_FILE ? 'f' : 'd');
        return;
    }
    printf(") COMPREPLY=($(compgen -W \"");
    if (kind == VALUE_METHOD)
        print_methods();
    else if (kind == VALUE_WORDS)
        print_words(option->value);
    printf("\" -- \"$cur\")); return ;;\n");
}

static void bash_ctl_values(void)
{
    const char *name, *what, *help, *arguments;
    char where[64];
    for (size_t i = 0; cmd_ctl_find(i, &name, &what, &help, &arguments); i++) {
        snprintf(where, sizeof(where), "ctl %s", name);
        help_each_option(cmd_ctl_help, bash_value, where);
        struct slice lines = slice_str(help), line;
        struct help_option option;
        while (slice_next(&lines, '\n', &line))
            if (help_option_line(line, &option))
                bash_value(where, &option);
    }
}

static void bash_words_of_ctl(void)
{
    const char *name, *what, *help, *arguments;
    printf("    ctl) words=\"");
    for (size_t i = 0; cmd_ctl_find(i, &name, &what, &help, &arguments); i++)
        printf(" %s", name);
    help_each_option(cmd_ctl_help, bash_name, NULL);
    printf("\" ;;\n");
    for (size_t i = 0; cmd_ctl_find(i, &name, &what, &help, &arguments); i++) {
        struct slice lines = slice_str(help), line;
        struct help_option option;
        printf("    \"ctl %s\") words=\"", name);
        while (slice_next(&lines, '\n', &line))
            if (help_option_line(line, &option))
                bash_name(NULL, &option);
        help_each_option(cmd_ctl_help, bash_name, NULL);
        printf("\" ;;\n");
    }
}

static void print_bash(void)
{
    printf("# Completions of isobar %s for bash, made by `isobar completion bash`.\n_isobar()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} where=${COMP_WORDS[1]} "
           "words=\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W \"--help --version",
           ISOBAR_VERSION);
    for (size_t i = 0; i < cmds_n; i++)
        printf(" %s", cmds[i].name);
    printf("\" -- \"$cur\"))\n        return\n    fi\n"
           "    if [[ $where == ctl ]] && ((COMP_CWORD > 2)); then where=\"ctl ${COMP_WORDS[2]}\"; fi\n"
           "    case \"$where $prev\" in\n");
    for (size_t i = 0; i < cmds_n; i++)
        help_each_option(cmds[i].help, bash_value, (void *)cmds[i].name);
    bash_ctl_values();
    printf("    esac\n    case \"$where\" in\n");
    for (size_t i = 0; i < cmds_n; i++) {
        if (cmds[i].run == cmd_ctl)
            continue;
        printf("    %s) words=\"", cmds[i].name);
        help_each_word(cmds[i].help, bash_word, NULL);
        if (cmds[i].run == cmd_help)
            for (size_t k = 0; k < cmds_n; k++)
                printf(" %s", cmds[k].name);
        help_each_option(cmds[i].help, bash_name, NULL);
        printf("\" ;;\n");
    }
    bash_words_of_ctl();
    printf("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    if [[ $cur != -* && ${#COMPREPLY[@]} == 0 ]]; then COMPREPLY=($(compgen -f -- \"$cur\")); "
           "fi\n}\n"
           "complete -o filenames -F _isobar isobar\n");
}

/* ---- zsh ---- */

/* In a quoted word: quotes end it, brackets and colons mean something to _arguments. */
static void zsh_text(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\'')
            fputs("'\\''", stdout);
        else if (c == '[' || c == ']' || c == ':' || c == '\\')
            printf("\\%c", c);
        else
            putchar(c);
    }
}

static void zsh_option(void *context, const struct help_option *option)
{
    enum value_kind kind = kind_of(option);
    printf(" \\\n            ");
    if (option->letter)
        printf("'(-%c --%.*s)'{-%c,--%.*s}'", option->letter, SLICE_ARG(option->name), option->letter,
               SLICE_ARG(option->name));
    else
        printf("'*--%.*s", SLICE_ARG(option->name));
    printf("[");
    zsh_text(option->text.len ? option->text : option->name);
    printf("]");
    if (kind != VALUE_NONE) {
        printf(":");
        zsh_text(option->value);
        printf(":");
        if (kind == VALUE_FILE)
            printf("_files");
        else if (kind == VALUE_FOLDER)
            printf("_files -/");
        else if (kind == VALUE_WORDS || kind == VALUE_METHOD) {
            printf("(");
            if (kind == VALUE_METHOD)
                print_methods();
            else
                print_words(option->value);
            printf(")");
        }
    }
    printf("'");
}

static void zsh_word(void *context, struct slice word)
{
    printf("%s%.*s", *(const char **)context, SLICE_ARG(word));
    *(const char **)context = " ";
}

static void zsh_command(const struct cmd *cmd)
{
    const char *joint = "1:command:(";
    printf("        %s)\n            _arguments", cmd->name);
    help_each_option(cmd->help, zsh_option, NULL);
    printf(" \\\n            '");
    help_each_word(cmd->help, zsh_word, &joint);
    if (joint[0] == ' ')
        printf(")' '");
    printf("*:file:_files' ;;\n");
}

static void zsh_ctl(void)
{
    const char *name, *what, *help, *arguments;
    printf("        ctl)\n            local -a of_ctl\n            of_ctl=(");
    for (size_t i = 0; cmd_ctl_find(i, &name, &what, &help, &arguments); i++) {
        printf("'%s:", name);
        zsh_text(slice_str(what));
        printf("' ");
    }
    printf(")\n            if ((CURRENT == 2)); then _describe 'ctl command' of_ctl; return; fi\n"
           "            case $words[2] in\n");
    for (size_t i = 0; cmd_ctl_find(i, &name, &what, &help, &arguments); i++) {
        struct slice lines = slice_str(help), line;
        struct help_option option;
        printf("            %s) _arguments", name);
        help_each_option(cmd_ctl_help, zsh_option, NULL);
        while (slice_next(&lines, '\n', &line))
            if (help_option_line(line, &option))
                zsh_option(NULL, &option);
        printf(" \\\n            '*:file:_files' ;;\n");
    }
    printf("            esac ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef isobar\n# Completions of isobar %s for zsh, made by `isobar completion "
           "zsh`.\n_isobar()\n{\n"
           "    local -a commands\n    commands=(",
           ISOBAR_VERSION);
    for (size_t i = 0; i < cmds_n; i++) {
        printf("'%s:", cmds[i].name);
        zsh_text(slice_str(cmds[i].what));
        printf("' ");
    }
    printf(")\n    if ((CURRENT == 2)); then _describe command commands; return; fi\n"
           "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n");
    for (size_t i = 0; i < cmds_n; i++)
        if (cmds[i].run == cmd_ctl)
            zsh_ctl();
        else
            zsh_command(&cmds[i]);
    printf("    esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then _isobar \"$@\"; else compdef "
           "_isobar "
           "isobar; fi\n");
}

int cmd_completion(int argc, char **argv)
{
    bool wants_help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (wants_help)
        fputs(cmd_completion_help, stdout);
    else if (argc == 2 && strcmp(argv[1], "bash") == 0)
        print_bash();
    else if (argc == 2 && strcmp(argv[1], "zsh") == 0)
        print_zsh();
    else {
        fputs("isobar completion: say bash or zsh; see isobar completion --help\n", stderr);
        return 2;
    }
    return 0;
}
