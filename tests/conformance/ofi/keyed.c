/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "keyed.h"

#include <stdlib.h>
#include <string.h>

const char *const kd_keys[KD_KEYS + 1] = { KD_FIRST, KD_SECOND, "a third" };

struct kd_av_ops *kd_ops(struct ct *ct, struct fid_av *av)
{
	if (av->ops->size < sizeof(struct kd_av_ops))
		ct_unsupported(ct, "its address vectors have no authorization keys and user identifiers");
	return (struct kd_av_ops *)(void *)av->ops;
}

fi_addr_t kd_insert_key(struct ct *ct, struct fid_av *av, const char *key)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	CT_OK(ct, kd_ops(ct, av)->insert_key(av, key, strlen(key), &addr, 0));
	CT_TRUE(ct, addr != FI_ADDR_NOTAVAIL);
	return addr;
}

fi_addr_t kd_insert(struct ct *ct, struct fid_av *av, const void *name, fi_addr_t key)
{
	CT_EQ(ct, fi_av_insert(av, name, 1, &key, FI_AUTH_KEY, NULL), 1);
	CT_TRUE(ct, key != FI_ADDR_NOTAVAIL);
	return key;
}

void kd_open(struct ct *ct, struct keyed *s, const struct ct_want *wanted, int first)
{
	struct ct_want want = *wanted;

	want.disabled = true;
	want.av_keys = true;
	memset(s, 0, sizeof(*s));
	ct_open(ct, &s->dom, &want);
	CT_EQ(ct, s->dom.info->domain_attr->auth_key_size, KD_FROM_AV);
	CT_TRUE(ct, !s->dom.info->domain_attr->auth_key);
	ct_ep_open(&s->dom, &s->e);
	for (int i = first; i < KD_KEYS; i++)
		s->key[i] = kd_insert_key(ct, s->e.av, kd_keys[i]);
}

void kd_meet(struct ct *ct, struct keyed *s, int first)
{
	char name[CT_NAME];

	ct_ep_enable(&s->e);
	for (int r = 0; r < ct->procs; r++)
		if (r != ct->rank)
			ct_put(ct, r, s->e.name, sizeof(s->e.name));
	for (int r = 0; r < ct->procs; r++) {
		if (r == ct->rank)
			continue;
		ct_get(ct, NULL, r, name, sizeof(name));
		for (int i = first; i < KD_KEYS; i++)
			s->to[r][i] = kd_insert(ct, s->e.av, name, s->key[i]);
		if (first < KD_KEYS)
			s->e.addr[r] = s->to[r][first];
	}
	ct_sync(ct, &s->e);
}

void kd_close(struct ct *ct, struct keyed *s)
{
	CT_OK(ct, fi_close(&s->e.txcq->fid));
	CT_OK(ct, fi_close(&s->e.av->fid));
	ct_close(&s->dom);
	free(s->e.stash);
}

ssize_t kd_trecv(struct ct_ep *e, void *buf, size_t len, fi_addr_t src, uint64_t tag, uint64_t ignore,
		 uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = src, .tag = tag, .ignore = ignore, .context = buf
	};

	return fi_trecvmsg(e->ep, &m, FI_AUTH_KEY | flags);
}

ssize_t kd_recv(struct ct_ep *e, void *buf, size_t len, fi_addr_t src, uint64_t flags)
{
	struct iovec iov = { buf, len };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = src, .context = buf };

	return fi_recvmsg(e->ep, &m, FI_AUTH_KEY | flags);
}

void kd_got(struct ct *ct, struct ct_ep *e, void *buf, uint64_t tag, fi_addr_t src)
{
	struct ct_comp c;

	ct_of(e, buf, &c);
	CT_EQ(ct, c.err, 0);
	CT_EQ(ct, c.tag, tag);
	CT_EQ(ct, c.src, src);
	CT_EQ(ct, *(uint64_t *)buf, tag);
}

void kd_say(struct ct_ep *e, fi_addr_t to, uint64_t tag)
{
	CT_POST(e, fi_tsend(e->ep, &tag, sizeof(tag), NULL, to, tag, CTX(99)));
	ct_done(e, CTX(99));
}
