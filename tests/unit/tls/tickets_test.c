/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static const struct ticket_files no_files;

static void assert_same_key(const struct ticket_key *a, const struct ticket_key *b)
{
    assert_memory_equal(a->name, b->name, sizeof(a->name));
    assert_memory_equal(a->aes, b->aes, sizeof(a->aes));
    assert_memory_equal(a->hmac, b->hmac, sizeof(a->hmac));
}

static void threads_agree_whenever_they_begin(void **state)
{
    struct ticket_chain one, two;
    ticket_chain_init(&one, 1000);
    ticket_chain_turn(&one, 1000 + 3 * TICKET_EPOCH_S);
    ticket_chain_init(&two, 1000 + 3 * TICKET_EPOCH_S);
    assert_same_key(&one.now, &two.now);
    assert_same_key(&one.before, &two.before);
}

static void the_key_before_is_accepted_and_older_ones_are_not(void **state)
{
    struct ticket_chain chain;
    bool is_old;
    ticket_chain_init(&chain, 1000);
    const struct ticket_key first = chain.now;
    assert_ptr_equal(ticket_key_find(&no_files, &chain, first.name, &is_old), &chain.now);
    assert_false(is_old);
    ticket_chain_turn(&chain, 1000 + TICKET_EPOCH_S);
    assert_memory_not_equal(chain.now.name, first.name, sizeof(first.name));
    assert_same_key(ticket_key_find(&no_files, &chain, first.name, &is_old), &first);
    assert_true(is_old);
    ticket_chain_turn(&chain, 1000 + 2 * TICKET_EPOCH_S);
    assert_null(ticket_key_find(&no_files, &chain, first.name, &is_old));
}

static void a_key_stays_for_its_time(void **state)
{
    struct ticket_chain chain;
    ticket_chain_init(&chain, 1000);
    const struct ticket_key first = chain.now;
    ticket_chain_turn(&chain, 1000 + TICKET_EPOCH_S - 1);
    assert_same_key(&chain.now, &first);
}

static iso_err load(struct ticket_files *files, size_t n_bytes, struct tls_fault *fault)
{
    char path[] = "/tmp/isobar-ticket-XXXXXX", data[100];
    int fd = mkstemp(path);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i + files->n);
    assert_int_equal(write(fd, data, n_bytes), n_bytes);
    close(fd);
    iso_err err = ticket_file_load(files, path, fault);
    unlink(path);
    return err;
}

static void the_first_file_makes_tickets_and_all_are_accepted_C_078(void **state)
{
    struct ticket_files files = {.n = 0};
    struct ticket_chain chain;
    struct tls_fault fault;
    bool is_old;
    ticket_chain_init(&chain, 1000);
    assert_int_equal(load(&files, 80, &fault), ISO_OK);
    assert_int_equal(load(&files, 48, &fault), ISO_OK);
    assert_ptr_equal(ticket_key_now(&files, &chain), &files.keys[0]);
    assert_ptr_equal(ticket_key_find(&files, &chain, files.keys[0].name, &is_old), &files.keys[0]);
    assert_false(is_old);
    assert_ptr_equal(ticket_key_find(&files, &chain, files.keys[1].name, &is_old), &files.keys[1]);
    assert_true(is_old);
    assert_true(files.keys[1].is_short);
    assert_null(ticket_key_find(&files, &chain, chain.now.name, &is_old));
}

static void rejects_files_of_other_sizes(void **state)
{
    struct ticket_files files = {.n = 0};
    struct tls_fault fault;
    for (size_t n = 0; n <= 100; n += 10)
        if (n != 80)
            assert_int_equal(load(&files, n, &fault), ISO_ERR_INVALID);
    assert_string_equal(fault.key, "ticket_key_files");
    assert_int_equal(ticket_file_load(&files, "/nowhere", &fault), ISO_ERR_INVALID);
    assert_int_equal(files.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_agree_whenever_they_begin),
        cmocka_unit_test(the_key_before_is_accepted_and_older_ones_are_not),
        cmocka_unit_test(a_key_stays_for_its_time),
        cmocka_unit_test(the_first_file_makes_tickets_and_all_are_accepted_C_078),
        cmocka_unit_test(rejects_files_of_other_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
