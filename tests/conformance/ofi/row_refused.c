/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * M22, fi_msg(3) and fi_tagged(3): flags that a call does not have, segments that cannot be,
 * and nothing left behind.
 */
#include "ct.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void no_message(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, NULL);
	if (!ct->rank) {
		CT_EQ(ct, fi_sendmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_recvmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_tsendmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_trecvmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_trecvmsg(e.ep, NULL, FI_PEEK), -FI_EINVAL);
	}
	ct_finish_quiet(&e);
}

/* What the pages list for these calls; capabilities that were not asked for have no flags. */
#define ANY_FLAGS (FI_COMPLETION | FI_MORE)
#define SEND_FLAGS \
	(ANY_FLAGS | FI_REMOTE_CQ_DATA | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define RECV_FLAGS (ANY_FLAGS | FI_TRANSMIT_COMPLETE)
#define LOOKS (FI_PEEK | FI_CLAIM | FI_DISCARD)

static uint64_t flags_of(const struct ct_dom *dom, bool sends, bool tagged)
{
	uint64_t caps = dom->info->caps & (FI_TRIGGER | (sends ? FI_FENCE : 0));

	if (sends)
		return SEND_FLAGS | caps | (tagged ? 0 : dom->info->caps & FI_MULTICAST);
	return RECV_FLAGS | caps | (tagged ? LOOKS : dom->info->caps & FI_MULTI_RECV);
}

/* Every bit that is no flag of the call, alone and beside one that is. */
static void flag_bits(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = "";

	ct_start_up(ct, &dom, &e, NULL);
	for (unsigned i = 0; !ct->rank && i < 64 * 4; i++) {
		bool sends = i & 1, tagged = i & 2;
		struct ct_one o = { .buf = buf,
				    .len = 8,
				    .ctx = CTX(1),
				    .flags = UINT64_C(1) << i / 4,
				    .tagged = tagged,
				    .tag = 6,
				    .to = 1 };

		if (o.flags & flags_of(&dom, sends, tagged))
			continue;
		for (int k = 0; k < 2; k++, o.flags |= FI_COMPLETION) {
			ssize_t rc = sends ? ct_send_one(&e, &o) : ct_recv_one(&e, &o);

			if (rc >= 0 || rc == -FI_EAGAIN)
				ct_fail(ct, "%s %s with flags 0x%llx: %zd", tagged ? "tagged" : "untagged",
					sends ? "send" : "receive", (unsigned long long)o.flags, rc);
		}
	}
	ct_finish_quiet(&e);
}

/* A buffer for many is one segment of an untagged receive. */
static void multi_segments(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_MULTI_RECV | (ct->conf->caps & FI_TAGGED) };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[64];
	struct iovec iov[2] = { { buf, 32 }, { buf + 32, 32 } };
	struct fi_msg m = { .msg_iov = iov, .addr = FI_ADDR_UNSPEC, .context = CTX(1) };

	ct_start_up(ct, &dom, &e, &want);
	if (!ct->rank) {
		m.iov_count = 2;
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
		m.iov_count = 0;
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
		iov[0].iov_base = NULL;
		m.iov_count = 1;
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
	}
	ct_finish_quiet(&e);
}

/* Segments that add up to more than there can be: too long as a message, and no buffer either. */
static void sums(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = "";
	struct iovec iov[2] = { { buf, SIZE_MAX - 3 }, { buf, 12 } };
	struct fi_msg m = { .msg_iov = iov, .iov_count = 2, .context = CTX(1) };
	struct fi_msg_tagged t = { .msg_iov = iov, .iov_count = 2, .tag = 6, .context = CTX(1) };

	ct_start_up(ct, &dom, &e, NULL);
	if (dom.info->tx_attr->iov_limit < 2 || dom.info->rx_attr->iov_limit < 2)
		ct_unsupported(ct, "iov_limit is 1");
	if (!ct->rank) {
		m.addr = t.addr = e.addr[1];
		CT_REFUSED(ct, fi_sendv(e.ep, iov, NULL, 2, e.addr[1], CTX(1)));
		CT_REFUSED(ct, fi_tsendv(e.ep, iov, NULL, 2, e.addr[1], 6, CTX(1)));
		CT_REFUSED(ct, fi_sendmsg(e.ep, &m, 0));
		CT_REFUSED(ct, fi_tsendmsg(e.ep, &t, 0));
		CT_REFUSED(ct, fi_sendmsg(e.ep, &m, FI_INJECT));
		m.addr = t.addr = FI_ADDR_UNSPEC;
		CT_REFUSED(ct, fi_recvv(e.ep, iov, NULL, 2, FI_ADDR_UNSPEC, CTX(1)));
		CT_REFUSED(ct, fi_trecvv(e.ep, iov, NULL, 2, FI_ADDR_UNSPEC, 6, 0, CTX(1)));
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, 0));
		CT_REFUSED(ct, fi_trecvmsg(e.ep, &t, 0));
	}
	ct_finish_quiet(&e);
}

