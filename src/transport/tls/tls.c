/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections sealed by TLS 1.3 with one key that both ends have (RFC 8446, 2.2: PSK with a
 * Diffie-Hellman exchange, so that who learns the key later reads nothing of before). There are no
 * certificates, no tickets, no early data and no other version or cipher to be talked into. The
 * keys for a link and for anything else come from the one in the file by HMAC (RFC 9257, 6: a key
 * is for one purpose).
 *
 * The handshake is OpenSSL's; what follows is stream.c's. OpenSSL has a context of its own here, so
 * that no configuration of the program's changes what is spoken, and errors of ours never stand in
 * the thread's queue of the program's (ERR_set_mark(3)).
 */
#include "transport/tls/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS (1ull << 23) /* of one key; half of what RFC 8446, 5.5 allows for AES-GCM */
#define SHAKEN (16u << 10)   /* bytes of a handshake: far more than any of ours has */

/* ---- the socket, as OpenSSL sees it ---- */

/*
 * During the handshake. It asks for no more than the record that it wants: what stands
 * behind the last one is ours.
 */
static int wire_read(BIO *bio, char *buf, size_t len, size_t *got)
{
	struct hd_seal *s = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (s->shaken > SHAKEN) {
		/* whoever it is; what he said may come in a record for each byte */
		s->err = -EACCES;
		return 0;
	}
	*got = hd_tls_recv(s, buf, len);
	s->shaken += (unsigned)*got;
	if (s->dry)
		BIO_set_retry_read(bio);
	return *got > 0;
}

static int wire_write(BIO *bio, const char *buf, size_t len, size_t *put)
{
	struct hd_seal *s = BIO_get_data(bio);

	if (!hd_tls_grow(&s->out, s->out.tail + len)) {
		s->err = -ENOMEM;
		return 0;
	}
	memcpy(s->out.at + s->out.tail, buf, len);
	s->out.tail += len;
	*put = len;
	return 1;
}

static long wire_ctrl(BIO *bio, int what, long num, void *ptr)
{
	return what == BIO_CTRL_FLUSH; /* hd_tls_flush sees to that */
}

static int wire_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

/* ---- the key ---- */

/* The session that the key stands for: RFC 8446, 4.2.11. */
static SSL_SESSION *key_session(SSL *ssl, const struct hd_sealer *sealer)
{
	static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher && SSL_SESSION_set1_master_key(session, sealer->key, sizeof(sealer->key)) &&
	    SSL_SESSION_set_cipher(session, cipher) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int calling(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **out)
{
	struct hd_seal *s = SSL_get_app_data(ssl);

	*out = key_session(ssl, s->sealer);
	*id = s->sealer->identity;
	*len = sizeof(s->sealer->identity);
	return *out != NULL;
}

static int called(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **out)
{
	struct hd_seal *s = SSL_get_app_data(ssl);

	*out = NULL;
	if (len != sizeof(s->sealer->identity) || memcmp(id, HD_TLS_IDENTITY, HD_TLS_IDENTITY_LEN) != 0)
		return 1; /* none that we know: the handshake fails */
	s->heard_self = memcmp(id, s->sealer->identity, len) == 0;
	*out = key_session(ssl, s->sealer);
	return *out != NULL;
}

bool hd_tls_derive(const struct hd_sealer *sealer, const void *what, size_t size, uint8_t out[HD_SEAL_KEY])
{
	unsigned len = 0;

	return HMAC(EVP_sha256(), sealer->root, sizeof(sealer->root), what, size, out, &len) &&
	       len == HD_SEAL_KEY;
}

/*
 * The secrets of both directions, as SSL_CTX_set_keylog_callback(3) tells them: a name, the
 * connection's number, and the secret in hexadecimal digits.
 */
static void heard_secret(const SSL *ssl, const char *line)
{
	static const char *const names[] = {
		[HD_TLS_CALLER] = "CLIENT_TRAFFIC_SECRET_0 ", [HD_TLS_CALLED] = "SERVER_TRAFFIC_SECRET_0 "
	};
	struct hd_seal *s = SSL_get_app_data(ssl);
	const char *digits = strrchr(line, ' ');
	size_t len;

	for (int i = HD_TLS_CALLER; i <= HD_TLS_CALLED; i++)
		if (digits && !strncmp(line, names[i], strlen(names[i])) &&
		    OPENSSL_hexstr2buf_ex(s->secrets[i], HD_TLS_SECRET, &len, digits + 1, '\0') &&
		    len == HD_TLS_SECRET)
			s->heard_secrets |= 1u << i;
}

/* ---- what a node has ---- */

static void sealer_close(struct hd_sealer *sealer)
{
	if (!sealer)
		return;
	ERR_set_mark();
	SSL_CTX_free(sealer->ctx);
	EVP_CIPHER_free(sealer->aes);
	EVP_KDF_free(sealer->kdf);
	BIO_meth_free(sealer->wire);
	OSSL_LIB_CTX_free(sealer->own);
	OPENSSL_cleanse(sealer->key, sizeof(sealer->key));
	OPENSSL_cleanse(sealer->root, sizeof(sealer->root));
	ERR_pop_to_mark();
	free(sealer);
}

static bool wire_make(struct hd_sealer *sealer)
{
	sealer->wire = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "heddle");
	return sealer->wire && BIO_meth_set_read_ex(sealer->wire, wire_read) &&
	       BIO_meth_set_write_ex(sealer->wire, wire_write) &&
	       BIO_meth_set_ctrl(sealer->wire, wire_ctrl) && BIO_meth_set_create(sealer->wire, wire_create);
}

