/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * T11: mem_tag_format, fi_endpoint(3): which bits a tag has, and which of them masks treat as one;
 * prefixes, fi_getinfo(3), and authorization keys, fi_msg(3), where messages are looked at, claimed
 * and dropped by their tags.
 */
#include "keyed.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x5a5a3c3cf00f9669)
#define FIELDS 64

/*
 * The fields of a format, from the top: groups of bits that are all 1 or all 0, behind the
 * zeros that it begins with.
 */
static size_t fields_of(uint64_t format, uint64_t mask[FIELDS])
{
	uint64_t bit = UINT64_C(1) << 63;
	size_t n = 0;

	while (bit && !(format & bit))
		bit >>= 1;
	for (uint64_t last = bit; bit; bit >>= 1) {
		if (last == bit || !(format & last) != !(format & bit))
			mask[n++] = 0;
		mask[n - 1] |= bit;
		last = bit;
	}
	return n;
}

static int fewer(const void *a, const void *b)
{
	return *(const int *)b - *(const int *)a;
}

/* How many bits the fields have, the largest first. */
static size_t sizes_of(uint64_t format, int size[FIELDS])
{
	uint64_t mask[FIELDS];
	size_t n = fields_of(format, mask);

	for (size_t i = 0; i < n; i++)
		size[i] = __builtin_popcountll(mask[i]);
	qsort(size, n, sizeof(*size), fewer);
	return n;
}

/* The domain whose endpoints have the format asked for; 0: none is. */
static void open_format(struct ct *ct, struct ct_dom *dom, uint64_t format)
{
	static const struct ct_want usual = { .caps = FI_MSG | FI_TAGGED };
	struct fi_info *h = ct_hints(ct, &usual);
	int rc;

	memset(dom, 0, sizeof(*dom));
	dom->ct = ct;
	dom->want = usual;
	h->ep_attr->mem_tag_format = format;
	rc = ct_getinfo(ct, h, &dom->info);
	fi_freeinfo(h);
	if (rc)
		ct_unsupported(ct, "tag format %#llx: %s", (unsigned long long)format, fi_strerror(-rc));
	CT_OK(ct, fi_fabric(dom->info->fabric_attr, &dom->fabric, NULL));
	CT_OK(ct, fi_domain(dom->fabric, dom->info, &dom->domain, NULL));
}

static void is_as_asked(struct ct *ct, uint64_t asked, uint64_t answer)
{
	int want[FIELDS], have[FIELDS];
	size_t n = sizes_of(asked, want), m = sizes_of(answer, have);

	if (m < n)
		ct_fail(ct, "%#llx has %zu fields, asked for were %zu", (unsigned long long)answer, m, n);
	for (size_t i = 0; i < n; i++)
		if (have[i] < want[i])
			ct_fail(ct, "%#llx has no field of %d bits", (unsigned long long)answer, want[i]);
}

/*
 * Field by field: of two receives that ignore it, the message that differs there and in another
 * field misses the first and gets the second; the one that differs there alone gets the first.
 * Without a second field there is only that one.
 */
static void match_by_fields(struct ct_ep *e, uint64_t format)
{
	uint64_t mask[FIELDS], in[2];
	size_t n = fields_of(format, mask);
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++)
		all |= mask[i];
	for (size_t i = 0; i < n; i++) {
		const uint64_t other = n > 1 ? mask[(i + 1) % n] : 0, tag = BASE & all;
		uint64_t out[2] = { tag ^ mask[i] ^ other, tag ^ mask[i] };
		size_t first = other ? 0 : 1;

		if (e->ct->rank) {
			ct_trecv(e, &in[1], 8, tag, mask[i], CTX(1));
			if (other)
				ct_trecv(e, &in[0], 8, tag ^ other, mask[i], CTX(2));
		}
		for (size_t k = first; k < 2; k++) {
			if (e->ct->rank) {
				ct_done(e, CTX(2 - k));
				CT_EQ(e->ct, in[k], out[k]);
			} else {
				ct_tsend(e, 1, &out[k], 8, out[k], CTX(3));
				ct_done(e, CTX(3));
			}
		}
	}
}

