/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What the files of the module share: tls.c the key and the handshake, stream.c what a connection
 * says then, record.c each record, group.c datagrams.
 */
#ifndef HD_TLS_TLS_H
#define HD_TLS_TLS_H

#include "base/seal.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <stddef.h>

#define HD_TLS_IDENTITY "heddle 1 " /* and the node's id: what a caller says it is */
#define HD_TLS_IDENTITY_LEN (sizeof(HD_TLS_IDENTITY) - 1)

struct hd_sealer {
	int (*copy)(void *to, const void *from, size_t n);
	OSSL_LIB_CTX *own;
	SSL_CTX *ctx;
	BIO_METHOD *wire;
	EVP_CIPHER *aes;
	EVP_KDF *kdf;
	uint8_t root[HD_SEAL_KEY];			    /* what stands in the file */
	uint8_t key[HD_SEAL_KEY];			    /* of links */
	uint8_t identity[HD_TLS_IDENTITY_LEN + HD_SEAL_ID]; /* that we call with */
	uint64_t records;
};

/*
 * hd_tls_derive: a key for one purpose, from the one in the file: HMAC-SHA256 of these
 * bytes. False: OpenSSL fails.
 */
bool hd_tls_derive(const struct hd_sealer *sealer, const void *what, size_t len, uint8_t out[HD_SEAL_KEY]);

#define HD_TLS_RECORD (16u << 10)      /* plain bytes at most: RFC 8446, 5.1 */
#define HD_TLS_HEAD 5		       /* bytes of a record in front of them */
#define HD_TLS_MORE (HD_TLS_HEAD + 17) /* that it is longer than they are */
#define HD_TLS_SECRET 32

enum hd_tls_type {
	HD_TLS_ALERT = 21,
	HD_TLS_HANDSHAKE = 22,
	HD_TLS_DATA = 23,
};

/* One direction of a connection, after the handshake. */
struct hd_tls_way {
	const struct hd_sealer *sealer;
	EVP_CIPHER_CTX *aes; /* has the key */
	uint64_t number;     /* of the next record under this key */
	bool seals;
	uint8_t iv[12];
	uint8_t secret[HD_TLS_SECRET];
};

/*
 * hd_tls_way_begin: from the secret that the handshake gives for this direction. hd_tls_way_renew:
 * the next key, as a KeyUpdate announces it. False: OpenSSL fails, and the connection with it.
 * hd_tls_way_end: always, and forgets the keys.
 */
bool hd_tls_way_begin(struct hd_tls_way *w, const struct hd_sealer *sealer,
		      const uint8_t secret[HD_TLS_SECRET], bool seals);
bool hd_tls_way_renew(struct hd_tls_way *w);
void hd_tls_way_end(struct hd_tls_way *w);

/*
 * hd_tls_record_seal: in place: `len` bytes stand HD_TLS_HEAD behind `record`, which has room for
 * HD_TLS_MORE more. hd_tls_record_len: how long the record is of which so many bytes are there; 0:
 * it is not there whole; -EBADMSG: it is none. hd_tls_record_open: in place as well: how long what
 * was said is; -EBADMSG: it was not said by who has the key, or not now.
 */
bool hd_tls_record_seal(struct hd_tls_way *w, uint8_t *record, size_t len, enum hd_tls_type type);
ssize_t hd_tls_record_len(const uint8_t *record, size_t there);
ssize_t hd_tls_record_open(struct hd_tls_way *w, uint8_t *record, size_t len, uint8_t *type);

/* ---- one connection ---- */

/* Bytes from head to tail wait: sealed ones for the socket, or read ones for their record's end. */
struct hd_tls_buffer {
	uint8_t *at;
	size_t head, tail, cap;
};

/* Whose words a secret is of. */
enum hd_tls_side {
	HD_TLS_CALLER,
	HD_TLS_CALLED,
};

struct hd_seal {
	struct hd_sealer *sealer;
	SSL *ssl; /* NULL: the handshake is over */
	int fd;
	bool calls;
	bool drained;	 /* of this call: the socket has given less than it was asked for */
	bool dry, ended; /* of the last read: the socket had no more; will never have */
	bool heard_self;
	int err; /* of the socket, or of what was read: negative errno */
	unsigned heard_secrets;
	unsigned shaken; /* bytes of the handshake that have come */
	unsigned work;	 /* of this call of hd_tls_read: records, and what keys cost beside them */
	unsigned idle;	 /* records since the last one that said something */
	uint8_t secrets[2][HD_TLS_SECRET]; /* until the handshake is over */
	struct hd_tls_way says, hears;
	bool renew; /* the other end wants our next key */
	struct hd_tls_buffer out, in;
	uint8_t *plain; /* what the last record said, in `in`; so many bytes of it are left */
	size_t plain_len;
};

/*
 * hd_tls_grow: room for `cap` bytes in all; false: no memory. hd_tls_recv: recv(2): bytes, or 0,
 * and what that means stands in the seal. hd_tls_flush: give the socket what is sealed: 0 or a
 * negative errno; what it does not take stays.
 */
/* sealed bytes that are read at once, by who hears little; longer than a record */
#define HD_TLS_AHEAD (32u << 10)
bool hd_tls_grow(struct hd_tls_buffer *b, size_t cap);
size_t hd_tls_recv(struct hd_seal *s, void *to, size_t len);
int hd_tls_flush(struct hd_seal *s);

/* stream.c: members of struct hd_seal_module. */
ssize_t hd_tls_read(struct hd_seal *s, const struct iovec *iov, int count, bool *gone, bool *more);
ssize_t hd_tls_write(struct hd_seal *s, const struct iovec *iov, int count, size_t *left);

/* group.c: members of struct hd_seal_module. */
struct hd_seal_group *hd_tls_group(struct hd_sealer *sealer, const void *name, size_t len);
ssize_t hd_tls_wrap(struct hd_seal_group *g, const struct iovec *iov, int count, void *out, size_t room);
ssize_t hd_tls_unwrap(struct hd_seal_group *g, const void *in, size_t len, void *out, size_t room);
void hd_tls_group_end(struct hd_seal_group *g);

#endif
