/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/shm_message.h"

#include "base/config.h"
#include "forbid.h"
#include "transport/shm/copy.h"
#include "transport/shm_duo.h"

#include <stdlib.h>

static void message_done(struct hd_get *get, int err)
{
	struct message *m = (struct message *)get;

	m->done++;
	m->err = err;
}

/* Segments of unequal length, the second of them empty. */
static int cut(uint8_t *at, size_t len, int count, struct iovec *iov)
{
	for (int i = 0; i < count; i++) {
		size_t n = i == count - 1 ? len : i == 1 ? 0 : len / 3;

		iov[i] = (struct iovec){ at, n };
		at += n;
		len -= n;
	}
	return count;
}

void message_make(struct message *m, struct duo *d, size_t len, int segs_from, int segs_to)
{
	memset(m, 0, sizeof(*m));
	m->len = len;
	m->sent = malloc(len);
	m->received = malloc(len);
	assert_true(m->sent && m->received);
	rig_fill(m->sent, 0, len, 77);
	memset(m->received, 0, len);
	m->offer = (struct hd_offer){ .iov = m->from,
				      .count = cut(m->sent, len, segs_from, m->from),
				      .len = len };
	m->blob_len = d->link[0]->base.ops->offer(&d->link[0]->base, &m->offer, m->blob);
	m->get.iov = m->to;
	m->get.count = cut(m->received, len, segs_to, m->to);
	m->get.len = len;
	m->get.offer = m->blob;
	m->get.offer_len = m->blob_len;
	m->get.done = message_done;
}

int message_get(struct message *m, struct duo *d)
{
	return d->link[1]->base.ops->get(&d->link[1]->base, &m->get);
}

void message_free(struct message *m, struct duo *d)
{
	if (m->blob_len && d->end[0]->link)
		d->link[0]->base.ops->unoffer(&d->link[0]->base, &m->offer);
	free(m->sent);
	free(m->received);
}

bool message_arrives(struct message *m, struct duo *d)
{
	if (!m->blob_len || message_get(m, d))
		return false;
	for (int i = 0; i < 1000 && !m->done; i++)
		duo_turns(d, 1);
	return m->done == 1 && m->err == 0 && memcmp(m->sent, m->received, m->len) == 0;
}

bool transfer(struct duo *d, size_t len, int segs_from, int segs_to)
{
	struct message m;
	bool arrived;

	message_make(&m, d, len, segs_from, segs_to);
	arrived = message_arrives(&m, d);
	message_free(&m, d);
	return arrived;
}
