/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M20: authorization keys, fi_endpoint(3), fi_domain(3), fi_av(3) and
 * fi_mr(3); FI_AUTH_KEY, fi_msg(3). */
#include "connect.h"
#include "keyed.h"
#include "region.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct region_key { /* struct fi_mr_auth_key */
	struct fid_av *av;
	fi_addr_t src;
};

#define JOB KD_FIRST
#define OTHER KD_SECOND
#define LONG 300000

static enum fi_ep_type type_of(const struct ct *ct)
{
	return ct->cs->arg ? (enum fi_ep_type)ct->cs->arg : FI_EP_RDM;
}

static struct ct_want with(const struct ct *ct, const char *domain, const char *own)
{
	return (struct ct_want){ .type = type_of(ct), .domain_key = domain, .ep_key = own };
}

/* Whatever was posted to the third rank, or by it to the others, comes to nothing
 * but errors at who sent it. */
static void nothing_but_errors(struct ct_ep *e, const void *in, const char *what)
{
	struct ct_comp c;

	ct_idle(e, 50);
	while (ct_poll(e, &c))
		if (!c.err)
			CT_TRUE(e->ct, c.flags & FI_SEND && type_of(e->ct) == FI_EP_DGRAM);
	if (!ct_untouched(in, 64, 0))
		ct_fail(e->ct, "%s", what);
}

/* Two with one key talk, tagged and untagged; the third, with another or none, hears
 * nothing of them nor they of it. */
static void three(struct ct *ct, const struct ct_want *want)
{
	char in[4][64] = { { 0 } }, out[8] = "whisper";
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, want);
	ct_recv(&e, in[0], sizeof(in[0]), CTX(1));
	ct_trecv(&e, in[1], sizeof(in[1]), 0, UINT64_MAX, CTX(2));
	ct_sync(ct, &e);
	for (int to = 0; to < 3; to++)
		if (to != ct->rank && (to == 2 || ct->rank == 2)) {
			ct_send(&e, to, out, sizeof(out), CTX(3));
			ct_tsend(&e, to, out, sizeof(out), 5, CTX(4));
		}
	nothing_but_errors(&e, in[0], "a message with another key was received");
	nothing_but_errors(&e, in[1], "a tagged message with another key was received");
	ct_sync(ct, &e);
	if (ct->rank < 2) {
		ct_send(&e, 1 - ct->rank, out, sizeof(out), CTX(5));
		ct_tsend(&e, 1 - ct->rank, out, sizeof(out), 6, CTX(6));
		CT_EQ(ct, ct_done(&e, CTX(1)), sizeof(out));
		CT_EQ(ct, ct_done(&e, CTX(2)), sizeof(out));
		CT_TRUE(ct, !strcmp(in[0], out) && !strcmp(in[1], out));
	}
	ct_finish(&e);
}

static void equal_keys(struct ct *ct)
{
	const struct ct_want want = with(ct, NULL, ct->rank < 2 ? JOB : OTHER);

	three(ct, &want);
}

static void key_and_none(struct ct *ct)
{
	const struct ct_want want = with(ct, NULL, ct->rank < 2 ? JOB : NULL);

	three(ct, &want);
}

static void none_and_key(struct ct *ct)
{
	const struct ct_want want = with(ct, NULL, ct->rank < 2 ? NULL : JOB);

	three(ct, &want);
}

/* The domain's key is that of an endpoint without one of its own; one of its own counts more. */
static void domain_key(struct ct *ct)
{
	static const char *const domain[] = { JOB, OTHER, JOB }, *const own[] = { NULL, JOB, OTHER };
	const struct ct_want want = with(ct, domain[ct->rank], own[ct->rank]);

	three(ct, &want);
}

/* A key that begins like another is another. */
static void prefix_of_key(struct ct *ct)
{
	const struct ct_want want = with(ct, NULL, ct->rank < 2 ? JOB : JOB "s");

	three(ct, &want);
}

