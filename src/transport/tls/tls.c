/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Connections sealed by TLS 1.3 with one key that both ends have (RFC 8446, 2.2: PSK with a Diffie-Hellman exchange, so that who learns the key
 * later reads nothing of before). There are no certificates, no tickets, no early data and no other version or cipher to be talked into. The
 * keys for a link and for anything else come from the one in the file by HMAC (RFC 9257, 6: a key is for one purpose).
 *
 * Everything is sealed into a buffer of ours, which one call gives to the socket: records are of 16 KiB, and a system call for each would cost as
 * much as sealing it. OpenSSL reads ahead, likewise. It has a context of its own here, so that no configuration of the program's changes what
 * is spoken, and errors of ours never stand in the thread's queue of the program's (ERR_set_mark(3)).
 */
#include "transport/tls/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RECORD_MAX (16u << 10) /* of plain bytes: RFC 8446, 5.1 */
#define OUT_WORTH (256u << 10) /* sealed bytes that are worth a system call of their own */
#define OUT_KEEP (32u << 10)   /* an idle connection keeps no more */
#define AHEAD (256u << 10)     /* sealed bytes that are read at once */
#define RECORDS (1ull << 23)   /* of one key; half of what RFC 8446, 5.5 allows for AES-GCM */

#define IDENTITY "heddle 1 "
#define IDENTITY_LEN (sizeof(IDENTITY) - 1)

struct hd_sealer {
	bool (*readable)(const void *from, size_t n);
	bool (*writable)(void *to, size_t n);
	int (*copy)(void *to, const void *from, size_t n);
	OSSL_LIB_CTX *own;
	SSL_CTX *ctx;
	BIO_METHOD *wire;
	EVP_CIPHER *aes;
	uint8_t root[HD_SEAL_KEY];		     /* what stands in the file */
	uint8_t key[HD_SEAL_KEY];		     /* of links */
	uint8_t identity[IDENTITY_LEN + HD_SEAL_ID]; /* that we call with */
	uint64_t records;
};

struct hd_seal {
	struct hd_sealer *sealer;
	SSL *ssl;
	int fd;
	bool drained;	 /* of this call: the socket has given less than it was asked for */
	bool dry, ended; /* of the last read: the socket had no more; will never have */
	bool heard_self;
	int err; /* of the socket, negative errno */
	uint64_t records;
	uint8_t *out;
	size_t head, tail, cap;
	uint8_t stage[RECORD_MAX]; /* small pieces become one record */
};

/* ---- the socket, as OpenSSL sees it ---- */

