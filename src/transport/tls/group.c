/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Datagrams to groups, sealed one by one with AES-128-GCM. Each membership draws a salt, and seals
 * with a key of its own that follows from the key in the file, its node's id and the salt; so the
 * number of the datagram can be the nonce, which no other ever uses with that key. One that has
 * said so much that the key wears out draws another salt. Who receives derives the key of each
 * sender from what the datagram says, and remembers a sender only when a datagram of his has proved
 * to be sealed with it.
 *
 *	 0         4        6        8          24        40           48
 *	| magic   | version| zero   | node id  | salt    | number     | sealed … | tag, 16 |
 *
 * What stands in front is no secret, and is covered by the tag, as the name of the
 * group is, which is not sent.
 */
#include "base/random.h"
#include "base/table.h"
#include "transport/tls/tls.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define MAGIC 0x6c616568u /* "heal" */
#define VERSION 1
#define TAG 16
#define AES_KEY 16
#define WINDOW 1024  /* datagrams of one sender that may come out of order */
#define SENDERS 4096 /* that a membership remembers */

struct wrap_head {
	uint32_t magic;
	uint16_t version;
	uint16_t zero;
	struct wrap_who {
		uint8_t id[HD_SEAL_ID];
		uint8_t salt[16];
	} who;
	uint64_t number; /* from 1; big endian, as it stands in the nonce */
};
static_assert(sizeof(struct wrap_head) == HD_SEAL_HEAD, "what is sealed stands behind the head");
static_assert(sizeof(struct wrap_head) + TAG == HD_SEAL_MORE,
	      "a sealed datagram is longer by its head and tag");

struct sender {
	struct wrap_who who;
	EVP_CIPHER_CTX *ctx; /* has the key */
	uint64_t newest;
	uint64_t seen[WINDOW / 64]; /* bit number % WINDOW, of the WINDOW newest */
	UT_hash_handle hh;	    /* struct hd_seal_group.senders */
	TAILQ_ENTRY(sender) entry;
};

struct hd_seal_group {
	struct hd_sealer *sealer;
	struct wrap_who own;
	EVP_CIPHER_CTX *ctx; /* of ours */
	uint64_t number;
	struct sender *senders;
	TAILQ_HEAD(, sender) by_age; /* the one longest silent first */
	size_t name_len;
	uint8_t name[];
};

/* ---- keys ---- */

static EVP_CIPHER_CTX *wrap_cipher(const struct hd_sealer *sealer, const struct wrap_who *who, bool seals)
{
	static const char purpose[] = "heddle group";
	uint8_t what[sizeof(purpose) - 1 + sizeof(*who)], key[HD_SEAL_KEY];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	memcpy(what, purpose, sizeof(purpose) - 1);
	memcpy(what + sizeof(purpose) - 1, who, sizeof(*who));
	static_assert(AES_KEY <= sizeof(key), "a key is cut off a longer one");
	if (!ctx || !hd_tls_derive(sealer, what, sizeof(what), key) ||
	    !EVP_CipherInit_ex(ctx, sealer->aes, NULL, key, NULL, seals)) {
		EVP_CIPHER_CTX_free(ctx);
		ctx = NULL;
	}
	OPENSSL_cleanse(key, sizeof(key));
	return ctx;
}

/* Begin with this datagram: its nonce, and what the tag covers beside what is sealed. */
static bool wrap_begin(const struct hd_seal_group *g, EVP_CIPHER_CTX *ctx, const struct wrap_head *head)
{
	uint8_t nonce[12] = { 0 };
	int n;

	memcpy(nonce + 4, &head->number, sizeof(head->number));
	return EVP_CipherInit_ex(ctx, NULL, NULL, NULL, nonce, -1) &&
	       EVP_CipherUpdate(ctx, NULL, &n, g->name, (int)g->name_len) &&
	       EVP_CipherUpdate(ctx, NULL, &n, (const uint8_t *)head, sizeof(*head));
}

/* ---- a membership ---- */

/*
 * Another salt, and so another key, before this one has sealed more than RFC
 * 8446, 5.5 allows a link's.
 */
static bool wrap_renew(struct hd_seal_group *g)
{
	struct wrap_who who = g->own;
	EVP_CIPHER_CTX *ctx = NULL;

	if (!hd_random(who.salt, sizeof(who.salt)))
		ctx = wrap_cipher(g->sealer, &who, true);
	if (!ctx)
		return false;
	EVP_CIPHER_CTX_free(g->ctx);
	g->ctx = ctx;
	g->own = who;
	g->number = 0;
	return true;
}

struct hd_seal_group *hd_tls_group(struct hd_sealer *sealer, const void *name, size_t len)
{
	struct hd_seal_group *g = calloc(1, sizeof(*g) + len);
	bool has_key;

	if (!g)
		return NULL;
	TAILQ_INIT(&g->by_age);
	g->sealer = sealer;
	g->name_len = len;
	memcpy(g->name, name, len);
	memcpy(g->own.id, sealer->identity + HD_TLS_IDENTITY_LEN, sizeof(g->own.id));
	ERR_set_mark();
	has_key = wrap_renew(g);
	ERR_pop_to_mark();
	if (has_key)
		return g;
	free(g);
	return NULL;
}

static void sender_free(struct hd_seal_group *g, struct sender *s)
{
	HASH_DEL(g->senders, s);
	TAILQ_REMOVE(&g->by_age, s, entry);
	EVP_CIPHER_CTX_free(s->ctx);
	free(s);
}

