/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The life of endpoints and what they hang on: binding, enabling, closing; fi_endpoint(3). */
#include "region.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* fi_close of what is still in use says -FI_EBUSY and leaves it usable. */
static void busy(struct ct *ct)
{
	struct ct_want want = { .counters = true };
	struct ct_dom dom;
	struct ct_ep e;

	ct_start(ct, &dom, &e, &want);
	CT_EQ(ct, fi_close(&e.txcq->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&e.av->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&e.txcntr->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&e.rxcntr->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&dom.domain->fid), -FI_EBUSY);
	CT_EQ(ct, fi_close(&dom.fabric->fid), -FI_EBUSY);
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

static void enable_without(struct ct *ct)
{
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr ava = { .type = FI_AV_UNSPEC };
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct ct_dom dom;

	ct_open(ct, &dom, NULL);
	CT_OK(ct, fi_cq_open(dom.domain, &cqa, &cq, NULL));
	CT_OK(ct, fi_av_open(dom.domain, &ava, &av, NULL));
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &ep, NULL));
	CT_REFUSED(ct, fi_enable(ep));
	CT_OK(ct, fi_ep_bind(ep, &av->fid, 0));
	CT_EQ(ct, fi_enable(ep), -FI_ENOCQ);
	CT_OK(ct, fi_close(&ep->fid));
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &ep, NULL));
	CT_OK(ct, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CT_EQ(ct, fi_enable(ep), -FI_ENOAV);
	CT_OK(ct, fi_ep_bind(ep, &av->fid, 0));
	CT_OK(ct, fi_enable(ep));
	CT_OK(ct, fi_close(&ep->fid));
	CT_OK(ct, fi_close(&cq->fid));
	CT_OK(ct, fi_close(&av->fid));
	ct_close(&dom);
}

/*
 * Whoever never receives needs nothing bound for it, and is refused receives; until a counter is
 * there, which comes late.
 */
static void no_receive_queue(struct ct *ct)
{
	struct fi_cq_attr cqa = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr ava = { .type = FI_AV_UNSPEC };
	struct fi_cntr_attr cnta = { .events = FI_CNTR_EVENTS_COMP };
	struct ct_ep e = { .ct = ct };
	struct fid_cntr *sent, *got;
	struct ct_dom dom;
	char out[8] = "word", in[8] = "";

	ct_open(ct, &dom, NULL);
	e.dom = &dom;
	CT_OK(ct, fi_cq_open(dom.domain, &cqa, &e.txcq, NULL));
	e.rxcq = e.txcq;
	CT_OK(ct, fi_av_open(dom.domain, &ava, &e.av, NULL));
	CT_OK(ct, fi_cntr_open(dom.domain, &cnta, &sent, NULL));
	CT_OK(ct, fi_cntr_open(dom.domain, &cnta, &got, NULL));
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &e.ep, NULL));
	CT_OK(ct, fi_ep_bind(e.ep, &e.av->fid, 0));
	CT_OK(ct, fi_ep_bind(e.ep, &e.txcq->fid, FI_TRANSMIT));
	ct_ep_enable(&e);
	CT_EQ(ct, fi_recv(e.ep, in, 8, NULL, FI_ADDR_UNSPEC, CTX(1)), -FI_ENOCQ);
	CT_EQ(ct, fi_trecv(e.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, CTX(1)), -FI_ENOCQ);
	CT_OK(ct, fi_ep_bind(e.ep, &sent->fid, FI_SEND));
	CT_OK(ct, fi_ep_bind(e.ep, &got->fid, FI_RECV));
	CT_REFUSED(ct, fi_ep_bind(e.ep, &sent->fid, FI_RECV)); /* there is one */
	e.addr[0] = ct_insert(&e, e.name);
	CT_OK(ct, fi_recv(e.ep, in, 8, NULL, FI_ADDR_UNSPEC, CTX(1)));
	ct_send(&e, 0, out, 8, CTX(2));
	ct_done(&e, CTX(2));
	ct_reaches(&e, sent, 1);
	ct_reaches(&e, got, 1);
	CT_TRUE(ct, !memcmp(in, out, 8));
	ct_ep_close(&e);
	CT_OK(ct, fi_close(&sent->fid));
	CT_OK(ct, fi_close(&got->fid));
	ct_close(&dom);
}

