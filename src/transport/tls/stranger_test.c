/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * One end of a sealed connection, and OpenSSL with the same key at the other: our records are TLS
 * 1.3's, and its are understood. And memory that is gone.
 */
#include "base/copy.h"
#include "base/seal.h"
#include "transport/tls/tls.h"

#include <errno.h>
#include <openssl/crypto.h>
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
	bool early;  /* OpenSSL's end says something before it has shown that it has the key */
	bool psk_dhe_alone, no_early;  /* what our call offers, as OpenSSL reads it */
	uint8_t secret[HD_TLS_SECRET]; /* of what OpenSSL's end says */
	uint8_t out[LEN], in[LEN];
};

/* ---- OpenSSL's end ---- */

static SSL_SESSION *session_of(SSL *ssl)
{
	static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
	const struct scene *s = SSL_get_app_data(ssl);
	SSL_SESSION *session = SSL_SESSION_new();
	uint8_t secret[HD_SEAL_KEY];
	unsigned len;

	assert_non_null(
		HMAC(EVP_sha256(), key, sizeof(key), (const uint8_t *)"heddle link", 11, secret, &len));
	assert_true(SSL_SESSION_set1_master_key(session, secret, sizeof(secret)) &&
		    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) &&
		    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
		    (!s->early || SSL_SESSION_set_max_early_data(session, LEN)));
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

/* What a caller offers: RFC 8446, 4.2.9 and 4.2.10. */
static int look_at_call(SSL *ssl, int *alert, void *arg)
{
	struct scene *s = arg;
	const unsigned char *modes, *early;
	size_t len;

	s->no_early = !SSL_client_hello_get0_ext(ssl, 42, &early, &len);
	s->psk_dhe_alone = SSL_client_hello_get0_ext(ssl, 45, &modes, &len) && len == 2 && modes[0] == 1 &&
			   modes[1] == 1;
	return SSL_CLIENT_HELLO_SUCCESS;
}

static void keep_secret(const SSL *ssl, const char *line)
{
	struct scene *s = SSL_get_app_data(ssl);
	const char *name = SSL_is_server(ssl) ? "SERVER_TRAFFIC_SECRET_0 " : "CLIENT_TRAFFIC_SECRET_0 ";
	size_t len;

	if (!strncmp(line, name, strlen(name)))
		assert_true(OPENSSL_hexstr2buf_ex(s->secret, sizeof(s->secret), &len, strrchr(line, ' ') + 1,
						  '\0'));
}

static void stranger_open(struct scene *s, bool calls)
{
	s->ctx = SSL_CTX_new(TLS_method());
	assert_true(SSL_CTX_set_min_proto_version(s->ctx, TLS1_3_VERSION));
	assert_true(SSL_CTX_set_ciphersuites(s->ctx, "TLS_AES_128_GCM_SHA256"));
	SSL_CTX_set_num_tickets(s->ctx, 0);
	SSL_CTX_set_psk_use_session_callback(s->ctx, call);
	SSL_CTX_set_psk_find_session_callback(s->ctx, be_called);
	SSL_CTX_set_client_hello_cb(s->ctx, look_at_call, s);
	SSL_CTX_set_keylog_callback(s->ctx, keep_secret);
	SSL_CTX_set_max_early_data(s->ctx, s->early ? LEN : 0);
	s->ssl = SSL_new(s->ctx);
	SSL_set_app_data(s->ssl, s);
	SSL_set_fd(s->ssl, s->pair[1]);
	if (calls)
		SSL_set_connect_state(s->ssl);
	else
		SSL_set_accept_state(s->ssl);
}

static int shake(struct scene *s)
{
	int ours = -EAGAIN, theirs = 0;
	bool writes;

	for (int i = 0; i < 20 && (ours == -EAGAIN || (!ours && theirs != 1)); i++) {
		if (ours == -EAGAIN)
			ours = hd_seal_module.shake(s->seal, &writes);
		if (theirs != 1)
			theirs = SSL_do_handshake(s->ssl);
	}
	return ours;
}

static struct scene *scene_begin(bool we_call, uint64_t records, bool early)
{
	struct hd_sealer_attr attr = { .id = { 5, 7 }, .records = records, .copy = hd_copy };
	struct scene *s = calloc(1, sizeof(*s));

	s->early = early;
	memcpy(attr.key, key, sizeof(key));
	assert_int_equal(hd_seal_module.open(&attr, &s->sealer), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s->pair), 0);
	s->seal = hd_seal_module.begin(s->sealer, s->pair[0], we_call);
	stranger_open(s, !we_call);
	for (size_t i = 0; i < LEN; i++)
		s->out[i] = (uint8_t)(i * 2654435761u >> 11);
	return s;
}

static struct scene *scene_open(bool we_call, uint64_t records)
{
	struct scene *s = scene_begin(we_call, records, false);