/*
 * arg: the format of the hints; 0: the provider's own, which may leave bits out, and then says so.
 */
static void formats(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	uint64_t format;

	open_format(ct, &dom, (uint64_t)ct->cs->arg);
	format = dom.info->ep_attr->mem_tag_format;
	CT_TRUE(ct, format);
	is_as_asked(ct, (uint64_t)ct->cs->arg, format);
	ct_ep_open(&dom, &e);
	ct_join(&e);
	match_by_fields(&e, format);
	ct_quiet(&e, 20, "each message had its receive");
	ct_finish(&e);
}

/* ---- prefixes -------------------------------------------------------------------------------- */

#define LEN 1000
#define BEHIND(p) ((p) + LEN)

/* One call that looks at, claims or drops tag `tag`; its completion. */
static void look(struct ct_ep *e, void *buf, size_t len, uint64_t tag, void *ctx, uint64_t flags,
		 struct ct_comp *c)
{
	struct ct_one o = { .buf = buf, .len = len, .ctx = ctx, .flags = flags, .tagged = true, .tag = tag };
	double end = ct_deadline(e->ct);

	do { /* peek tells of what has arrived */
		CT_POST(e, ct_recv_one(e, &o));
		ct_of(e, ctx, c);
		ct_late(e->ct, end, "a message that was sent");
	} while (flags & FI_PEEK && c->err == FI_ENOMSG);
	CT_EQ(e->ct, c->err, 0);
}

/*
 * All lengths have the prefix in them, those of looking too, and it is never
 * written over by a message.
 */
static void prefix_looks(struct ct_ep *e, size_t p)
{
	char *buf = ct_alloc(e->ct, BEHIND(p));
	struct fi_context2 context = { 0 };
	struct ct_comp c;

	memset(buf, 0x44, BEHIND(p));
	look(e, buf, BEHIND(p), 1, &context, FI_PEEK, &c);
	CT_EQ(e->ct, c.len, BEHIND(p));
	CT_TRUE(e->ct, !c.buf || c.buf == buf);
	if (c.buf)
		ct_verify(e->ct, buf + p, LEN, 1, "looked at");
	look(e, buf, p, 1, &context, FI_PEEK | FI_CLAIM, &c);
	CT_EQ(e->ct, c.len, BEHIND(p));
	memset(buf, 0x44, BEHIND(p));
	look(e, buf, BEHIND(p), 1, &context, FI_CLAIM | FI_COMPLETION, &c);
	CT_EQ(e->ct, c.len, BEHIND(p));
	ct_verify(e->ct, buf + p, LEN, 1, "claimed");
	look(e, buf, p, 2, &context, FI_PEEK | FI_DISCARD, &c);
	CT_EQ(e->ct, c.len, p); /* it has no bytes */
	look(e, buf, p, 3, &context, FI_PEEK, &c);
	CT_EQ(e->ct, c.len, BEHIND(p));
	ct_trecv(e, buf, BEHIND(p), 2, 1, &context); /* 3 matches: 2 is no more */
	ct_of(e, &context, &c);
	CT_EQ(e->ct, c.tag, 3);
	ct_verify(e->ct, buf + p, LEN, 3, "what was left");
	free(buf);
}

