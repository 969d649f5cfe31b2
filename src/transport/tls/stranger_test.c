/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* One end of a sealed connection, and OpenSSL with the same key at the other: our records are TLS 1.3's, and its are understood. And memory that is gone. */
#include "base/copy.h"
#include "base/seal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct hd_seal_module hd_seal_module;

#define IDENTITY "heddle 1 and sixteen bytes"

enum {
	LEN = 200000,
	PAGE = 4096
};

static const uint8_t key[HD_SEAL_KEY] = "this is a key for a test, no 1.";

struct scene {
	struct hd_sealer *sealer;
	struct hd_seal *seal;
	SSL_CTX *ctx;
	SSL *ssl;
	int pair[2]; /* ours, OpenSSL's */
	uint8_t out[LEN], in[LEN];
};

/* ---- OpenSSL's end ---- */

static SSL_SESSION *session_of(SSL *ssl)
{
	static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
	SSL_SESSION *session = SSL_SESSION_new();
	uint8_t secret[HD_SEAL_KEY];
	unsigned len;

	assert_non_null(
		HMAC(EVP_sha256(), key, sizeof(key), (const uint8_t *)"heddle link", 11, secret, &len));
	assert_true(SSL_SESSION_set1_master_key(session, secret, sizeof(secret)) &&
		    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) &&
		    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION));
	return session;
}

static int call(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **out)
{
	*id = (const unsigned char *)IDENTITY;
	*len = strlen("heddle 1 ") + HD_SEAL_ID;
	*out = session_of(ssl);
	return 1;
}

static int be_called(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **out)
{
	*out = session_of(ssl);
	return 1;
}

static void stranger_open(struct scene *s, bool calls)
{
	s->ctx = SSL_CTX_new(TLS_method());
	assert_true(SSL_CTX_set_min_proto_version(s->ctx, TLS1_3_VERSION));
	assert_true(SSL_CTX_set_ciphersuites(s->ctx, "TLS_AES_128_GCM_SHA256"));
	SSL_CTX_set_num_tickets(s->ctx, 0);
	SSL_CTX_set_psk_use_session_callback(s->ctx, call);
	SSL_CTX_set_psk_find_session_callback(s->ctx, be_called);
	s->ssl = SSL_new(s->ctx);
	SSL_set_fd(s->ssl, s->pair[1]);
	if (calls)
		SSL_set_connect_state(s->ssl);
	else
		SSL_set_accept_state(s->ssl);
}

static struct scene *scene_open(bool we_call, uint64_t records)
{
	struct hd_sealer_attr attr = { .id = { 5, 7 }, .records = records, .copy = hd_copy };
	struct scene *s = calloc(1, sizeof(*s));
	int ours = -EAGAIN, theirs = 0;
	bool writes;

	memcpy(attr.key, key, sizeof(key));
	assert_int_equal(hd_seal_module.open(&attr, &s->sealer), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s->pair), 0);
	s->seal = hd_seal_module.begin(s->sealer, s->pair[0], we_call);
	stranger_open(s, !we_call);
	for (int i = 0; i < 20 && (ours == -EAGAIN || theirs != 1); i++) {
		if (ours == -EAGAIN)
			ours = hd_seal_module.shake(s->seal, &writes);
		if (theirs != 1)
			theirs = SSL_do_handshake(s->ssl);
	}
	assert_int_equal(ours, 0);
	assert_int_equal(theirs, 1);
	for (size_t i = 0; i < LEN; i++)
		s->out[i] = (uint8_t)(i * 2654435761u >> 11);
	return s;
}

static void scene_close(struct scene *s)
{
	SSL_free(s->ssl);
	SSL_CTX_free(s->ctx);
	hd_seal_module.end(s->seal);
	hd_seal_module.close(s->sealer);
	close(s->pair[0]);
	close(s->pair[1]);
	free(s);
}

/* ---- words ---- */

static ssize_t say(struct scene *s, void *buf, size_t len)
{
	struct iovec iov = { buf, len };
	size_t left;

	return hd_seal_module.write(s->seal, &iov, 1, &left);
}

static ssize_t hear(struct scene *s, void *buf, size_t len, bool *gone)
{
	struct iovec iov = { buf, len };

	*gone = false;
	return hd_seal_module.read(s->seal, &iov, 1, gone);
}

/* All of s->out, each way. */
static void we_say(struct scene *s)
{
	size_t said = 0, got = 0, left;
	int n;

	memset(s->in, 0, LEN);
	while (got < LEN) {
		struct iovec iov = { s->out + said, LEN - said };
		ssize_t part = hd_seal_module.write(s->seal, &iov, said < LEN, &left);

		assert_true(part >= 0);
		said += (size_t)part;
		for (n = 1; got < LEN && n > 0; got += n > 0 ? (size_t)n : 0)
			n = SSL_read(s->ssl, s->in + got, LEN - (int)got);
		assert_true(n > 0 || SSL_get_error(s->ssl, n) == SSL_ERROR_WANT_READ);
	}
	assert_memory_equal(s->in, s->out, LEN);
}