static int wire_read(BIO *bio, char *buf, size_t len, size_t *got)
{
	struct hd_seal *s = BIO_get_data(bio);
	ssize_t r;

	BIO_clear_retry_flags(bio);
	if (s->drained) {
		s->dry = true;
		BIO_set_retry_read(bio);
		return 0;
	}
	do {
		r = recv(s->fd, buf, len, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r > 0) {
		s->drained = (size_t)r < len; /* if more has come since, the next call takes it */
		*got = (size_t)r;
		return 1;
	}
	if (r == 0) {
		s->ended = true;
	} else if (errno == EAGAIN) {
		s->dry = true;
		BIO_set_retry_read(bio);
	} else {
		s->err = -errno;
	}
	return 0;
}

static bool out_grow(struct hd_seal *s, size_t len)
{
	size_t cap = s->cap ? s->cap : OUT_KEEP;
	uint8_t *more;

	while (cap < s->tail + len)
		cap *= 2;
	if (cap == s->cap)
		return true;
	more = realloc(s->out, cap);
	if (!more)
		return false;
	s->out = more;
	s->cap = cap;
	return true;
}

static int wire_write(BIO *bio, const char *buf, size_t len, size_t *put)
{
	struct hd_seal *s = BIO_get_data(bio);

	if (!out_grow(s, len)) {
		s->err = -ENOMEM;
		return 0;
	}
	memcpy(s->out + s->tail, buf, len);
	s->tail += len;
	*put = len;
	return 1;
}

static long wire_ctrl(BIO *bio, int what, long num, void *ptr)
{
	return what == BIO_CTRL_FLUSH; /* out_flush sees to that */
}

static int wire_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

/* Give the socket what is sealed. 0 or a negative errno; what it does not take stays. */
static int out_flush(struct hd_seal *s)
{
	ssize_t r;

	while (s->head < s->tail) {
		r = send(s->fd, s->out + s->head, s->tail - s->head, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (r > 0)
			s->head += (size_t)r;
		else if (r < 0 && errno != EINTR)
			return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0 : -errno;
	}
	s->head = s->tail = 0;
	if (s->cap > OUT_WORTH + 2 * RECORD_MAX) {
		free(s->out);
		s->out = NULL;
		s->cap = 0;
	}
	return 0;
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
	if (len != sizeof(s->sealer->identity) || memcmp(id, IDENTITY, IDENTITY_LEN) != 0)
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

const uint8_t *hd_tls_id(const struct hd_sealer *sealer)
{
	return sealer->identity + IDENTITY_LEN;
}

const EVP_CIPHER *hd_tls_aes(const struct hd_sealer *sealer)
{
	return sealer->aes;
}

/* ---- what a node has ---- */

static void sealer_close(struct hd_sealer *sealer)
{
	if (!sealer)
		return;
	ERR_set_mark();
	SSL_CTX_free(sealer->ctx);
	EVP_CIPHER_free(sealer->aes);
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
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, AHEAD);
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
	memcpy(sealer->identity, IDENTITY, IDENTITY_LEN);
	memcpy(sealer->identity + IDENTITY_LEN, attr->id, HD_SEAL_ID);
	sealer->records = attr->records ? attr->records : RECORDS;
	sealer->readable = attr->readable;
	sealer->writable = attr->writable;
	sealer->copy = attr->copy;
	ERR_set_mark();
	memcpy(sealer->root, attr->key, sizeof(sealer->root));
	made = hd_tls_derive(sealer, "heddle link", strlen("heddle link"), sealer->key) &&
	       wire_make(sealer) && ctx_make(sealer) &&
	       (sealer->aes = EVP_CIPHER_fetch(sealer->own, "AES-128-GCM", NULL)) != NULL;
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
	ERR_pop_to_mark();
	free(s->out);
	OPENSSL_cleanse(s->stage, sizeof(s->stage));
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
	ERR_set_mark();
	s->ssl = SSL_new(sealer->ctx);
	bio = s->ssl ? BIO_new(sealer->wire) : NULL;
	if (bio) {
		BIO_set_data(bio, s);
		SSL_set_bio(s->ssl, bio, bio);
		SSL_set_app_data(s->ssl, s);
		if (calls) {
			SSL_set_connect_state(s->ssl);
			/* who shows a certificate instead of the key is nobody: there is none that we would trust */
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

static int seal_shake(struct hd_seal *s, bool *writes)
{
	int rc, err;

	s->drained = s->dry = s->ended = false;
	*writes = false;
	ERR_set_mark();
	rc = SSL_do_handshake(s->ssl);
	ERR_pop_to_mark();
	err = rc == 1 ? 0 : seal_failed(s);
	if (!err && !SSL_session_reused(s->ssl))
		err = -EACCES; /* it came about without the key */
	if (out_flush(s) < 0 && err != -EACCES)
		err = -ECONNRESET;
	if (s->head < s->tail && (!err || err == -EAGAIN)) {
		*writes = true;
		err = -EAGAIN;
	}
	return err;
}

static bool seal_heard_self(const struct hd_seal *s)
{
	return s->heard_self;
}

/* At most a record at a time: OpenSSL does not survive that memory is gone, so it is looked whether it is there. */
static int record_read(struct hd_seal *s, void *to, size_t room, size_t *part, bool *gone)
{
	room = room < RECORD_MAX ? room : RECORD_MAX;
	if (!s->sealer->writable(to, room)) {
		*gone = true;
		to = s->stage;
	}
	return SSL_read_ex(s->ssl, to, room, part);
}

/* Is nothing left, neither in the socket, as far as is known, nor of what has been read ahead? Asking OpenSSL for a record costs more. */
static bool is_drained(const struct hd_seal *s)
{
	return s->drained && !SSL_has_pending(s->ssl);
}

static ssize_t seal_read(struct hd_seal *s, const struct iovec *iov, int count, bool *gone)
{
	size_t all = 0, part = 0;
	int ok = 1;

	s->drained = s->dry = s->ended = false;
	ERR_set_mark();
	for (int i = 0; i < count && ok; i++)
		for (size_t at = 0; at < iov[i].iov_len && ok; at += ok ? part : 0) {
			ok = record_read(s, (char *)iov[i].iov_base + at, iov[i].iov_len - at, &part, gone);
			all += ok ? part : 0;
			if (ok && is_drained(s))
				goto out;
		}
out:
	ERR_pop_to_mark();
	if (all || ok)
		return (ssize_t)all; /* what is wrong will be so the next time */
	return s->ended && !s->err ? 0 : seal_failed(s) == -EACCES ? -EBADMSG : seal_failed(s);
}

/* Seal one record. */
static bool record_write(struct hd_seal *s, const void *buf, size_t len)
{
	size_t part;

	if (++s->records >= s->sealer->records) {
		s->records = 0;
		if (!SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
			return false;
	}
	return SSL_write_ex(s->ssl, buf, len, &part) && part == len;
}

/* Where the next bytes are: segment i, from `at` on. */
struct cursor {
	const struct iovec *iov;
	int count, i;
	size_t at;
	bool gone; /* they are not there */
};

static const void *cursor_take(struct hd_seal *s, struct cursor *c, size_t *len)
{
	size_t n = 0, part;

	if (c->i < c->count && c->iov[c->i].iov_len - c->at >= RECORD_MAX) {
		const char *from = (const char *)c->iov[c->i].iov_base + c->at;

		c->gone = !s->sealer->readable(from, RECORD_MAX);
		*len = 0;
		if (c->gone)
			return NULL;
		c->at += RECORD_MAX;
		*len = RECORD_MAX;
		return from;
	}
	while (c->i < c->count && n < RECORD_MAX) {
		part = c->iov[c->i].iov_len - c->at;
		part = part < RECORD_MAX - n ? part : RECORD_MAX - n;
		if (part &&
		    s->sealer->copy(s->stage + n, (const char *)c->iov[c->i].iov_base + c->at, part)) {
			c->gone = true;
			break; /* what stands before it goes first */
		}
		n += part;
		c->at += part;
		if (c->at == c->iov[c->i].iov_len) {
			c->i++;
			c->at = 0;
		}
	}
	*len = n;
	return s->stage;
}

static ssize_t seal_write(struct hd_seal *s, const struct iovec *iov, int count, size_t *left)
{
	struct cursor c = { .iov = iov, .count = count };
	size_t all = 0, len;
	const void *from;
	bool ok = true;
	int err = 0;

	if (s->head < s->tail)
		err = out_flush(s);
	ERR_set_mark();
	while (ok && !err && s->tail == 0) {
		while (ok && s->tail < OUT_WORTH) {
			from = cursor_take(s, &c, &len);
			if (!len)
				break;
			ok = record_write(s, from, len);
			all += len;
		}
		if (!s->tail)
			break;
		err = out_flush(s);
	}
	ERR_pop_to_mark();
	*left = s->tail - s->head;
	if (!ok)
		return s->err ? s->err : -EIO;
	if (c.gone && !all && !err)
		return -EFAULT;
	return err ? err : (ssize_t)all;
}

__attribute__((visibility("default"))) extern const struct hd_seal_module hd_seal_module;
const struct hd_seal_module hd_seal_module = {
	.version = HD_SEAL_VERSION,
	.open = sealer_open,
	.close = sealer_close,
	.begin = seal_begin,
	.shake = seal_shake,
	.heard_self = seal_heard_self,
	.read = seal_read,
	.write = seal_write,
	.end = seal_end,
	.group = hd_tls_group,
	.wrap = hd_tls_wrap,
	.unwrap = hd_tls_unwrap,
	.group_end = hd_tls_group_end,
};