/* Messages of every way to travel, sources included. */
static void long_messages(struct ct *ct)
{
	struct ct_want want = with(ct, NULL, JOB);
	struct ct_dom dom;
	struct ct_ep e;
	struct ct_comp c;
	char *buf;

	want.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	ct_start(ct, &dom, &e, &want);
	buf = ct_alloc(ct, LONG);
	for (size_t len = 1; len <= LONG; len *= 7) {
		if (ct->rank) {
			CT_POST(&e, fi_trecv(e.ep, buf, LONG, NULL, e.addr[0], len, 0, buf));
			ct_of(&e, buf, &c);
			CT_EQ(ct, c.err, 0);
			CT_EQ(ct, c.len, len);
			CT_EQ(ct, c.src, e.addr[0]);
			ct_verify(ct, buf, len, len, "what came");
		} else {
			ct_fill(buf, len, len);
			ct_tsend(&e, 1, buf, len, len, buf);
			ct_done(&e, buf);
		}
	}
	ct_sync(ct, &e);
	free(buf);
	ct_finish(&e);
}

/* ---- one-sided operations -------------------------------------------------------------------- */

static int written(struct ct_ep *e, const struct ct_place *at, void *buf, size_t len)
{
	struct ct_comp c;

	CT_POST(e, fi_write(e->ep, buf, len, NULL, e->addr[1], at->addr, at->key, buf));
	ct_of(e, buf, &c);
	return c.err;
}

static int added(struct ct_ep *e, const struct ct_place *at)
{
	uint64_t one = 1;
	struct ct_comp c;

	CT_POST(e, fi_atomic(e->ep, &one, 1, NULL, e->addr[1], at->addr, at->key, FI_UINT64, FI_SUM, &one));
	ct_of(e, &one, &c);
	return c.err;
}

/* Rank 1 has the memory, rank 0 its key, rank 2 another. */
static void one_sided(struct ct *ct)
{
	struct ct_want want = with(ct, NULL, ct->rank < 2 ? JOB : OTHER);
	uint64_t word = 41;
	struct ct_region r;
	struct ct_place at;
	struct ct_dom dom;
	struct ct_ep e;

	want.caps = FI_MSG | FI_RMA | FI_ATOMIC;
	ct_start(ct, &dom, &e, &want);
	ct_offer(&e, &r, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, &at);
	if (ct->rank == 2) {
		CT_TRUE(ct, written(&e, &at, &word, sizeof(word)));
		CT_TRUE(ct, added(&e, &at));
	}
	ct_sync(ct, &e);
	if (ct->rank == 1)
		CT_TRUE(ct, ct_untouched(r.mem, LONG, 0));
	ct_sync(ct, &e);
	if (ct->rank == 0) {
		char *buf = ct_alloc(ct, LONG);

		CT_EQ(ct, written(&e, &at, buf, LONG), 0);
		CT_EQ(ct, written(&e, &at, &word, sizeof(word)), 0);
		CT_EQ(ct, added(&e, &at), 0);
		free(buf);
	}
	ct_sync(ct, &e);
	if (ct->rank == 1)
		CT_EQ(ct, *(uint64_t *)(void *)r.mem, 42);
	ct_take_back(&e, &r);
}

static struct fid_mr *keyed_region(struct ct_ep *e, void *mem, size_t len, const void *key, size_t size,
				   uint64_t flags, int *rc)
{
	const struct iovec iov = { mem, len };
	const struct fi_mr_attr attr = { .mr_iov = &iov,
					 .iov_count = 1,
					 .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
					 .requested_key = 77,
					 .auth_key = (uint8_t *)(uintptr_t)key,
					 .auth_key_size = size };
	struct fid_mr *mr = NULL;

	*rc = fi_mr_regattr(e->dom->domain, &attr, flags, &mr);
	return mr;
}

/* A region with another key than its endpoint's: nobody who reaches the endpoint
 * has it. One with the same. */
static void region_keys(struct ct *ct)
{
	struct ct_want want = with(ct, NULL, JOB);
	static const char *const key[] = { OTHER, JOB };
	uint64_t mem = 0, word = 8;
	struct ct_place at = { 0 };
	struct ct_dom dom;
	struct ct_ep e;
	int rc;

	want.caps = FI_MSG | FI_RMA;
	ct_start(ct, &dom, &e, &want);
	for (int i = 0; i < 2; i++) {
		struct fid_mr *mr = NULL;

		if (ct->rank) {
			mr = keyed_region(&e, &mem, sizeof(mem), key[i], strlen(key[i]), 0, &rc);
			CT_OK(ct, rc);
			at = ct_region_ready(&e, mr, &mem);
			ct_put(ct, 0, &at, sizeof(at));
		} else {
			ct_get(ct, &e, 1, &at, sizeof(at));
			CT_EQ(ct, !written(&e, &at, &word, sizeof(word)), i);
		}
		ct_sync(ct, &e);
		if (mr) {
			CT_EQ(ct, mem, i ? word : 0);
			CT_OK(ct, fi_close(&mr->fid));
		}
	}
	keyed_region(&e, &mem, sizeof(mem), NULL, 4, 0, &rc);
	CT_REFUSED(ct, rc);
	keyed_region(&e, &mem, sizeof(mem), JOB, strlen(JOB), FI_AUTH_KEY, &rc);
	CT_REFUSED(ct, rc); /* only where keys come from AVs */
	ct_finish(&e);
}