static bool ctx_make(struct hd_sealer *sealer)
{
	SSL_CTX *ctx;

	sealer->own = OSSL_LIB_CTX_new();
	ctx = sealer->ctx = sealer->own ? SSL_CTX_new_ex(sealer->own, NULL, TLS_method()) : NULL;
	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") || !SSL_CTX_set_num_tickets(ctx, 0) ||
	    !SSL_CTX_set_max_early_data(ctx, 0) || !SSL_CTX_set_recv_max_early_data(ctx, 0))
		return false;
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_read_ahead(ctx, 0);
	SSL_CTX_set_keylog_callback(ctx, heard_secret);
	SSL_CTX_set_psk_use_session_callback(ctx, calling);
	SSL_CTX_set_psk_find_session_callback(ctx, called);
	return true;
}

static int sealer_open(const struct hd_sealer_attr *attr, struct hd_sealer **out)
{
	struct hd_sealer *sealer = calloc(1, sizeof(*sealer));
	bool made;

	if (!sealer)
		return -ENOMEM;
	/* threads of the node may speak until the very end of the process */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
	memcpy(sealer->identity, HD_TLS_IDENTITY, HD_TLS_IDENTITY_LEN);
	memcpy(sealer->identity + HD_TLS_IDENTITY_LEN, attr->id, HD_SEAL_ID);
	sealer->records = attr->records ? attr->records : RECORDS;
	sealer->copy = attr->copy;
	ERR_set_mark();
	memcpy(sealer->root, attr->key, sizeof(sealer->root));
	made = hd_tls_derive(sealer, "heddle link", strlen("heddle link"), sealer->key) &&
	       wire_make(sealer) && ctx_make(sealer) &&
	       (sealer->aes = EVP_CIPHER_fetch(sealer->own, "AES-128-GCM", NULL)) != NULL &&
	       (sealer->kdf = EVP_KDF_fetch(sealer->own, "TLS13-KDF", NULL)) != NULL;
	ERR_pop_to_mark();
	if (!made) {
		sealer_close(sealer);
		return -EIO;
	}
	*out = sealer;
	return 0;
}

/* ---- one connection ---- */