/*
 * One CQ for each kind of operation, one AV; no foreign objects and no
 * flags that mean nothing here.
 */
static void bind_bad(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	CT_REFUSED(ct, fi_ep_bind(e.ep, &e.txcq->fid, FI_TRANSMIT | FI_RECV));
	CT_REFUSED(ct, fi_ep_bind(e.ep, &e.av->fid, 0));
	CT_REFUSED(ct, fi_ep_bind(e.ep, &dom.domain->fid, 0));
	ct_ep_close(&e);
	ct_close(&dom);
}

static void options(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	size_t value = 0, len = sizeof(value);
	char tiny;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	CT_EQ(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, 9999, &value, sizeof(value)), -FI_ENOPROTOOPT);
	CT_EQ(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, 9999, &value, &len), -FI_ENOPROTOOPT);
	CT_EQ(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, -1, NULL, NULL), -FI_ENOPROTOOPT);
	CT_EQ(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, INT_MIN, &value, &len), -FI_ENOPROTOOPT);
	CT_EQ(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, INT_MIN, &value, sizeof(value)), -FI_ENOPROTOOPT);
	CT_EQ(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, &len), -FI_EINVAL);
	CT_EQ(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, NULL), -FI_EINVAL);
	CT_EQ(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, sizeof(value)),
	      -FI_ENOPROTOOPT); /* read only */
	CT_EQ(ct, fi_setopt(&e.ep->fid, 77, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)), -FI_ENOPROTOOPT);
	len = 1;
	CT_REFUSED(ct, fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &tiny, &len));
	CT_REFUSED(ct, fi_control(&e.ep->fid, 9999, &value));
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * Options that libfabric has had since 1.19 to 2.1, by their numbers, which older headers have not:
 * FI_OPT_XPU_TRIGGER is 9 in all of them.
 */
enum {
	OPT_CUDA_API_PERMITTED = 10,
	OPT_SHARED_MEMORY_PERMITTED,
	OPT_MAX_MSG_SIZE,
	OPT_INJECT_MSG_SIZE = 16
};

static size_t limit_of(struct ct_ep *e, int name)
{
	size_t value = 0, len = sizeof(value);
	int rc = fi_getopt(&e->ep->fid, FI_OPT_ENDPOINT, name, &value, &len);

	if (rc == -FI_ENOPROTOOPT)
		ct_unsupported(e->ct, "FI_OPT_MAX_MSG_SIZE and its like");
	CT_OK(e->ct, rc);
	CT_EQ(e->ct, len, sizeof(value));
	return value;
}

/*
 * It is bounded by what the info has, and not by what it is: it may become
 * that again, and then this.
 */
static void back_up(struct ct_ep *e, int name, size_t most, size_t then)
{
	CT_OK(e->ct, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, name, &most, sizeof(most)));
	CT_EQ(e->ct, limit_of(e, name), most);
	CT_OK(e->ct, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, name, &then, sizeof(then)));
}

/*
 * FI_OPT_MAX_MSG_SIZE and FI_OPT_INJECT_MSG_SIZE, and those of the other kinds of operations: less
 * than the info has, and each for itself.
 */
