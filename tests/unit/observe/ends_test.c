/* SPDX-License-Identifier: Apache-2.0 */
/* docs/reasons.md has every reason word of the access log, from the tables that the code answers by. */
#include "core/check.h"

#include "golden.h"

struct reason {
    unsigned status;
    const char *word, *text;
};

static const struct reason ends[] = {
#define END(id, status, word, text) {status, word, text},
#include "observe/ends.def"
#undef END
};

static const struct reason rejects[] = {
#define REJECT(id, status, word, text) {status, word, text},
#include "http/reject.def"
#undef REJECT
};

static void write_table(struct text *out, const struct reason *reasons, size_t n)
{
    text_printf(out, "\n| word | status | what happened |\n|---|---|---|\n");
    for (size_t i = 0; i < n; i++) {
        if (reasons[i].status)
            text_printf(out, "| `%s` | %u | %s |\n", reasons[i].word, reasons[i].status, reasons[i].text);
        else
            text_printf(out, "| `%s` | | %s |\n", reasons[i].word, reasons[i].text);
    }
    text_printf(out, "\n");
}

static void the_words_of_ends_are_documented(void **state)
{
    struct text out;
    text_init(&out);
    write_table(&out, ends, iso_countof(ends));
    golden_check("docs/reasons.md", "ends", text_slice(&out));
    text_fini(&out);
}

static void the_words_of_the_parser_are_documented(void **state)
{
    struct text out;
    text_init(&out);
    write_table(&out, rejects, iso_countof(rejects));
    golden_check("docs/reasons.md", "rejects", text_slice(&out));
    text_fini(&out);
}

static void no_word_means_two_things_in_one_table(void **state)
{
    for (size_t i = 0; i < iso_countof(ends); i++)
        for (size_t j = i + 1; j < iso_countof(ends); j++)
            assert_string_not_equal(ends[i].word, ends[j].word);
    for (size_t i = 0; i < iso_countof(rejects); i++)
        for (size_t j = i + 1; j < iso_countof(rejects); j++)
            assert_string_not_equal(rejects[i].word, rejects[j].word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_of_ends_are_documented),
        cmocka_unit_test(the_words_of_the_parser_are_documented),
        cmocka_unit_test(no_word_means_two_things_in_one_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