/* ---- keys in an AV --------------------------------------------------------------------------- */

/* An endpoint with the keys from `first` on, of `caps`. Not enabled yet. */
static void open_keyed(struct ct *ct, struct keyed *s, uint64_t caps, int first)
{
	const struct ct_want want = { .caps = caps, .type = type_of(ct) };

	kd_open(ct, s, &want, first);
}

static void say(struct keyed *s, int rank, int key, uint64_t tag)
{
	CT_POST(&s->e, fi_tsend(s->e.ep, &tag, sizeof(tag), NULL, s->to[rank][key], tag, NULL));
	CT_EQ(s->e.ct, ct_done(&s->e, NULL) * 0, 0);
}

/* An address says which key is used; the completion says which was; a receive may ask for one
 * address, or for one key. */
static void two_keys(struct ct *ct)
{
	uint64_t in[6] = { 0 };
	struct keyed s;

	open_keyed(ct, &s, KD_DIRECTED, 0);
	kd_meet(ct, &s, 0);
	if (ct->rank == 1) {
		CT_POST(&s.e, kd_trecv(&s.e, &in[0], 8, s.key[1], 0, UINT64_MAX, FI_COMPLETION));
		CT_POST(&s.e, fi_trecv(s.e.ep, &in[1], 8, NULL, s.to[0][0], 0, UINT64_MAX, &in[1]));
		CT_POST(&s.e, kd_trecv(&s.e, &in[2], 8, FI_ADDR_UNSPEC, 3, 0, FI_COMPLETION));
		ct_sync(ct, &s.e);
		kd_got(ct, &s.e, &in[1], 1, s.to[0][0]);
		kd_got(ct, &s.e, &in[0], 2, s.to[0][1]);
		kd_got(ct, &s.e, &in[2], 3, s.to[0][0]);
		ct_sync(ct, &s.e); /* the rest waits */
		ct_idle(&s.e, 50);
		CT_POST(&s.e, kd_trecv(&s.e, &in[3], 8, s.key[1], 0, UINT64_MAX, FI_COMPLETION));
		kd_got(ct, &s.e, &in[3], 5, s.to[0][1]);
		CT_POST(&s.e, kd_trecv(&s.e, &in[4], 8, s.key[1], 4, 0, FI_PEEK | FI_COMPLETION));
		{
			struct ct_comp c;

			ct_of(&s.e, &in[4], &c);
			CT_EQ(ct, c.err, FI_ENOMSG);
		}
		CT_POST(&s.e, kd_trecv(&s.e, &in[4], 8, s.key[0], 4, 0, FI_PEEK | FI_COMPLETION));
		ct_done(&s.e, &in[4]);
		CT_POST(&s.e, kd_trecv(&s.e, &in[5], 8, s.key[0], 4, 0, FI_COMPLETION));
		kd_got(ct, &s.e, &in[5], 4, s.to[0][0]);
	} else {
		ct_sync(ct, &s.e);
		say(&s, 1, 0, 1);
		say(&s, 1, 1, 2);
		say(&s, 1, 0, 3);
		ct_sync(ct, &s.e);
		say(&s, 1, 0, 4);
		say(&s, 1, 1, 5);
	}
	ct_finish(&s.e);
}

