/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Records of a connection, once the handshake is over: RFC 8446, 5.2 and 5.3, with keys as 7.2 and
 * 7.3 derive them. AES-GCM and HKDF are OpenSSL's.
 *
 *	 0        1          3           5
 *	| type 23| 03 03    | length    | what is said, its type … sealed | tag, 16 |
 *
 * The nonce is the record's number under its key, which is not sent, so a record that is lost,
 * repeated or moved does not open.
 */
#include "transport/tls/tls.h"

#include <endian.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <string.h>

#define TAG 16
#define OUTER HD_TLS_DATA /* whatever is in it: 5.2 */
#define PADDED 256	  /* what somebody may add to a record: 5.2 */

/* HKDF-Expand-Label with no context: 7.1. */
static bool expand_label(const struct hd_tls_way *w, const char *label, uint8_t *out, size_t len)
{
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(w->sealer->kdf);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)w->secret, sizeof(w->secret)),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)label, strlen(label)),
		OSSL_PARAM_construct_end()
	};
	bool ok = ctx && EVP_KDF_derive(ctx, out, len, params) > 0;

	EVP_KDF_CTX_free(ctx);
	return ok;
}

/* The key that follows from the secret. */
static bool key_set(struct hd_tls_way *w)
{
	uint8_t key[16];
	bool ok = expand_label(w, "key", key, sizeof(key)) && expand_label(w, "iv", w->iv, sizeof(w->iv)) &&
		  EVP_CipherInit_ex(w->aes, w->sealer->aes, NULL, key, NULL, w->seals);

	OPENSSL_cleanse(key, sizeof(key));
	w->number = 0;
	return ok;
}

bool hd_tls_way_begin(struct hd_tls_way *w, const struct hd_sealer *sealer,
		      const uint8_t secret[HD_TLS_SECRET], bool seals)
{
	w->sealer = sealer;
	w->seals = seals;
	w->aes = EVP_CIPHER_CTX_new();
	memcpy(w->secret, secret, sizeof(w->secret));
	return w->aes && key_set(w);
}

bool hd_tls_way_renew(struct hd_tls_way *w)
{
	uint8_t next[HD_TLS_SECRET];
	bool ok = expand_label(w, "traffic upd", next, sizeof(next));

	memcpy(w->secret, next, sizeof(next));
	OPENSSL_cleanse(next, sizeof(next));
	return ok && key_set(w);
}

void hd_tls_way_end(struct hd_tls_way *w)
{
	EVP_CIPHER_CTX_free(w->aes);
	OPENSSL_cleanse(w, sizeof(*w));
}

/* Begin with the next record: its nonce, and what the tag covers beside what is sealed. */
static bool record_begin(struct hd_tls_way *w, const uint8_t head[HD_TLS_HEAD])
{
	uint64_t number = htobe64(w->number++), low;
	uint8_t nonce[sizeof(w->iv)];
	int n;

	memcpy(nonce, w->iv, sizeof(nonce));
	memcpy(&low, nonce + 4, sizeof(low));
	low ^= number;
	memcpy(nonce + 4, &low, sizeof(low));
	return EVP_CipherInit_ex(w->aes, NULL, NULL, NULL, nonce, -1) &&
	       EVP_CipherUpdate(w->aes, NULL, &n, head, HD_TLS_HEAD);
}

bool hd_tls_record_seal(struct hd_tls_way *w, uint8_t *record, size_t len, enum hd_tls_type type)
{
	size_t sealed = len + 1 + TAG;
	const uint8_t head[HD_TLS_HEAD] = { OUTER, 3, 3, (uint8_t)(sealed >> 8), (uint8_t)sealed };
	uint8_t *at = record + HD_TLS_HEAD;
	OSSL_PARAM tag[] = { OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, at + len + 1, TAG),
			     OSSL_PARAM_construct_end() };
	int n;

	memcpy(record, head, sizeof(head));
	at[len] = (uint8_t)type;
	return record_begin(w, head) && EVP_CipherUpdate(w->aes, at, &n, at, (int)len + 1) &&
	       EVP_CipherFinal_ex(w->aes, at + len + 1, &n) && EVP_CIPHER_CTX_get_params(w->aes, tag);
}

ssize_t hd_tls_record_len(const uint8_t *record, size_t there)
{
	size_t len;

	if (there < HD_TLS_HEAD)
		return 0;
	len = (size_t)record[3] << 8 | record[4];
	if (record[0] != OUTER || record[1] != 3 || record[2] != 3 || len < 1 + TAG ||
	    len > HD_TLS_RECORD + PADDED)
		return -EBADMSG;
	return there < HD_TLS_HEAD + len ? 0 : (ssize_t)(HD_TLS_HEAD + len);
}

ssize_t hd_tls_record_open(struct hd_tls_way *w, uint8_t *record, size_t len, uint8_t *type)
{
	uint8_t *at = record + HD_TLS_HEAD;
	size_t plain = len - HD_TLS_HEAD - TAG;
	const OSSL_PARAM tag[] = { OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, at + plain,
								     TAG),
				   OSSL_PARAM_construct_end() };
	int n;

	if (!record_begin(w, record) || !EVP_CipherUpdate(w->aes, at, &n, at, (int)plain) ||
	    !EVP_CIPHER_CTX_set_params(w->aes, tag) || EVP_CipherFinal_ex(w->aes, at + plain, &n) <= 0)
		return -EBADMSG;
	while (plain && !at[plain - 1]) /* what it was padded with */
		plain--;
	if (!plain || plain - 1 > HD_TLS_RECORD)
		return -EBADMSG;
	*type = at[plain - 1];
	return (ssize_t)plain - 1;
}