void hd_tls_group_end(struct hd_seal_group *g)
{
	if (!g)
		return;
	while (g->senders)
		sender_free(g, TAILQ_FIRST(&g->by_age));
	EVP_CIPHER_CTX_free(g->ctx);
	free(g);
}

/* ---- sealing ---- */

ssize_t hd_tls_wrap(struct hd_seal_group *g, const struct iovec *iov, int count, void *out, size_t room)
{
	struct wrap_head head = { .magic = htole32(MAGIC), .version = htole16(VERSION) };
	uint8_t *at = (uint8_t *)out + sizeof(head);
	size_t len = 0;
	bool ok;
	int n = 0;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	if (len + HD_SEAL_MORE > room)
		return -EMSGSIZE;
	ERR_set_mark();
	ok = g->number < g->sealer->records || wrap_renew(g);
	head.who = g->own;
	head.number = htobe64(++g->number);
	memcpy(out, &head, sizeof(head));
	ok = ok && wrap_begin(g, g->ctx, &head);
	for (int i = 0; i < count && ok; i++, at += n) {
		n = 0;
		ok = !iov[i].iov_len ||
		     EVP_CipherUpdate(g->ctx, at, &n, iov[i].iov_base, (int)iov[i].iov_len);
	}
	ok = ok && EVP_CipherFinal_ex(g->ctx, at, &n) &&
	     EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_GET_TAG, TAG, at);
	ERR_pop_to_mark();
	return ok ? (ssize_t)(len + HD_SEAL_MORE) : -EIO;
}

/* ---- opening ---- */

/* Has it come before, or is it too old to tell? */
static bool is_repeated(const struct sender *s, uint64_t number)
{
	if (number > s->newest)
		return false;
	return s->newest - number >= WINDOW || (s->seen[number % WINDOW / 64] >> number % 64 & 1);
}

static void sender_remember(struct sender *s, uint64_t number)
{
	if (number > s->newest && number - s->newest >= WINDOW)
		memset(s->seen, 0, sizeof(s->seen));
	for (uint64_t n = s->newest + 1; n < number && number - s->newest < WINDOW; n++)
		s->seen[n % WINDOW / 64] &= ~(1ull << n % 64);
	s->seen[number % WINDOW / 64] |= 1ull << number % 64;
	if (number > s->newest)
		s->newest = number;
}

/* Open what is sealed into out, which may be where it stands. */
static bool wrap_open(const struct hd_seal_group *g, EVP_CIPHER_CTX *ctx, const struct wrap_head *head,
		      const uint8_t *sealed, size_t len, uint8_t *out)
{
	uint8_t tag[TAG], last[TAG];
	int n = 0;

	memcpy(tag, sealed + len, TAG);
	return wrap_begin(g, ctx, head) && (!len || EVP_CipherUpdate(ctx, out, &n, sealed, (int)len)) &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, tag) && EVP_CipherFinal_ex(ctx, last, &n);
}

/* He has proved that he has the key. NULL: no memory. */
static struct sender *sender_add(struct hd_seal_group *g, const struct wrap_who *who, EVP_CIPHER_CTX *ctx)
{
	struct sender *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (HASH_COUNT(g->senders) >= SENDERS)
		sender_free(g, TAILQ_FIRST(&g->by_age));
	s->who = *who;
	s->ctx = ctx;
	HASH_ADD(hh, g->senders, who, sizeof(s->who), s);
	if (!hd_is_in_table(&s->hh)) {
		free(s);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&g->by_age, s, entry);
	return s;
}

/* 0, -EACCES or -EALREADY. */
static int unwrap_known(struct hd_seal_group *g, struct sender *s, const struct wrap_head *head,
			const uint8_t *sealed, size_t len, uint8_t *out)
{
	uint64_t number = be64toh(head->number);

	if (is_repeated(s, number))
		return -EALREADY;
	if (!wrap_open(g, s->ctx, head, sealed, len, out))
		return -EACCES;
	sender_remember(s, number);
	TAILQ_REMOVE(&g->by_age, s, entry); /* to the end: others have been silent for longer */
	TAILQ_INSERT_TAIL(&g->by_age, s, entry);
	return 0;
}

static int unwrap_new(struct hd_seal_group *g, const struct wrap_head *head, const uint8_t *sealed,
		      size_t len, uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = wrap_cipher(g->sealer, &head->who, false);
	struct sender *s;

	if (!ctx)
		return -ENOMEM;
	s = wrap_open(g, ctx, head, sealed, len, out) ? sender_add(g, &head->who, ctx) : NULL;
	if (!s) {
		EVP_CIPHER_CTX_free(ctx);
		return -EACCES;
	}
	sender_remember(s, be64toh(head->number));
	return 0;
}

ssize_t hd_tls_unwrap(struct hd_seal_group *g, const void *in, size_t len, void *out, size_t room)
{
	const uint8_t *sealed = (const uint8_t *)in + sizeof(struct wrap_head);
	struct wrap_head head;
	struct sender *s;
	int rc;

	if (len < HD_SEAL_MORE || len - HD_SEAL_MORE > room)
		return -EACCES;
	memcpy(&head, in, sizeof(head));
	if (head.magic != htole32(MAGIC) || head.version != htole16(VERSION) || head.zero || !head.number)
		return -EACCES;
	len -= HD_SEAL_MORE;
	ERR_set_mark();
	HASH_FIND(hh, g->senders, &head.who, sizeof(head.who), s);
	rc = s ? unwrap_known(g, s, &head, sealed, len, out) : unwrap_new(g, &head, sealed, len, out);
	ERR_pop_to_mark();
	return rc ? rc : (ssize_t)len;
}