/* The same, untagged, into buffers that take many. */
static void multi_by_key(struct ct *ct)
{
	char in[KD_KEYS][4096] = { { 0 } };
	struct keyed s;

	open_keyed(ct, &s, FI_MSG | FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV, 0);
	kd_meet(ct, &s, 0);
	for (int i = 0; i < KD_KEYS && ct->rank; i++) {
		struct iovec iov = { in[i], sizeof(in[i]) };
		struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = s.key[i], .context = in[i] };

		CT_POST(&s.e, fi_recvmsg(s.e.ep, &m, FI_AUTH_KEY | FI_MULTI_RECV | FI_COMPLETION));
	}
	ct_sync(ct, &s.e);
	for (int n = 0; n < 6; n++) {
		struct ct_comp c;

		if (!ct->rank) {
			CT_POST(&s.e, fi_send(s.e.ep, kd_keys[n % 2], 4, NULL, s.to[1][n % 2], NULL));
			ct_done(&s.e, NULL);
			continue;
		}
		ct_of(&s.e, in[n % 2], &c);
		CT_EQ(ct, c.err, 0);
		CT_EQ(ct, c.src, s.to[0][n % 2]);
		CT_TRUE(ct, !memcmp(c.buf, kd_keys[n % 2], 4));
	}
	ct_finish(&s.e);
}

/* Ranks 0 and 1 have both keys, rank 2 has the second alone; one of its domain's, the plain way. */
static void one_in_common(struct ct *ct)
{
	uint64_t in[2] = { 0 };
	struct ct_comp c;
	struct keyed s;

	open_keyed(ct, &s, KD_DIRECTED, ct->rank == 2);
	kd_meet(ct, &s, ct->rank == 2);
	for (int i = 0; i < 2; i++)
		ct_trecv(&s.e, &in[i], 8, 0, UINT64_MAX, &in[i]);
	ct_sync(ct, &s.e);
	if (ct->rank == 0) { /* the others have no receive for it but from here */
		say(&s, 1, 0, 1);
		say(&s, 2, 1, 2);
		CT_POST(&s.e, fi_tsend(s.e.ep, in, 8, NULL, s.to[2][0], 3, CTX(9)));
		ct_of(&s.e, CTX(9), &c);
		CT_TRUE(ct, c.err); /* rank 2 has not that one */
	} else {
		kd_got(ct, &s.e, &in[0], (uint64_t)ct->rank, s.to[0][ct->rank - 1]);
	}
	ct_sync(ct, &s.e);
	ct_quiet(&s.e, 50, "nothing came with a key that is not ours");
	ct_finish(&s.e);
}

/* An endpoint with keys from its AV, and one that has one of them by itself. */
static void av_and_own(struct ct *ct)
{
	const struct ct_want want = with(ct, NULL, OTHER);
	uint64_t in = 0, out = 6;
	struct ct_dom dom;
	struct ct_ep e, *at = &e;
	struct keyed s;

	if (ct->rank) {
		ct_start(ct, &dom, &e, &want);
	} else {
		open_keyed(ct, &s, FI_MSG | FI_TAGGED, 0);
		kd_meet(ct, &s, 0);
		s.e.addr[1] = s.to[1][1];
		at = &s.e;
	}
	ct_trecv(at, &in, 8, 6, 0, &in);
	ct_tsend(at, 1 - ct->rank, &out, 8, 6, &out);
	ct_done(at, &out);
	ct_done(at, &in);
	CT_EQ(ct, in, 6);
	ct_finish(at);
}