/* arg: FI_EP_RDM */
static void prefixed(struct ct *ct)
{
	struct ct_want want = { .type = FI_EP_RDM, .caps = FI_MSG | FI_TAGGED, .mode = FI_MSG_PREFIX };
	struct ct_dom dom;
	struct ct_ep e;
	char *buf;
	size_t p;

	ct_start(ct, &dom, &e, &want);
	p = dom.info->ep_attr->msg_prefix_size;
	buf = ct_alloc(ct, BEHIND(p));
	for (uint64_t tag = 1; !ct->rank && tag <= 3; tag++) {
		ct_fill(buf + p, LEN, tag);
		ct_tsend(&e, 1, buf, tag == 2 ? p : BEHIND(p), tag, CTX(9));
		ct_done(&e, CTX(9));
	}
	if (ct->rank)
		prefix_looks(&e, p);
	free(buf);
	ct_finish(&e);
}

/* ---- authorization keys ---------------------------------------------------------------------- */

static void key_look(struct keyed *s, int key, uint64_t *word, uint64_t tag, uint64_t ignore, uint64_t flags,
		     struct ct_comp *c)
{
	struct ct *ct = s->e.ct;
	double end = ct_deadline(ct);

	do {
		CT_POST(&s->e, kd_trecv(&s->e, word, 8, s->key[key], tag, ignore, flags));
		ct_of(&s->e, word, c);
		ct_late(ct, end, "a message with a key");
	} while (flags & FI_PEEK && c->err == FI_ENOMSG);
	CT_EQ(ct, c->err, 0);
}

/*
 * Messages of both keys with tags that overlap: each key has an order of its own, and looking,
 * claiming and dropping keep to it.
 */
static void keyed_by_tag(struct ct *ct)
{
	const struct ct_want want = { .type = FI_EP_RDM, .caps = KD_DIRECTED };
	uint64_t room[8] = { 0 }, *word = room; /* a struct fi_context2, too */
	struct ct_comp c;
	struct keyed s;

	kd_open(ct, &s, &want, 0);
	kd_meet(ct, &s, 0);
	for (uint64_t tag = 0x10; !ct->rank && tag < 0x18; tag++)
		kd_say(&s.e, s.to[1][tag & 1], tag);
	if (ct->rank) {
		key_look(&s, 1, word, 0x17, 0, FI_PEEK, &c); /* all of them are here */
		key_look(&s, 1, word, 0x10, 0xf, FI_PEEK, &c);
		CT_EQ(ct, c.tag, 0x11);
		key_look(&s, 1, word, 0x10, 0xf, FI_PEEK | FI_DISCARD, &c);
		CT_EQ(ct, c.tag, 0x11);
		key_look(&s, 1, word, 0x10, 0xf, FI_PEEK | FI_CLAIM, &c);
		CT_EQ(ct, c.tag, 0x13);
		key_look(&s, 1, word, 0, 0, FI_CLAIM | FI_COMPLETION, &c);
		CT_EQ(ct, c.tag, 0x13);
		for (uint64_t tag = 0x10; tag < 0x18; tag++) {
			if (tag == 0x11 || tag == 0x13)
				continue;
			key_look(&s, tag & 1, word, 0x10, 0xf, FI_COMPLETION, &c);
			CT_EQ(ct, c.tag, tag);
			CT_EQ(ct, *word, tag);
			CT_EQ(ct, c.src, s.to[0][tag & 1]);
		}
	}
	ct_finish(&s.e);
}

const struct ct_case ct_format[] = {
	{ "T11", "format-of-the-provider", CT_TWO(formats) },
	{ "T11", "format-of-one-field", CT_TWO(formats), .arg = UINT64_MAX },
	{ "T11", "format-of-bits", CT_TWO(formats), .arg = 0xaaaaaaaaaaaaaaaa },
	{ "T11", "format-of-three-fields", CT_TWO(formats), .arg = 0x30ff },
	{ "T11", "format-of-two-halves", CT_TWO(formats), .arg = 0xffffffff00000000 },
	{ "T11", "format-of-a-byte-and-more", CT_TWO(formats), .arg = 0x00ff00ffffff0000 },
	{ "T11", "prefix-looked-at", CT_TWO(prefixed) },
	{ "T11", "auth-by-tag", CT_TWO(keyed_by_tag) },
	{ 0 },
};
