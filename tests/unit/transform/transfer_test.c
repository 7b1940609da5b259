/* SPDX-License-Identifier: Apache-2.0 */
#include "transform/transfer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct h1_limits limits = {.head_bytes = 4096, .uri_bytes = 4096, .fields = 32};
static struct http_message parsed;

struct run {
    struct buf_pool bufs;
    struct transfer transfer;
    char out[8192];
    size_t out_len;
    size_t used;
    enum transfer_result result;
};

static void begin(struct run *run, enum http_framing framing, uint64_t length, bool chunked, bool trailers)
{
    struct http_message *msg = calloc(1, sizeof(*msg));
    *run = (struct run){0};
    buf_pool_init(&run->bufs);
    msg->framing = (uint8_t)framing;
    msg->content_length = length;
    transfer_init(&run->transfer, msg, chunked, trailers);
    free(msg);
}

static void collect(struct run *run, const struct transfer_pieces *pieces)
{
    for (int i = 0; i < pieces->n; i++) {
        memcpy(run->out + run->out_len, pieces->iov[i].iov_base, pieces->iov[i].iov_len);
        run->out_len += pieces->iov[i].iov_len;
    }
}

static void feed(struct run *run, const char *bytes)
{
    static char space[8192];
    char data[4096];
    struct scratch scratch = {space, space + sizeof(space)};
    struct transfer_pieces pieces;
    enum http_reject why;
    size_t len = strlen(bytes);
    memcpy(data, bytes, len);
    run->result = transfer_feed(&run->transfer, data, len, &limits, &run->bufs, &scratch, &parsed, &run->used,
                                &pieces, &why);
    if (run->result == TRANSFER_OK)
        collect(run, &pieces);
}

static void end(struct run *run)
{
    transfer_fini(&run->transfer, &run->bufs);
    assert_int_equal(run->bufs.n_lent, 0);
    buf_pool_fini(&run->bufs);
}

static void expect_out(struct run *run, const char *text)
{
    run->out[run->out_len] = '\0';
    assert_string_equal(run->out, text);
}

static void a_length_ends_where_it_says_and_leaves_the_rest(void **state)
{
    struct run run;
    begin(&run, HTTP_BODY_LENGTH, 5, false, false);
    feed(&run, "abc");
    assert_false(run.transfer.is_done);
    feed(&run, "deGET /next");
    assert_true(run.transfer.is_done);
    assert_int_equal(run.used, 2);
    expect_out(&run, "abcde");
    end(&run);
}

static void chunks_that_came_together_leave_as_one(void **state)
{
    struct run run;
    begin(&run, HTTP_BODY_CHUNKED, 0, true, true);
    feed(&run, "3;ext=1\r\nabc\r\n02\r\nde\r\n0\r\n\r\nGET");
    assert_true(run.transfer.is_done);
    assert_int_equal(run.used, 27);
    expect_out(&run, "5\r\nabcde\r\n0\r\n\r\n");
    end(&run);
}

static void the_split_of_the_input_does_not_change_the_body(void **state)
{
    static const char input[] = "4\r\nwiki\r\n5\r\npedia\r\n0\r\nX-Sum: 7\r\n\r\n";
    for (size_t split = 1; split < sizeof(input) - 1; split++) {
        struct run run;
        char first[64];
        memcpy(first, input, split);
        first[split] = '\0';
        begin(&run, HTTP_BODY_CHUNKED, 0, false, true);
        feed(&run, first);
        assert_int_equal(run.result, TRANSFER_OK);
        feed(&run, input + split);
        assert_int_equal(run.result, TRANSFER_OK);
        assert_true(run.transfer.is_done);
        expect_out(&run, "wikipedia");
        end(&run);
    }
}

static void trailers_are_passed_on_only_when_wanted_C_016(void **state)
{
    struct run run;
    begin(&run, HTTP_BODY_CHUNKED, 0, true, true);
    feed(&run, "1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n");
    expect_out(&run, "1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n");
    end(&run);
    begin(&run, HTTP_BODY_CHUNKED, 0, true, false);
    feed(&run, "1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n");
    expect_out(&run, "1\r\na\r\n0\r\n\r\n");
    end(&run);
}

static void an_end_by_close_becomes_a_last_chunk(void **state)
{
    struct run run;
    struct transfer_pieces pieces;
    struct scratch none = {0};
    begin(&run, HTTP_BODY_UNTIL_CLOSE, 0, true, false);
    feed(&run, "all");
    assert_false(run.transfer.is_done);
    assert_true(transfer_end(&run.transfer, NULL, &none, &pieces));
    collect(&run, &pieces);
    expect_out(&run, "3\r\nall\r\n0\r\n\r\n");
    end(&run);
}

static void an_early_close_is_not_an_end(void **state)
{
    struct run run;
    struct transfer_pieces pieces;
    struct scratch none = {0};
    begin(&run, HTTP_BODY_LENGTH, 5, false, false);
    feed(&run, "abc");
    assert_false(transfer_end(&run.transfer, NULL, &none, &pieces));
    end(&run);
    begin(&run, HTTP_BODY_CHUNKED, 0, true, false);
    feed(&run, "3\r\nabc\r\n");
    assert_false(transfer_end(&run.transfer, NULL, &none, &pieces));
    end(&run);
}

static void rejects_a_chunk_without_its_line_end_C_014(void **state)
{
    struct run run;
    begin(&run, HTTP_BODY_CHUNKED, 0, true, false);
    feed(&run, "3\r\nabcXX0\r\n\r\n");
    assert_int_equal(run.result, TRANSFER_REJECTED);
    end(&run);
}

static void rejects_trailers_beyond_the_limit_C_018(void **state)
{
    struct run run;
    begin(&run, HTTP_BODY_CHUNKED, 0, true, true);
    feed(&run, "0\r\n");
    for (int i = 0; i < 200 && run.result == TRANSFER_OK; i++)
        feed(&run, "X-Trailer-Number: 0123456789012345678901234567890123456789\r\n");
    assert_int_equal(run.result, TRANSFER_REJECTED);
    end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_length_ends_where_it_says_and_leaves_the_rest),
        cmocka_unit_test(chunks_that_came_together_leave_as_one),
        cmocka_unit_test(the_split_of_the_input_does_not_change_the_body),
        cmocka_unit_test(trailers_are_passed_on_only_when_wanted_C_016),
        cmocka_unit_test(an_end_by_close_becomes_a_last_chunk),
        cmocka_unit_test(an_early_close_is_not_an_end),
        cmocka_unit_test(rejects_a_chunk_without_its_line_end_C_014),
        cmocka_unit_test(rejects_trailers_beyond_the_limit_C_018),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