/* Regions for all keys of the AV, for one of them, for one address. */
static void region_from_av(struct ct *ct)
{
	/* src, flags; then who reaches it: each key of rank 0 */
	static const bool reached[4][KD_KEYS] = {
		{ true, true }, { false, true }, { true, false }, { true, true }
	};
	uint64_t mem = 0, word = 8;
	struct keyed s;
	int rc;

	open_keyed(ct, &s, FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV, 0);
	kd_meet(ct, &s, 0);
	for (int i = 0; i < 4; i++) {
		const fi_addr_t src[] = { FI_ADDR_UNSPEC, s.key[1], s.to[0][0], 0 };
		struct region_key key = { s.e.av, src[i] };
		struct ct_place at = { 0 };
		struct fid_mr *mr = NULL;

		if (ct->rank) {
			mr = keyed_region(&s.e, &mem, 8, i < 3 ? &key : NULL, i < 3 ? sizeof(key) : 0,
					  i == 1 ? FI_AUTH_KEY : 0, &rc);
			CT_OK(ct, rc);
			at = ct_region_ready(&s.e, mr, &mem);
			ct_put(ct, 0, &at, sizeof(at));
		} else {
			ct_get(ct, &s.e, 1, &at, sizeof(at));
			for (int k = 0; k < KD_KEYS; k++) {
				s.e.addr[1] = s.to[1][k];
				CT_EQ(ct, !written(&s.e, &at, &word, 8), reached[i][k]);
				CT_EQ(ct, !added(&s.e, &at), reached[i][k]);
			}
		}
		ct_sync(ct, &s.e);
		if (mr)
			CT_OK(ct, fi_close(&mr->fid));
	}
	keyed_region(&s.e, &mem, 8, &s.key[0], 3, 0, &rc);
	CT_REFUSED(ct, rc);
	keyed_region(&s.e, &mem, 8, &(struct region_key){ s.e.av, 12345 }, sizeof(struct region_key), 0, &rc);
	CT_REFUSED(ct, rc);
	ct_finish(&s.e);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void lookups(struct ct *ct, struct keyed *s, fi_addr_t addr, const char *wanted)
{
	char key[64] = { 0 };
	size_t size = sizeof(key);

	CT_OK(ct, kd_ops(ct, s->e.av)->lookup_key(s->e.av, addr, key, &size));
	CT_EQ(ct, size, strlen(wanted));
	CT_TRUE(ct, !strcmp(key, wanted));
	memset(key, 0, sizeof(key));
	size = 3; /* cut, and told how long it is */
	CT_OK(ct, kd_ops(ct, s->e.av)->lookup_key(s->e.av, addr, key, &size));
	CT_EQ(ct, size, strlen(wanted));
	CT_TRUE(ct, !memcmp(key, wanted, 3) && !key[3]);
}

static void in_the_av(struct ct *ct)
{
	char name[CT_NAME];
	fi_addr_t addr, late;
	uint64_t word = 1;
	struct keyed s;

	open_keyed(ct, &s, KD_DIRECTED, 0);
	CT_REFUSED(ct, kd_ops(ct, s.e.av)->insert_key(s.e.av, JOB, 0, &addr, 0));
	CT_REFUSED(ct, kd_ops(ct, s.e.av)->insert_key(s.e.av, NULL, 4, &addr, 0));
	CT_REFUSED(ct, kd_ops(ct, s.e.av)->insert_key(s.e.av, JOB, 4, &addr, FI_MORE));
	addr = kd_insert_key(ct, s.e.av, "to go");
	CT_REFUSED(ct, fi_av_remove(s.e.av, &addr, 1, 0)); /* it is no address of an endpoint */
	CT_OK(ct, fi_av_remove(s.e.av, &addr, 1, FI_AUTH_KEY));
	CT_REFUSED(ct, fi_av_remove(s.e.av, &addr, 1, FI_AUTH_KEY));
	ct_ep_enable(&s.e);
	memcpy(name, s.e.name, sizeof(name));
	CT_EQ(ct, fi_av_remove(s.e.av, &s.key[0], 1, FI_AUTH_KEY), -FI_EBUSY);
	s.to[0][1] = kd_insert(ct, s.e.av, name, s.key[1]);
	lookups(ct, &s, s.key[0], kd_keys[0]);
	lookups(ct, &s, s.to[0][1], kd_keys[1]);
	addr = 12345;
	CT_TRUE(ct, fi_av_insert(s.e.av, name, 1, &addr, FI_AUTH_KEY, NULL) != 1);
	CT_TRUE(ct, fi_av_insert(s.e.av, name, 1, &addr, 0, NULL) != 1);
	/* a key that comes later is not the endpoint's */
	late = kd_insert_key(ct, s.e.av, kd_keys[2]);
	addr = kd_insert(ct, s.e.av, name, late);
	CT_REFUSED(ct, fi_tsend(s.e.ep, &word, 8, NULL, addr, 1, NULL));
	CT_REFUSED(ct, kd_trecv(&s.e, &word, 8, late, 1, 0, 0));
	CT_OK(ct, fi_av_remove(s.e.av, &late, 1, FI_AUTH_KEY));
	lookups(ct, &s, addr, kd_keys[2]); /* for as long as an address has it */
	CT_REFUSED(ct, kd_trecv(&s.e, &word, 8, s.to[0][1], 1, 0, 0));
	CT_REFUSED(ct, fi_trecv(s.e.ep, &word, 8, NULL, s.key[1], 1, 0, NULL));
	CT_REFUSED(ct, fi_tsend(s.e.ep, &word, 8, NULL, s.key[1], 1, NULL));
	ct_quiet(&s.e, 20, "nothing was posted");
	CT_OK(ct, fi_close(&s.e.ep->fid));
	CT_OK(ct, fi_av_remove(s.e.av, s.key, KD_KEYS, FI_AUTH_KEY));
	kd_close(ct, &s);
}

/* Only a domain with FI_AV_AUTH_KEY, and an endpoint with FI_DIRECTED_RECV, has receives by key. */
static void flag_refused(struct ct *ct)
{
	const struct ct_want want = { .caps = KD_DIRECTED, .type = type_of(ct), .ep_key = JOB };
	uint64_t word = 0;
	struct ct_dom dom;
	struct ct_ep e;
	struct keyed s;

	ct_start(ct, &dom, &e, &want);
	CT_REFUSED(ct, kd_trecv(&e, &word, 8, FI_ADDR_UNSPEC, 1, 0, 0));
	if (e.av->ops->size >= sizeof(struct kd_av_ops))
		CT_REFUSED(ct, kd_ops(ct, e.av)->insert_key(e.av, JOB, 3, e.addr, 0));
	ct_finish(&e);
	open_keyed(ct, &s, FI_MSG | FI_TAGGED, 0);
	ct_ep_enable(&s.e);
	CT_REFUSED(ct, kd_trecv(&s.e, &word, 8, s.key[0], 1, 0, 0));
	CT_REFUSED(ct, kd_trecv(&s.e, &word, 8, FI_ADDR_UNSPEC, 1, 0, 0));
	ct_quiet(&s.e, 20, "nothing was posted");
	ct_finish(&s.e);
}

static void refuses(struct ct *ct, const struct ct_want *want, void (*change)(struct fi_info *))
{
	struct fi_info *hints = ct_hints(ct, want), *info;

	change(hints);
	CT_REFUSED(ct, ct_getinfo(ct, hints, &info));
	fi_freeinfo(hints);
}

static void size_alone(struct fi_info *h)
{
	h->ep_attr->auth_key_size = 8;
}

static void size_of_domain(struct fi_info *h)
{
	h->domain_attr->auth_key_size = 8;
}

static void key_beside(struct fi_info *h)
{
	h->ep_attr->auth_key = (uint8_t *)strdup(JOB);
	h->ep_attr->auth_key_size = strlen(JOB);
	h->domain_attr->auth_key_size = KD_FROM_AV;
}

static void connected(struct fi_info *h)
{
	h->ep_attr->type = FI_EP_MSG;
	h->domain_attr->auth_key_size = KD_FROM_AV;
}

static void hints_refused(struct ct *ct)
{
	const struct ct_want want = with(ct, NULL, JOB), none = with(ct, NULL, NULL);
	struct fi_info *info, *hints = ct_hints(ct, &want);
	int rc = ct_getinfo(ct, hints, &info);

	fi_freeinfo(hints);
	if (rc)
		ct_unsupported(ct, "no authorization keys: %s", fi_strerror(-rc));
	CT_EQ(ct, info->ep_attr->auth_key_size, strlen(JOB));
	CT_TRUE(ct, !memcmp(info->ep_attr->auth_key, JOB, strlen(JOB)));
	fi_freeinfo(info);
	refuses(ct, &none, size_alone);
	refuses(ct, &none, size_of_domain);
	refuses(ct, &none, key_beside);
	refuses(ct, &none, connected);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void connection(struct ct *ct)
{
	const struct ct_want want = { .type = FI_EP_MSG, .ep_key = JOB };
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, 1 - ct->rank);
	ct_finish(&e);
}

/* Who has another key, or none, does not get the connection; the caller
 * learns that there is none. */
static void connection_refused(struct ct *ct)
{
	static const char *const pairs[][2] = { { JOB, OTHER }, { JOB, NULL }, { NULL, JOB } };
	const struct ct_want want = { .type = FI_EP_MSG,
				      .ep_key = pairs[ct->cs->arg][ct->rank],
				      .disabled = true };
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_cm_entry entry;
	double end = ct_deadline(ct);
	struct ct_dom dom;
	struct ct_ep e;
	uint32_t event;
	ssize_t rc;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	CT_OK(ct, fi_enable(e.ep));
	if (ct->rank) {
		CT_OK(ct, fi_connect(e.ep, e.peer, NULL, 0));
		while ((rc = fi_eq_read(e.eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN) {
			ct_late(ct, end, "an answer");
			ct_pause();
		}
		CT_EQ(ct, rc, -FI_EAVAIL);
		CT_TRUE(ct, fi_eq_readerr(e.eq, &err, 0) > 0);
		CT_TRUE(ct, err.err && err.fid == &e.ep->fid);
	} else {
		CT_REFUSED(ct, fi_accept(e.ep, NULL, 0));
		CT_OK(ct, fi_close(&e.pep->fid)); /* which says no to who waits for an answer */
		e.pep = NULL;
	}
	ct_finish(&e);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Rank 0 says something to a group: rank 1 has its key, rank 2 another. */
static void group(struct ct *ct)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ct_port(0)) };
	struct ct_want want = with(ct, NULL, ct->rank < 2 ? JOB : OTHER);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct iovec iov = { "psst", 4 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .context = CTX(3) };
	struct fid_mc *mc;
	struct ct_dom dom;
	char in[64] = { 0 };
	struct fid_eq *eq;
	struct ct_ep e;

	want.caps = FI_MSG | FI_MULTICAST;
	want.disabled = true;
	ct_open(ct, &dom, &want);
	if (dom.info->addr_format != FI_SOCKADDR_IN)
		ct_unsupported(ct, "names are not IPv4 addresses");
	ct_ep_open(&dom, &e);
	CT_OK(ct, fi_eq_open(dom.fabric, &attr, &eq, NULL));
	CT_OK(ct, fi_ep_bind(e.ep, &eq->fid, 0));
	ct_ep_enable(&e);
	inet_pton(AF_INET, "239.255.77.68", &to.sin_addr);
	CT_OK(ct, fi_join(e.ep, &to, 0, &mc, NULL));
	ct_recv(&e, in, sizeof(in), CTX(2));
	ct_sync(ct, &e);
	m.addr = fi_mc_addr(mc);
	if (!ct->rank) {
		CT_POST(&e, fi_sendmsg(e.ep, &m, FI_MULTICAST | FI_COMPLETION));
		ct_done(&e, CTX(3));
	}
	if (ct->rank < 2)
		CT_EQ(ct, ct_done(&e, CTX(2)), 4);
	ct_sync(ct, &e);
	ct_quiet(&e, 50, "nobody else heard it");
	CT_OK(ct, fi_close(&mc->fid));
	CT_OK(ct, fi_close(&e.ep->fid));
	CT_OK(ct, fi_close(&eq->fid));
	CT_OK(ct, fi_close(&e.txcq->fid));
	CT_OK(ct, fi_close(&e.av->fid));
	ct_close(&dom);
	free(e.stash);
}

const struct ct_case ct_auth[] = {
	{ "M20", "auth-equal", CT_THREE(equal_keys) },
	{ "M20", "auth-equal-dgram", CT_THREE(equal_keys), .arg = FI_EP_DGRAM },
	{ "M20", "auth-key-and-none", CT_THREE(key_and_none) },
	{ "M20", "auth-key-and-none-dgram", CT_THREE(key_and_none), .arg = FI_EP_DGRAM },
	{ "M20", "auth-none-and-key", CT_THREE(none_and_key) },
	{ "M20", "auth-domain", CT_THREE(domain_key) },
	{ "M20", "auth-domain-dgram", CT_THREE(domain_key), .arg = FI_EP_DGRAM },
	{ "M20", "auth-longer", CT_THREE(prefix_of_key) },
	{ "M20", "auth-sizes", CT_TWO(long_messages) },
	{ "M20", "auth-one-sided", CT_THREE(one_sided) },
	{ "M20", "auth-regions", CT_TWO(region_keys) },
	{ "M20", "auth-two-keys", CT_TWO(two_keys) },
	{ "M20", "auth-two-keys-multi-recv", CT_TWO(multi_by_key) },
	{ "M20", "auth-one-in-common", CT_THREE(one_in_common) },
	{ "M20", "auth-av-and-own", CT_TWO(av_and_own) },
	{ "M20", "auth-regions-from-av", CT_TWO(region_from_av) },
	{ "M20", "auth-in-the-av", { in_the_av } },
	{ "M20", "auth-flag-refused", CT_TWO(flag_refused) },
	{ "M20", "auth-hints", { hints_refused } },
	{ "M20", "auth-connection", CT_TWO(connection) },
	{ "M20", "auth-connection-other", CT_TWO(connection_refused), .arg = 0 },
	{ "M20", "auth-connection-none", CT_TWO(connection_refused), .arg = 1 },
	{ "M20", "auth-connection-one", CT_TWO(connection_refused), .arg = 2 },
	{ "M20", "auth-group", CT_THREE(group) },
	{ 0 },
};