/*
 * A length over max_msg_size by every call, also in segments, also with the flag
 * that has a limit of its own.
 */
static void too_long(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t max;
	char buf[8] = "";
	struct iovec iov[2] = { { buf, 1 }, { buf, 0 } };
	struct ct_one o = { .buf = buf, .ctx = CTX(1), .tag = 6, .to = 1 };

	ct_start_up(ct, &dom, &e, NULL);
	max = dom.info->ep_attr->max_msg_size;
	if (max == SIZE_MAX || dom.info->tx_attr->iov_limit < 2)
		ct_unsupported(ct, "max_msg_size is SIZE_MAX, or iov_limit 1");
	iov[1].iov_len = max;
	for (o.tagged = false; !ct->rank; o.tagged = true) {
		o.len = max + 1;
		o.flags = 0;
		CT_EQ(ct, ct_send_one(&e, &o), -FI_EMSGSIZE);
		o.flags = FI_INJECT;
		CT_EQ(ct, ct_send_one(&e, &o), -FI_EMSGSIZE);
		if (o.tagged)
			break;
	}
	if (!ct->rank) {
		CT_EQ(ct, fi_sendv(e.ep, iov, NULL, 2, e.addr[1], CTX(1)), -FI_EMSGSIZE);
		CT_EQ(ct, fi_tsendv(e.ep, iov, NULL, 2, e.addr[1], 6, CTX(1)), -FI_EMSGSIZE);
		CT_EQ(ct, fi_tsenddata(e.ep, buf, max + 1, NULL, 1, e.addr[1], 6, CTX(1)), -FI_EMSGSIZE);
		CT_EQ(ct, fi_inject(e.ep, buf, max + 1, e.addr[1]), -FI_EMSGSIZE);
	}
	ct_finish_quiet(&e);
}

/* ---- calls that an endpoint cannot make ------------------------------------------------------ */

enum {
	CALL_MSG = 1,
	CALL_TAGGED = 2,
	CALL_SEND = 4,
	CALL_RECV = 8
};

/*
 * Call n of 18: those of fi_msg(3), then those of fi_tagged(3), receives first.
 * What it is: the bits above.
 */
static unsigned kind_of(unsigned n)
{
	return (n < 9 ? CALL_MSG : CALL_TAGGED) | (n % 9 < 3 ? CALL_RECV : CALL_SEND);
}

static ssize_t call_untagged(struct ct_ep *e, unsigned n, void *buf, size_t len, fi_addr_t addr)
{
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = addr, .context = CTX(1) };

	switch (n) {
	case 0:
		return fi_recv(e->ep, buf, len, NULL, addr, CTX(1));
	case 1:
		return fi_recvv(e->ep, &iov, NULL, 1, addr, CTX(1));
	case 2:
		return fi_recvmsg(e->ep, &m, 0);
	case 3:
		return fi_send(e->ep, buf, len, NULL, addr, CTX(1));
	case 4:
		return fi_sendv(e->ep, &iov, NULL, 1, addr, CTX(1));
	case 5:
		return fi_sendmsg(e->ep, &m, 0);
	case 6:
		return fi_inject(e->ep, buf, len, addr);
	case 7:
		return fi_senddata(e->ep, buf, len, NULL, 1, addr, CTX(1));
	default:
		return fi_injectdata(e->ep, buf, len, 1, addr);
	}
}

static ssize_t call_tagged(struct ct_ep *e, unsigned n, void *buf, size_t len, fi_addr_t addr)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged t = {
		.msg_iov = &iov, .iov_count = 1, .addr = addr, .tag = 6, .context = CTX(1)
	};

	switch (n) {
	case 0:
		return fi_trecv(e->ep, buf, len, NULL, addr, 6, 0, CTX(1));
	case 1:
		return fi_trecvv(e->ep, &iov, NULL, 1, addr, 6, 0, CTX(1));
	case 2:
		return fi_trecvmsg(e->ep, &t, 0);
	case 3:
		return fi_tsend(e->ep, buf, len, NULL, addr, 6, CTX(1));
	case 4:
		return fi_tsendv(e->ep, &iov, NULL, 1, addr, 6, CTX(1));
	case 5:
		return fi_tsendmsg(e->ep, &t, 0);
	case 6:
		return fi_tinject(e->ep, buf, len, addr, 6);
	case 7:
		return fi_tsenddata(e->ep, buf, len, NULL, 1, addr, 6, CTX(1));
	default:
		return fi_tinjectdata(e->ep, buf, len, 1, addr, 6);
	}
}