static void seal_end(struct hd_seal *s)
{
	if (!s)
		return;
	ERR_set_mark();
	SSL_free(s->ssl);
	hd_tls_way_end(&s->says);
	hd_tls_way_end(&s->hears);
	ERR_pop_to_mark();
	OPENSSL_cleanse(s->secrets, sizeof(s->secrets));
	free(s->out.at);
	free(s->in.at);
	free(s);
}

static struct hd_seal *seal_begin(struct hd_sealer *sealer, int fd, bool calls)
{
	struct hd_seal *s = calloc(1, sizeof(*s));
	BIO *bio = NULL;

	if (!s)
		return NULL;
	s->sealer = sealer;
	s->fd = fd;
	s->calls = calls;
	ERR_set_mark();
	s->ssl = SSL_new(sealer->ctx);
	bio = s->ssl ? BIO_new(sealer->wire) : NULL;
	if (bio) {
		BIO_set_data(bio, s);
		SSL_set_bio(s->ssl, bio, bio);
		SSL_set_app_data(s->ssl, s);
		if (calls) {
			SSL_set_connect_state(s->ssl);
			/*
			 * who shows a certificate instead of the key is nobody: there is
			 * none that we would trust
			 */
			SSL_set_verify(s->ssl, SSL_VERIFY_PEER, NULL);
		} else {
			SSL_set_accept_state(s->ssl);
		}
	}
	ERR_pop_to_mark();
	if (!bio) {
		seal_end(s);
		return NULL;
	}
	return s;
}

/* What a call that has not succeeded means. */
static int seal_failed(const struct hd_seal *s)
{
	if (s->err)
		return s->err;
	if (s->dry)
		return -EAGAIN;
	return s->ended ? -ECONNRESET : -EACCES;
}

/* Both ends have proved themselves: from here on records are ours. 0 or a negative errno. */
static int seal_take_over(struct hd_seal *s)
{
	bool ok = hd_tls_grow(&s->in, HD_TLS_AHEAD) && s->heard_secrets == 3 && !SSL_has_pending(s->ssl) &&
		  hd_tls_way_begin(&s->says, s->sealer, s->secrets[s->calls ? HD_TLS_CALLER : HD_TLS_CALLED],
				   true) &&
		  hd_tls_way_begin(&s->hears, s->sealer, s->secrets[s->calls ? HD_TLS_CALLED : HD_TLS_CALLER],
				   false);

	OPENSSL_cleanse(s->secrets, sizeof(s->secrets));
	SSL_free(s->ssl);
	s->ssl = NULL;
	return ok ? 0 : -EACCES;
}

static int handshake(struct hd_seal *s)
{
	int rc;

	s->drained = s->dry = s->ended = false;
	ERR_set_mark();
	if (SSL_do_handshake(s->ssl) != 1)
		rc = seal_failed(s);
	else if (!SSL_session_reused(s->ssl))
		rc = -EACCES; /* it came about without the key */
	else
		rc = seal_take_over(s);
	ERR_pop_to_mark();
	return rc;
}

static int seal_shake(struct hd_seal *s, bool *writes)
{
	int err = s->ssl ? handshake(s) : 0;

	*writes = false;
	if (hd_tls_flush(s) < 0 && err != -EACCES)
		err = -ECONNRESET;
	if (s->out.head < s->out.tail && (!err || err == -EAGAIN)) {
		*writes = true;
		err = -EAGAIN;
	}
	return err;
}

static bool seal_heard_self(const struct hd_seal *s)
{
	return s->heard_self;
}

__attribute__((visibility("default"))) extern const struct hd_seal_module hd_seal_module;
const struct hd_seal_module hd_seal_module = {
	.version = HD_SEAL_VERSION,
	.open = sealer_open,
	.close = sealer_close,
	.begin = seal_begin,
	.shake = seal_shake,
	.heard_self = seal_heard_self,
	.read = hd_tls_read,
	.write = hd_tls_write,
	.end = seal_end,
	.group = hd_tls_group,
	.wrap = hd_tls_wrap,
	.unwrap = hd_tls_unwrap,
	.group_end = hd_tls_group_end,
};