static void limits(struct ct *ct)
{
	struct ct_want want = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC };
	char buf[200] = { 0 };
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	ct_ep_open(&dom, &e);
	for (int i = 0; i < 4; i++) {
		CT_TRUE(ct, limit_of(&e, OPT_MAX_MSG_SIZE + i) <= dom.info->ep_attr->max_msg_size);
		CT_TRUE(ct, limit_of(&e, OPT_MAX_MSG_SIZE + i) > 0);
		CT_TRUE(ct, limit_of(&e, OPT_INJECT_MSG_SIZE + i) <= dom.info->tx_attr->inject_size);
	}
	for (int i = 0; i < 2; i++) { /* messages, tagged ones */
		size_t most = i ? 100 : 50, least = most / 2, more = dom.info->ep_attr->max_msg_size + 1;

		CT_OK(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, OPT_MAX_MSG_SIZE + i, &most, sizeof(most)));
		CT_OK(ct,
		      fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, OPT_INJECT_MSG_SIZE + i, &least, sizeof(least)));
		CT_EQ(ct, limit_of(&e, OPT_MAX_MSG_SIZE + i), most);
		CT_EQ(ct, limit_of(&e, OPT_INJECT_MSG_SIZE + i), least);
		CT_EQ(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, OPT_MAX_MSG_SIZE + i, &more, sizeof(more)),
		      -FI_EINVAL);
		CT_EQ(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, OPT_MAX_MSG_SIZE + i, &most, 1), -FI_EINVAL);
		back_up(&e, OPT_MAX_MSG_SIZE + i, dom.info->ep_attr->max_msg_size, most);
		back_up(&e, OPT_INJECT_MSG_SIZE + i, dom.info->tx_attr->inject_size, least);
	}
	CT_EQ(ct, fi_send(e.ep, buf, 51, NULL, 0, NULL), -FI_EMSGSIZE);
	CT_EQ(ct, fi_inject(e.ep, buf, 26, 0), -FI_EMSGSIZE);
	CT_EQ(ct, fi_tsend(e.ep, buf, 101, NULL, 0, 1, NULL), -FI_EMSGSIZE);
	CT_EQ(ct, fi_tinject(e.ep, buf, 51, 0, 1), -FI_EMSGSIZE);
	CT_EQ(ct, limit_of(&e, OPT_MAX_MSG_SIZE + 2), dom.info->ep_attr->max_msg_size); /* RMA */
	ct_ep_close(&e);
	ct_close(&dom);
}

/* FI_OPT_CUDA_API_PERMITTED is invalid where there is no CUDA; shared memory is permitted. */
static void permissions(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	bool yes = true;
	int rc;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	rc = fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, OPT_SHARED_MEMORY_PERMITTED, &yes, sizeof(yes));
	if (rc == -FI_ENOPROTOOPT)
		ct_unsupported(ct, "FI_OPT_SHARED_MEMORY_PERMITTED");
	CT_OK(ct, rc);
	CT_EQ(ct, fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, OPT_CUDA_API_PERMITTED, &yes, sizeof(yes)),
	      -FI_EINVAL);
	ct_ep_close(&e);
	ct_close(&dom);
}

/* FI_SETOPSFLAG replaces the default flags of one direction, FI_GETOPSFLAG gives them back. */
static void ops_flags(struct ct *ct)
{
	struct ct_want want = { .tx_bind = FI_SELECTIVE_COMPLETION, .rx_bind = FI_SELECTIVE_COMPLETION };
	uint64_t flags = FI_TRANSMIT;
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8] = { 0 };
	int rc;

	ct_start(ct, &dom, &e, &want);
	rc = fi_control(&e.ep->fid, FI_GETOPSFLAG, &flags);
	if (rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP)
		ct_unsupported(ct, "FI_GETOPSFLAG: %s", fi_strerror(-rc));
	CT_OK(ct, rc);
	CT_TRUE(ct, !(flags & FI_COMPLETION));
	flags = (ct->rank ? FI_RECV : FI_TRANSMIT) | FI_COMPLETION;
	CT_OK(ct, fi_control(&e.ep->fid, FI_SETOPSFLAG, &flags));
	flags = ct->rank ? FI_RECV : FI_TRANSMIT;
	CT_OK(ct, fi_control(&e.ep->fid, FI_GETOPSFLAG, &flags));
	CT_TRUE(ct, flags & FI_COMPLETION);
	if (ct->rank)
		ct_recv(&e, buf, sizeof(buf), CTX(1));
	else
		ct_send(&e, 1, buf, sizeof(buf), CTX(1));
	ct_done(&e, CTX(1));
	ct_finish(&e);
}

