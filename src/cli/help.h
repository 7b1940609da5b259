/* SPDX-License-Identifier: Apache-2.0 */
/* What help texts say, for programs: the options in them, so that the manual page and completions cannot tell
 * anything else than --help does. A help text begins with its usage, up to the first empty line; an option
 * has a line of its own in the text ("  -c, --config FILE   the configuration") or stands in the usage. */
#ifndef ISOBAR_CLI_HELP_H
#define ISOBAR_CLI_HELP_H

#include "core/slice.h"

struct help_option {
    char letter;        /* 0: none */
    struct slice name;  /* without the dashes */
    struct slice value; /* "FILE", "text|json"; ptr NULL: it takes none */
    struct slice text;  /* what it does, of its own line only; ptr NULL: it stands in the usage */
};

/* The option whose line this is; false: it is no option's. */
bool help_option_line(struct slice line, struct help_option *option);
/* Each option of a text once, those with a line of their own first. */
void help_each_option(const char *help, void (*each)(void *context, const struct help_option *option),
                      void *context);
/* Each word that may stand behind the command, as the usage has it: "status|vips|counters". */
void help_each_word(const char *help, void (*each)(void *context, struct slice word), void *context);
/* The usage, and what comes behind the empty line that ends it. */
struct slice help_usage(const char *help, struct slice *rest);

#endif