	assert_int_equal(shake(s), 0);
	assert_true(SSL_is_init_finished(s->ssl));
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

static ssize_t hear_more(struct scene *s, void *buf, size_t len, bool *gone, bool *more)
{
	struct iovec iov = { buf, len };

	*gone = false;
	return hd_seal_module.read(s->seal, &iov, 1, gone, more);
}

static ssize_t hear(struct scene *s, void *buf, size_t len, bool *gone)
{
	bool more;

	return hear_more(s, buf, len, gone, &more);
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

/*
 * What comes before the handshake is over could be played to us again, whoever it is
 * from: nothing of it is taken.
 */
static void who_speaks_early_is_refused(void **state)
{
	struct scene *s = scene_begin(false, 0, true);
	size_t said;

	assert_int_equal(SSL_write_early_data(s->ssl, "early", 5, &said), 1);
	assert_int_equal(said, 5);
	assert_int_equal(shake(s), -EACCES);
	scene_close(s);
}

/* Nor do we say any to who would take it, or agree on keys without Diffie-Hellman. */
static void a_call_offers_no_more_than_it_should(void **state)
{
	struct scene *s = scene_begin(true, 0, true);

	assert_int_equal(shake(s), 0);
	assert_true(s->no_early);
	assert_true(s->psk_dhe_alone);
	assert_int_equal(SSL_get_early_data_status(s->ssl), SSL_EARLY_DATA_NOT_SENT);
	scene_close(s);
}

/* ---- who has the key, and means us harm ---- */

struct liar {
	struct hd_tls_way says;
	uint8_t *record;
	size_t len;
};

static void liar_begin(struct liar *l, struct scene *s)
{
	*l = (struct liar){ .record = calloc(1, LEN) };
	assert_true(hd_tls_way_begin(&l->says, s->sealer, s->secret, true));
}

/* One more record. */
static void liar_adds(struct liar *l, enum hd_tls_type type, const void *what, size_t len)
{
	assert_true(l->len + len + 2 * HD_TLS_MORE <= LEN);
	memcpy(l->record + l->len + HD_TLS_HEAD, what, len);
	assert_true(hd_tls_record_seal(&l->says, l->record + l->len, len, type));
	l->len += len + HD_TLS_MORE;
}

static void liar_adds_key(struct liar *l)
{
	liar_adds(l, HD_TLS_HANDSHAKE, "\x18\0\0\1\0", 5);
	assert_true(hd_tls_way_renew(&l->says));
}

/* All of them at once. */
static void liar_sends(struct liar *l, struct scene *s)
{
	assert_int_equal(send(s->pair[1], l->record, l->len, 0), l->len);
	l->len = 0;
}

static void liar_end(struct liar *l)
{
	hd_tls_way_end(&l->says);
	free(l->record);
}

/* Keys without end, and records of nothing: as long as they come, nobody else's turn would. */
static void who_says_nothing_without_end_is_cut_off(void **state)
{
	for (int keys = 0; keys < 2; keys++) {
		struct scene *s = scene_open(keys, 0);
		struct liar liar;
		bool gone;

		liar_begin(&liar, s);
		for (int i = 0; i < 40; i++)
			if (keys)
				liar_adds_key(&liar);
			else
				liar_adds(&liar, HD_TLS_DATA, "", 0);
		liar_adds(&liar, HD_TLS_DATA, "word", 4);
		liar_sends(&liar, s);
		assert_int_equal(hear(s, s->in, LEN, &gone), -EBADMSG);
		liar_end(&liar);
		scene_close(s);
	}
}

/*
 * A record for each byte, with keys between them: a turn takes some of them, and
 * says that there are more.
 */
static void tiny_records_are_taken_in_turns(void **state)
{
	enum {
		COUNT = 3000
	};
	struct scene *s = scene_open(true, 0);
	int turns = 0, got = 0;
	struct liar liar;
	bool gone, more = true;

	liar_begin(&liar, s);
	for (int i = 0; i < COUNT; i++) {
		liar_adds(&liar, HD_TLS_DATA, s->out + i, 1);
		for (int k = 0; k < 30 && i % 1000 == 7; k++)
			liar_adds_key(&liar);
	}
	liar_sends(&liar, s);
	for (; more; turns++) {
		ssize_t part = hear_more(s, s->in + got, LEN - (size_t)got, &gone, &more);

		assert_true(part > 0 || part == -EAGAIN);
		assert_true(part <= 1000);
		got += part > 0 ? (int)part : 0;
	}
	assert_int_equal(got, COUNT);
	assert_memory_equal(s->in, s->out, COUNT);
	assert_in_range(turns, 4, 20);
	liar_end(&liar);
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
		cmocka_unit_test(who_speaks_early_is_refused),
		cmocka_unit_test(a_call_offers_no_more_than_it_should),
		cmocka_unit_test(who_says_nothing_without_end_is_cut_off),
		cmocka_unit_test(tiny_records_are_taken_in_turns),
		cmocka_unit_test(what_is_gone_is_not_said),
		cmocka_unit_test(what_comes_for_memory_that_is_gone_is_lost),
	};

	return cmocka_run_group_tests_name("tls_stranger", tests, NULL, NULL);
}