static void getname_short(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	char name[CT_NAME];
	size_t len = 2;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	memset(name, 0x55, sizeof(name));
	CT_EQ(ct, fi_getname(&e.ep->fid, name, &len), -FI_ETOOSMALL);
	CT_EQ(ct, len, e.namelen);
	CT_TRUE(ct, ct_untouched((unsigned char *)name + 2, sizeof(name) - 2, 0x55));
	ct_ep_close(&e);
	ct_close(&dom);
}

static void named(struct ct *ct, struct fid_ep *ep, const struct ct_ep *like)
{
	char name[CT_NAME] = "";
	size_t len = sizeof(name);

	CT_OK(ct, fi_getname(&ep->fid, name, &len));
	CT_TRUE(ct, len == like->namelen && !memcmp(name, like->name, len));
	CT_OK(ct, fi_close(&ep->fid));
}

/*
 * An endpoint has the name that it was given, by fi_setname or by its info, before
 * it is enabled: fi_cm(3).
 */
static void name_assigned(struct ct *ct)
{
	struct fi_info *info;
	struct ct_dom dom;
	struct fid_ep *ep;
	struct ct_ep e;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	ct_ep_close(&e);
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &ep, NULL));
	CT_OK(ct, fi_setname(&ep->fid, e.name, e.namelen));
	named(ct, ep, &e);
	info = fi_dupinfo(dom.info);
	free(info->src_addr);
	info->src_addr = ct_alloc(ct, e.namelen);
	memcpy(info->src_addr, e.name, e.namelen);
	info->src_addrlen = e.namelen;
	CT_OK(ct, fi_endpoint(dom.domain, info, &ep, NULL));
	named(ct, ep, &e);
	fi_freeinfo(info);
	ct_close(&dom);
}

/*
 * Where fi_setname names no port, the provider finds one, and the endpoint has it from then on,
 * before it is enabled and after; what cannot be assigned is an error of that call: fi_cm(3).
 */
static void port_assigned(struct ct *ct)
{
	struct ct_want want = { .disabled = true };
	char name[CT_NAME] = "", again[CT_NAME] = "", own[CT_NAME] = "";
	size_t len = sizeof(name), size = sizeof(again);
	struct sockaddr_in *in = (void *)name;
	struct fid_ep *other, *third;
	struct ct_dom dom;
	struct ct_ep e;

	ct_open(ct, &dom, &want);
	if (dom.info->addr_format != FI_SOCKADDR_IN)
		ct_unsupported(ct, "addresses of IPv4");
	ct_ep_open(&dom, &e);
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CT_OK(ct, fi_setname(&e.ep->fid, name, sizeof(*in)));
	CT_OK(ct, fi_getname(&e.ep->fid, name, &len));
	CT_TRUE(ct, len == sizeof(*in) && in->sin_port && in->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &other, NULL));
	CT_EQ(ct, fi_setname(&other->fid, name, len), -FI_EADDRINUSE);
	ct_ep_enable(&e);
	CT_OK(ct, fi_getname(&e.ep->fid, again, &size));
	CT_TRUE(ct, size == len && !memcmp(again, name, len));
	in->sin_addr.s_addr = inet_addr("192.0.2.1");
	in->sin_port = 0;
	CT_EQ(ct, fi_setname(&other->fid, name, len), -FI_EADDRNOTAVAIL);
	in->sin_addr.s_addr = htonl(INADDR_ANY);
	CT_OK(ct, fi_setname(&other->fid, name, len));
	CT_OK(ct, fi_getname(&other->fid, own, &size));
	CT_TRUE(ct, ((struct sockaddr_in *)(void *)own)->sin_port);
	in->sin_addr.s_addr = inet_addr("192.0.2.1");
	/* and nothing has changed */
	CT_EQ(ct, fi_setname(&other->fid, name, len), -FI_EADDRNOTAVAIL);
	CT_OK(ct, fi_getname(&other->fid, name, &len));
	CT_TRUE(ct, size == len && !memcmp(own, name, len));
	CT_OK(ct, fi_endpoint(dom.domain, dom.info, &third, NULL));
	CT_EQ(ct, fi_setname(&third->fid, name, len), -FI_EADDRINUSE);
	CT_OK(ct, fi_close(&third->fid));
	CT_OK(ct, fi_close(&other->fid));
	ct_ep_close(&e);
	ct_close(&dom);
}