static void they_say(struct scene *s)
{
	size_t said = 0, got = 0;
	ssize_t part;
	bool gone;
	int n;

	memset(s->in, 0, LEN);
	while (got < LEN) {
		size_t most = LEN - said < 5000 ? LEN - said : 5000;

		n = most ? SSL_write(s->ssl, s->out + said, (int)most) : 0;
		said += n > 0 ? (size_t)n : 0;
		part = hear(s, s->in + got, LEN - got, &gone);
		assert_true(part > 0 || part == -EAGAIN);
		got += part > 0 ? (size_t)part : 0;
	}
	assert_memory_equal(s->in, s->out, LEN);
}

static void openssl_understands_us_and_we_it(void **state)
{
	for (int we_call = 0; we_call < 2; we_call++)
		for (uint64_t records = 0; records < 8; records += 3) {
			struct scene *s = scene_open(we_call, records);

			we_say(s);
			they_say(s);
			scene_close(s);
		}
}

/* Its keys follow each other, and it asks for ours to do so. */
static void keys_that_it_changes_are_followed(void **state)
{
	struct scene *s = scene_open(true, 0);

	for (int i = 0; i < 4; i++) {
		assert_true(SSL_key_update(s->ssl,
					   i % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED));
		they_say(s);
		we_say(s);
	}
	scene_close(s);
}

static void what_it_pads_is_as_long_as_it_was(void **state)
{
	struct scene *s = scene_open(false, 0);

	assert_true(SSL_set_block_padding(s->ssl, 512));
	they_say(s);
	scene_close(s);
}

static void a_goodbye_is_the_end(void **state)
{
	struct scene *s = scene_open(true, 0);
	bool gone;

	assert_int_equal(SSL_write(s->ssl, "last", 4), 4);
	SSL_shutdown(s->ssl);
	assert_int_equal(hear(s, s->in, LEN, &gone), 4);
	assert_int_equal(hear(s, s->in, LEN, &gone), 0);
	scene_close(s);
}

/* Nothing that is no data, no goodbye and no key update is taken, be it sealed with the key. */
static void other_records_are_refused(void **state)
{
	struct scene *s = scene_open(false, 0);
	bool gone;

	SSL_CTX_set_num_tickets(s->ctx, 1);
	assert_int_equal(SSL_write(s->ssl, "word", 4), 4);
	assert_int_equal(hear(s, s->in, LEN, &gone), 4);
	for (int i = 0; i < 2;
	     i++) { /* a record's head that says more than one may hold; and so the next time */
		static const uint8_t head[5] = { 23, 3, 3, 0x41, 1 };

		assert_int_equal(send(s->pair[1], head, sizeof(head), 0), sizeof(head));
		assert_int_equal(hear(s, s->in, LEN, &gone), -EBADMSG);
	}
	scene_close(s);
	s = scene_open(true, 0); /* who is called may offer a ticket */
	assert_true(SSL_new_session_ticket(s->ssl));
	assert_int_equal(SSL_do_handshake(s->ssl), 1);
	assert_int_equal(SSL_write(s->ssl, "word", 4), 4);
	assert_int_equal(hear(s, s->in, LEN, &gone), -EBADMSG);
	scene_close(s);
}

/* ---- memory that is gone ---- */

/* cmocka and the address sanitizer have handlers of their own, which stand for a program's */
static void guard(void)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	hd_guard_open();
}

/* What stands before it goes; of what would stand there nothing does. */
static void what_is_gone_is_not_said(void **state)
{
	struct scene *s = scene_open(true, 0);
	char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[2] = { { s->out, 1000 }, { page, PAGE } };
	size_t left;

	guard();
	assert_int_equal(say(s, page, PAGE), -EFAULT);
	assert_int_equal(say(s, page, 3), -EFAULT);
	assert_int_equal(hd_seal_module.write(s->seal, iov, 2, &left), 1000);
	assert_int_equal(SSL_read(s->ssl, s->in, LEN), 1000);
	assert_memory_equal(s->in, s->out, 1000);
	munmap(page, PAGE);
	scene_close(s);
}

/* It is lost, and what comes behind it is not. */
static void what_comes_for_memory_that_is_gone_is_lost(void **state)
{
	struct scene *s = scene_open(true, 0);
	char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool gone;

	guard();
	assert_int_equal(SSL_write(s->ssl, s->out, 2 * PAGE), 2 * PAGE);
	assert_int_equal(hear(s, page, PAGE, &gone), PAGE);
	assert_true(gone);
	assert_int_equal(hear(s, s->in, PAGE, &gone), PAGE);
	assert_false(gone);
	assert_memory_equal(s->in, s->out + PAGE, PAGE);
	munmap(page, PAGE);
	scene_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openssl_understands_us_and_we_it),
		cmocka_unit_test(keys_that_it_changes_are_followed),
		cmocka_unit_test(what_it_pads_is_as_long_as_it_was),
		cmocka_unit_test(a_goodbye_is_the_end),
		cmocka_unit_test(other_records_are_refused),
		cmocka_unit_test(what_is_gone_is_not_said),
		cmocka_unit_test(what_comes_for_memory_that_is_gone_is_lost),
	};

	return cmocka_run_group_tests_name("tls_stranger", tests, NULL, NULL);
}
