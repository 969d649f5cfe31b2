/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* M22, fi_msg(3) and fi_tagged(3): flags that a call does not have, segments that cannot be, and nothing left behind. */
#include "ct.h"

#include <stdlib.h>
#include <string.h>

/* Everything after the connection is up: before that -FI_EAGAIN may be the answer to anything. */
static void begin(struct ct *ct, struct ct_dom *dom, struct ct_ep *e)
{
	ct_start(ct, dom, e, NULL);
	ct_ping(e, !ct->rank);
}

static void end(struct ct_ep *e)
{
	ct_sync(e->ct, e);
	ct_ping(e, !e->ct->rank);
	ct_quiet(e, 30, "refused calls");
	ct_finish(e);
}

static void no_message(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;

	begin(ct, &dom, &e);
	if (!ct->rank) {
		CT_EQ(ct, fi_sendmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_recvmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_tsendmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_trecvmsg(e.ep, NULL, 0), -FI_EINVAL);
		CT_EQ(ct, fi_trecvmsg(e.ep, NULL, FI_PEEK), -FI_EINVAL);
	}
	end(&e);
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

	begin(ct, &dom, &e);
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
	end(&e);
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

	ct_start(ct, &dom, &e, &want);
	ct_ping(&e, !ct->rank);
	if (!ct->rank) {
		m.iov_count = 2;
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
		m.iov_count = 0;
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
		iov[0].iov_base = NULL;
		m.iov_count = 1;
		CT_REFUSED(ct, fi_recvmsg(e.ep, &m, FI_MULTI_RECV));
	}
	end(&e);
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

	begin(ct, &dom, &e);
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
	end(&e);
}

/* A length over max_msg_size by every call, also in segments, also with the flag that has a limit of its own. */
static void too_long(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t max;
	char buf[8] = "";
	struct iovec iov[2] = { { buf, 1 }, { buf, 0 } };
	struct ct_one o = { .buf = buf, .ctx = CTX(1), .tag = 6, .to = 1 };

	begin(ct, &dom, &e);
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
	end(&e);
}

#define PAIR(f) \
	{ \
		f, f \
	}

const struct ct_case ct_refused[] = {
	{ "M22", "no-message", PAIR(no_message) },
	{ "M22", "flag-bits", PAIR(flag_bits) },
	{ "M22", "multi-recv-segments", PAIR(multi_segments) },
	{ "M22", "segments-overflow", PAIR(sums) },
	{ "M22", "too-long", PAIR(too_long) },
	{ 0 },
};