/* An endpoint that has a name of this kind, and is not enabled. */
static struct fid_ep *named_alone(struct ct_ep *like, char name[CT_NAME])
{
	size_t len = like->namelen;
	struct fid_ep *ep = NULL;

	memset(name, 0, CT_NAME);
	memcpy(name, like->name, len);
	/* the port of IPv6 stands at the same place */
	((struct sockaddr_in *)(void *)name)->sin_port = 0;
	CT_OK(like->ct, fi_endpoint(like->dom->domain, like->dom->info, &ep, NULL));
	CT_OK(like->ct, fi_setname(&ep->fid, name, len));
	CT_OK(like->ct, fi_getname(&ep->fid, name, &len));
	return ep;
}

/*
 * What is sent to an endpoint that has a name and is not enabled yet is not sent to nowhere as if
 * it had come; afterwards it does.
 */
static void named_early(struct ct *ct)
{
	char name[CT_NAME] = "", word[8] = "";
	struct fid_ep *ep = NULL;
	struct ct_dom dom;
	struct ct_comp c;
	struct ct_ep e;
	fi_addr_t to = 0;

	ct_start(ct, &dom, &e, NULL);
	if (dom.info->addr_format != FI_SOCKADDR_IN && dom.info->addr_format != FI_SOCKADDR_IN6)
		ct_unsupported(ct, "socket addresses");
	for (int i = 0; i < 2; i++) { /* from who does not know us, and from who does */
		if (ct->rank) {
			ep = named_alone(&e, name);
			ct_put(ct, 0, name, sizeof(name));
		} else {
			ct_get(ct, &e, 1, name, sizeof(name));
			to = ct_insert(&e, name);
			CT_POST(&e, fi_send(e.ep, word, sizeof(word), NULL, to, CTX(1)));
			ct_any(&e, &c);
			CT_TRUE(ct, c.ctx == CTX(1) && c.err);
		}
		ct_sync(ct, &e);
		if (ct->rank) {
			CT_OK(ct, fi_ep_bind(ep, &e.av->fid, 0));
			CT_OK(ct, fi_ep_bind(ep, &e.txcq->fid, FI_TRANSMIT | FI_RECV));
			CT_OK(ct, fi_enable(ep));
			CT_OK(ct, fi_recv(ep, word, sizeof(word), NULL, FI_ADDR_UNSPEC, CTX(2)));
		}
		ct_sync(ct, &e);
		if (!ct->rank)
			CT_POST(&e, fi_send(e.ep, word, sizeof(word), NULL, to, CTX(2)));
		ct_done(&e, CTX(2));
		ct_sync(ct, &e);
		if (ct->rank)
			CT_OK(ct, fi_close(&ep->fid));
	}
	ct_finish(&e);
}