/* Every call of these kinds, to be refused. */
static void all_refused(struct ct_ep *e, unsigned kinds, fi_addr_t addr, const char *why)
{
	char buf[8] = "";

	for (unsigned n = 0; n < 18; n++) {
		ssize_t rc;

		if (!(kind_of(n) & kinds))
			continue;
		rc = (n < 9 ? call_untagged : call_tagged)(e, n % 9, buf, 8, addr);
		if (rc >= 0 || rc == -FI_EAGAIN)
			ct_fail(e->ct, "call %u, %s: %zd", n, why, rc);
	}
}

/* Before fi_enable none of them works, and none is there afterwards. */
static void before_enable(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	all_refused(&e, CALL_MSG | CALL_TAGGED, 0, "before fi_enable");
	ct_ep_enable(&e);
	ct_join(&e);
	ct_finish_quiet(&e);
}

static const uint64_t lacking[] = { FI_MSG | FI_TAGGED | FI_SEND, FI_MSG | FI_TAGGED | FI_RECV, FI_MSG,
				    FI_TAGGED };
static const unsigned lacks[] = { CALL_RECV, CALL_SEND, CALL_TAGGED, CALL_MSG };

/* An endpoint without a capability has none of its calls. arg: which one */
static void without(struct ct *ct)
{
	struct ct_want want = { .caps = lacking[ct->cs->arg] };
	uint64_t absent = (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV) & ~want.caps;
	struct ct_dom dom;
	struct ct_ep e;

	if (ct->cs->arg > 1)
		absent &= FI_MSG | FI_TAGGED;
	ct_start(ct, &dom, &e, &want);
	if (dom.info->caps & absent)
		ct_unsupported(ct, "the provider offers what was not asked for");
	all_refused(&e, lacks[ct->cs->arg], e.addr[!ct->rank], "without the capability");
	ct_quiet(&e, 30, "refused calls");
	ct_finish(&e);
}

/* Addresses that are none, by every call that sends. */
static void nowhere(struct ct *ct)
{
	static const fi_addr_t wrong[] = { FI_ADDR_UNSPEC, 77, UINT64_C(1) << 60 };
	struct ct_want want = { .av_type = FI_AV_TABLE };
	struct ct_dom dom;
	struct ct_ep e;

	ct_start_up(ct, &dom, &e, &want);
	for (size_t i = 0; !ct->rank && i < CT_COUNT(wrong); i++)
		all_refused(&e, CALL_SEND, wrong[i], "to an address that is none");
	ct_finish_quiet(&e);
}

/* ---- what the log says of it ----------------------------------------------------------------- */

