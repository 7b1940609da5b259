/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar help COMMAND` is `isobar COMMAND --help`; `isobar help --man` is the manual page, made from the
 * same texts.
 */
#include "cli/cmd.h"

#include "cli/help.h"

#include <stdio.h>

const char cmd_help_help[] = "usage: isobar help [COMMAND]\n"
                             "       isobar help --man\n"
                             "\n"
                             "Prints the help of a command, or the list of commands.\n"
                             "\n"
                             "options:\n"
                             "      --man    the manual page of all commands, as man and groff read it\n"
                             "  -h, --help   this text\n"
                             "\n"
                             "exit status: 0 done, 2 called wrongly\n";

/* roff has its own ideas of backslashes, dashes and of lines that begin with a dot or a quote. */
static void put(struct slice text)
{
    if (text.len && (text.ptr[0] == '.' || text.ptr[0] == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\\')
            fputs("\\e", stdout);
        else if (text.ptr[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(text.ptr[i]);
}

static void put_line(struct slice text)
{
    put(text);
    putchar('\n');
}

static size_t indent_of(struct slice line)
{
    size_t n = 0;
    while (n < line.len && line.ptr[n] == ' ')
        n++;
    return n;
}

/* "-c, --config FILE" in bold, what it does indented below it. */
static void put_option(const struct help_option *option)
{
    printf(".TP\n\\fB");
    if (option->letter)
        printf("\\-%c, ", option->letter);
    printf("\\-\\-");
    put(option->name);
    printf("\\fR");
    if (option->value.ptr) {
        printf(" \\fI");
        put(option->value);
        printf("\\fR");
    }
    putchar('\n');
    if (option->text.len)
        put_line(option->text);
}

static void put_text(struct slice text)
{
    enum { NORMAL, OPTION, LITERAL } in = NORMAL;
    struct help_option option;
    struct slice line;
    while (slice_next(&text, '\n', &line)) {
        size_t indent = indent_of(line);
        bool is_option = help_option_line(line, &option), is_more = in == OPTION && indent >= 8;
        bool is_literal = indent >= 2 && !is_option && !is_more;
        if (in == LITERAL && !is_literal) {
            printf(".fi\n");
            in = NORMAL;
        }
        if (line.len == 0) {
            printf(in == OPTION ? "" : ".PP\n");
        } else if (is_option) {
            put_option(&option);
            in = OPTION;
        } else if (is_more) {
            put_line(slice_trim(line));
        } else if (is_literal) {
            printf("%s", in == LITERAL ? "" : ".nf\n");
            put_line(line);
            in = LITERAL;
        } else {
            printf("%s", in == OPTION ? ".PP\n" : "");
            put_line(line);
            in = NORMAL;
        }
    }
    if (in == LITERAL)
        printf(".fi\n");
}

static void put_command(const struct cmd *cmd)
{
    struct slice rest, usage = help_usage(cmd->help, &rest);
    printf(".SS isobar %s \\- ", cmd->name);
    put_line(slice_str(cmd->what));
    printf(".nf\n");
    put_line(slice_of(usage.ptr, usage.len - 1));
    printf(".fi\n.PP\n");
    put_text(rest);
}

static void put_ctl_commands(void)
{
    const char *name, *what, *help, *arguments;
    for (size_t i = 0; cmd_ctl_find(i, &name, &what, &help, &arguments); i++) {
        printf(".PP\n\\fBisobar ctl %s\\fR ", name);
        put_line(slice_str(arguments));
        printf(".br\n");
        put_line(slice_str(what));
        printf(".PP\n.RS\n");
        put_text(slice_str(help));
        printf(".RE\n");
    }
}

static void print_man(void)
{
    printf(".TH ISOBAR 1 \"\" \"isobar %s\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\nisobar \\- a load "
           "balancer\n"
           ".SH SYNOPSIS\n\\fBisobar\\fR \\fICOMMAND\\fR [options]\n.SH COMMANDS\n",
           ISOBAR_VERSION);
    for (size_t i = 0; i < cmds_n; i++) {
        printf(".TP\n\\fB%s\\fR\n", cmds[i].name);
        put_line(slice_str(cmds[i].what));
    }
    printf(".SH DETAILS\n");
    for (size_t i = 0; i < cmds_n; i++) {
        put_command(&cmds[i]);
        if (cmds[i].run == cmd_ctl)
            put_ctl_commands();
    }
}

int cmd_help(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--man") == 0) {
        print_man();
        return 0;
    }
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(cmd_help_help, stdout);
        return 0;
    }
    for (size_t i = 0; i < cmds_n && argc == 2; i++)
        if (strcmp(argv[1], cmds[i].name) == 0) {
            char *ask[] = {argv[1], (char *)"--help", NULL};
            return cmds[i].run(2, ask);
        }
    fputs("isobar help: say the name of one command; see isobar --help\n", stderr);
    return 2;
}