static int descriptors(struct ct *ct)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (!d)
		ct_fail(ct, "cannot read /proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A thousand endpoints come and go: no descriptor stays open, and the domain goes on working. */
static void churn(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e, other;
	int i, fds = 0;

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, !ct->rank);
	for (i = 0; i < 1000; i++) {
		ct_ep_open(&dom, &other);
		ct_ep_close(&other);
		if (i == 20)
			fds = descriptors(ct);
	}
	CT_TRUE(ct, descriptors(ct) <= fds);
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* The whole stack comes and goes, with a message each time. */
static void churn_all(struct ct *ct)
{
	struct ct_dom dom;
	struct ct_ep e;
	int i, fds = 0;

	for (i = 0; i < 60; i++) {
		ct_start(ct, &dom, &e, NULL);
		ct_ping(&e, !ct->rank);
		ct_finish(&e);
		if (i == 10)
			fds = descriptors(ct);
	}
	CT_TRUE(ct, descriptors(ct) <= fds);
}

#define EPS 4

/* With manual progress an endpoint moves only when its own queue is read: all of them in turn. */
static bool progress_all(struct ct_ep *e)
{
	bool any = false;
	size_t i;

	for (i = 0; i < EPS; i++)
		any |= ct_progress(&e[i]);
	return any;
}

static void siblings_send(struct ct_ep *e, fi_addr_t to[EPS][EPS], char out[EPS][EPS][64])
{
	double end = ct_deadline(e->ct);
	ssize_t rc;
	uint64_t i, k;

	for (i = 0; i < EPS; i++) {
		for (k = 0; k < EPS; k++) {
			ct_fill(out[i][k], 64, 10 * i + k);
			while ((rc = fi_tsend(e[i].ep, out[i][k], 64, NULL, to[i][k], i, CTX(200 + k))) ==
			       -FI_EAGAIN) {
				progress_all(e);
				ct_late(e->ct, end, "a sibling's send to be accepted");
			}
			CT_OK(e->ct, rc);
		}
	}
	for (k = 0; k < EPS; ct_late(e->ct, end, "messages between sibling endpoints")) {
		if (!progress_all(e))
			ct_pause();
		for (i = k = 0; i < EPS; i++)
			k += e[i].tail - e[i].head == 2 * EPS;
	}
}

/* Goes on making progress until the other rank has all of its completions too. */
static void siblings_meet(struct ct_ep *e)
{
	struct ct *ct = e->ct;
	struct pollfd pfd = { .fd = ct->chan[!ct->rank], .events = POLLIN };
	char c = 'M';

	ct_put(ct, !ct->rank, &c, 1);
	while (!poll(&pfd, 1, 0))
		if (!progress_all(e))
			ct_pause();
	ct_get(ct, NULL, !ct->rank, &c, 1);
}

/* Four endpoints of a domain on either side, each to each: no message may go to a sibling. */
static void siblings(struct ct *ct)
{
	char name[CT_NAME], in[EPS][EPS][64], out[EPS][EPS][64];
	fi_addr_t to[EPS][EPS];
	struct ct_dom dom;
	struct ct_ep e[EPS];
	uint64_t i, k;

	ct_open(ct, &dom, NULL);
	for (i = 0; i < EPS; i++) {
		ct_ep_open(&dom, &e[i]);
		ct_put(ct, !ct->rank, e[i].name, sizeof(e[i].name));
	}
	for (k = 0; k < EPS; k++) {
		ct_get(ct, NULL, !ct->rank, name, sizeof(name));
		for (i = 0; i < EPS; i++)
			to[i][k] = ct_insert(&e[i], name);
	}
	for (i = 0; i < EPS; i++)
		for (k = 0; k < EPS; k++)
			ct_trecv(&e[i], in[i][k], 64, k, 0, CTX(100 + k));
	ct_sync(ct, NULL);
	siblings_send(e, to, out);
	siblings_meet(e);
	for (i = 0; i < EPS; i++) {
		for (k = 0; k < EPS; k++) {
			CT_EQ(ct, ct_done(&e[i], CTX(100 + k)), 64);
			ct_verify(ct, in[i][k], 64, 10 * k + i, "sibling");
			ct_done(&e[i], CTX(200 + k));
		}
	}
	ct_sync(ct, NULL);
	for (i = 0; i < EPS; i++)
		ct_ep_close(&e[i]);
	ct_close(&dom);
}

static void self_send(struct ct *ct)
{
	static const size_t lens[] = { 0, 8, 5000, 100000, 4 << 20 };
	struct ct_dom dom;
	struct ct_ep e;
	char *out = ct_alloc(ct, 4 << 20), *in = ct_alloc(ct, 4 << 20);
	size_t i;

	ct_open(ct, &dom, NULL);
	ct_ep_open(&dom, &e);
	e.addr[0] = ct_insert(&e, e.name);
	for (i = 0; i < 4 * CT_COUNT(lens); i++) {
		size_t len = lens[i / 4];
		bool tagged = i & 1, late = i & 2;

		ct_fill(out, len, i);
		if (!late && tagged)
			ct_trecv(&e, in, len, 5, 0, CTX(1));
		else if (!late)
			ct_recv(&e, in, len, CTX(1));
		if (tagged)
			ct_tsend(&e, 0, out, len, 5, CTX(2));
		else
			ct_send(&e, 0, out, len, CTX(2));
		ct_idle(&e, late ? 2 : 0);
		if (late && tagged)
			ct_trecv(&e, in, len, 5, 0, CTX(1));
		else if (late)
			ct_recv(&e, in, len, CTX(1));
		CT_EQ(ct, ct_done(&e, CTX(1)), len);
		ct_done(&e, CTX(2));
		ct_verify(ct, in, len, i, "to itself");
	}
	free(in);
	free(out);
	ct_ep_close(&e);
	ct_close(&dom);
}

/*
 * Outstanding operations are discarded silently by fi_close, and a sibling on the
 * same CQ domain lives on.
 */
static void close_outstanding(struct ct *ct)
{
	size_t len = 4 << 20, i;
	struct ct_dom dom;
	struct ct_ep e, other;
	char *buf = ct_alloc(ct, len), name[CT_NAME];

	ct_start(ct, &dom, &e, NULL);
	ct_ping(&e, !ct->rank);
	if (!ct->rank) {
		for (i = 0; i < 10; i++) {
			ct_ep_open(&dom, &other);
			memcpy(name, e.name, sizeof(name));
			ct_put(ct, 1, other.name, sizeof(other.name));
			ct_get(ct, &e, 1, name, sizeof(name));
			other.addr[1] = ct_insert(&other, name);
			ct_recv(&other, buf, 64, CTX(1));
			ct_trecv(&other, buf, 64, 1, 0, CTX(2));
			/* Nobody will ever receive this one. */
			CT_POST(&other, fi_tsend(other.ep, buf, len, NULL, other.addr[1], 77, CTX(3)));
			ct_ep_close(&other);
		}
	} else {
		for (i = 0; i < 10; i++) {
			ct_get(ct, &e, 0, name, sizeof(name));
			ct_put(ct, 0, e.name, sizeof(e.name));
		}
	}
	ct_sync(ct, &e);
	ct_ping(&e, !ct->rank);
	free(buf);
	ct_finish(&e);
}

const struct ct_case ct_life[] = { { "EP", "close-busy", CT_TWO(busy) },
				   { "EP", "enable-without", { enable_without } },
				   { "EP", "no-receive-queue", { no_receive_queue } },
				   { "EP", "bind-bad", { bind_bad } },
				   { "EP", "options-bad", { options } },
				   { "EP", "default-flags", CT_TWO(ops_flags) },
				   { "EP", "getname-short", { getname_short } },
				   { "EP", "name-assigned", { name_assigned } },
				   { "EP", "port-assigned", { port_assigned } },
				   { "EP", "named-early", CT_TWO(named_early) },
				   { "EP", "limits-by-option", { limits } },
				   { "EP", "permissions-by-option", { permissions } },
				   { "EP", "open-close", CT_TWO(churn) },
				   { "EP", "open-close-all", CT_TWO(churn_all) },
				   { "EP", "siblings", CT_TWO(siblings) },
				   { "EP", "self", { self_send } },
				   { "EP", "close-outstanding", CT_TWO(close_outstanding) },
				   { 0 } };