static void refuse_some(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	struct fi_cq_attr attr = { .flags = 1, .format = FI_CQ_FORMAT_CONTEXT };
	struct fid_cq *cq;

	CT_EQ(ct, fi_sendmsg(e->ep, NULL, 0), -FI_EINVAL);
	CT_EQ(ct, fi_send(e->ep, NULL, 8, NULL, e->addr[1], CTX(1)), -FI_EINVAL);
	CT_EQ(ct, fi_send(e->ep, e, SIZE_MAX / 2, NULL, e->addr[1], CTX(1)), -FI_EMSGSIZE);
	CT_EQ(ct, fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
	CT_EQ(ct, fi_cq_open(e->dom->domain, &attr, &cq, NULL), -FI_EBADFLAGS);
}

/* Peer providers are not offered, which fi_peer(3) has as an invalid argument. */
static void refuse_peers(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	struct fi_cq_attr cq = { .flags = FI_PEER };
	struct fi_eq_attr eq = { .flags = FI_PEER };
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP, .flags = FI_PEER };
	struct fid_domain *no_domain;
	struct fid_cntr *no_cntr;
	struct fid_cq *no_cq;
	struct fid_eq *no_eq;

	CT_EQ(ct, fi_cq_open(e->dom->domain, &cq, &no_cq, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_eq_open(e->dom->fabric, &eq, &no_eq, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_cntr_open(e->dom->domain, &cntr, &no_cntr, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_domain2(e->dom->fabric, e->dom->info, &no_domain, FI_PEER, NULL), -FI_EINVAL);
}

/* Of what is opened before data is sent. */
static void refuse_set_up(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	struct fi_av_attr av = { .type = 77 };
	struct fi_eq_attr eq = { .flags = FI_RECV };
	struct fi_poll_attr poll = { .flags = 1 };
	struct fi_tx_attr tx = { .caps = FI_RECV };
	struct fi_atomic_attr atomic;
	struct fid_av *no_av;
	struct fid_eq *no_eq;
	struct fid_poll *no_poll;
	struct fid_stx *no_stx;
	struct fid_pep *no_pep;

	CT_EQ(ct, fi_av_open(e->dom->domain, &av, &no_av, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_eq_open(e->dom->fabric, &eq, &no_eq, NULL), -FI_EBADFLAGS);
	CT_EQ(ct, fi_poll_open(e->dom->domain, &poll, &no_poll), -FI_EBADFLAGS);
	CT_EQ(ct, fi_stx_context(e->dom->domain, &tx, &no_stx, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_passive_ep(e->dom->fabric, NULL, &no_pep, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_query_atomic(e->dom->domain, FI_INT8, FI_SUM, &atomic, FI_TAGGED), -FI_EOPNOTSUPP);
	CT_EQ(ct, fi_control(&e->dom->domain->fid, FI_QUEUE_WORK, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, 7777, &av, sizeof(av)), -FI_ENOPROTOOPT);
	CT_EQ(ct, fi_setname(&e->ep->fid, e->name, e->namelen), -FI_EOPBADSTATE);
	CT_EQ(ct, fi_close(&e->dom->domain->fid), -FI_EBUSY);
}

static void refuse_key_and_hints(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	struct fi_info *hints = fi_dupinfo(e->dom->info), *info;
	struct fid_mr *mr, *no_mr;

	CT_OK(ct, fi_mr_reg(e->dom->domain, e, 8, FI_REMOTE_READ, 0, 77, 0, &mr, NULL));
	CT_EQ(ct, fi_mr_reg(e->dom->domain, e, 8, FI_REMOTE_READ, 0, 77, 0, &no_mr, NULL), -FI_ENOKEY);
	CT_OK(ct, fi_close(&mr->fid));
	hints->tx_attr->inject_size = SIZE_MAX;
	CT_EQ(ct, fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* Each has a line, in words that its programmer understands. */
static void told_why(struct ct *ct)
{
	static const char *const words[] = {
		"fi_sendmsg without a message",
		"a send of bytes from NULL",
		"a message longer than max_msg_size",
		"fi_ep_bind after fi_enable",
		"fi_cq_open with flags that it does not take",
		"fi_av_open with a type that there is not",
		"fi_eq_open with flags that it does not take",
		"fi_poll_open takes no flags",
		"fi_stx_context with capabilities that there are not",
		"fi_passive_ep without room for it, or with an info",
		"fi_query_atomic with FI_TAGGED",
		"FI_QUEUE_WORK without work",
		"fi_setopt of an option that there is not",
		"fi_setname after fi_enable",
		"fi_close of a domain in which something is open",
		"the region's key is taken",
		"hints ask for what is not offered: inject_size",
	};
	char log[16384] = "";
	struct ct_dom dom;
	struct ct_ep e;
	int mine, file;

	if (strcmp(ct->conf->provider, "heddle"))
		ct_unsupported(ct, "the words are Heddle's");
	ct_start_up(ct, &dom, &e, NULL);
	mine = dup(STDERR_FILENO);
	file = memfd_create("log", 0);
	CT_TRUE(ct, mine >= 0 && file >= 0);
	dup2(file, STDERR_FILENO);
	if (!ct->rank) {
		refuse_some(&e);
		refuse_peers(&e);
		refuse_set_up(&e);
		refuse_key_and_hints(&e);
	}
	dup2(mine, STDERR_FILENO);
	CT_TRUE(ct, pread(file, log, sizeof(log) - 1, 0) >= 0);
	for (size_t i = 0; !ct->rank && i < CT_COUNT(words); i++)
		if (!strstr(log, words[i]))
			ct_fail(ct, "nothing is said of «%s»", words[i]);
	close(mine);
	close(file);
	ct_finish_quiet(&e);
}

const struct ct_case ct_refused[] = {
	{ "M22", "no-message", CT_TWO(no_message) },
	{ "M22", "flag-bits", CT_TWO(flag_bits) },
	{ "M22", "multi-recv-segments", CT_TWO(multi_segments) },
	{ "M22", "segments-overflow", CT_TWO(sums) },
	{ "M22", "too-long", CT_TWO(too_long) },
	{ "M22", "every-call-before-enable", CT_TWO(before_enable) },
	{ "M22", "every-call-send-only", CT_TWO(without), .arg = 0 },
	{ "M22", "every-call-receive-only", CT_TWO(without), .arg = 1 },
	{ "M22", "every-call-untagged-only", CT_TWO(without), .arg = 2 },
	{ "M22", "every-call-tagged-only", CT_TWO(without), .arg = 3 },
	{ "M22", "every-call-nowhere", CT_TWO(nowhere) },
	{ "M22", "refused-says-why", CT_TWO(told_why), .setting = "HEDDLE_LOG=debug" },
	{ 0 },
};
