/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Reading. One system call takes in many small frames, into a stage that all links share: whatever
 * is left of a frame at its end is either a part of a header, kept in the link, or the payload's
 * beginning, which is handed over. The rest of such a payload is read straight to where it belongs,
 * with the next header behind it.
 */
#include "base/macros.h"
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define RX_PORTION (512u << 10) /* bytes of one link in one poll, so that others have their turn */
/* payloads from this size on are worth not passing through the stage */
#define RX_BULK_MIN (16u << 10)

static int bad_frame(struct hd_tcp_link *l, const char *why)
{
	hd_tcp_link_down(l, -EPROTO, why);
	return -EPROTO;
}

/* Is a, counted up from base and wrapping, not beyond limit? */
static bool in_order(uint32_t base, uint32_t a, uint32_t limit)
{
	return a - base <= limit - base;
}

/* Take in the four words of a frame's header, which is hostile. 0, or negative: link down. */
static int check_frame(struct hd_tcp_link *l, struct hd_tcp_frame *f)
{
	uint32_t ack = le32toh(f->ack), grant = le32toh(f->grant);

	f->len = le32toh(f->len);
	if (le32toh(f->seq) != l->rx.seq + 1)
		return bad_frame(
			l,
			"frame out of sequence: that is no Heddle of this version: see address and port, and use the same Heddle on both ends");
	if (f->len > HD_TCP_LEN_MAX)
		return bad_frame(l, "frame too long");
	if (!in_order(l->tx.acked, ack, l->tx.seq))
		return bad_frame(l, "frames acknowledged that were not sent");
	if ((int32_t)(grant - l->rx.grant) < 0)
		return bad_frame(l, "credit taken back");
	if (f->pkt.kind >= HD_PKT_TRANSPORT && (f->pkt.kind != HD_TCP_PKT_GRANT || f->len))
		return bad_frame(l, "unknown frame");
	l->rx.seq++;
	l->rx.grant = grant;
	l->tx.acked = ack;
	return 0;
}

/* The next header out of what was read. 1: *f is it; 0: not all of it is here yet. */
static int next_header(struct hd_tcp_rx *rx, struct hd_tcp_frame *f, const uint8_t **at, size_t *n)
{
	size_t part;

	if (__builtin_expect(!rx->have && *n >= sizeof(*f), 1)) {
		memcpy(f, *at, sizeof(*f));
		*at += sizeof(*f);
		*n -= sizeof(*f);
		return 1;
	}
	part = sizeof(*f) - rx->have < *n ? sizeof(*f) - rx->have : *n;
	memcpy(rx->head + rx->have, *at, part);
	rx->have += (unsigned)part;
	*at += part;
	*n -= part;
	if (rx->have < sizeof(*f))
		return 0;
	memcpy(f, rx->head, sizeof(*f));
	rx->have = 0;
	return 1;
}

/* The check behind a long payload out of what was read. False: not all of it is here yet. */
static bool take_check(struct hd_tcp_rx *rx, const uint8_t **at, size_t *n)
{
	for (; rx->check_left && *n; rx->check_left--, (*n)--)
		rx->is_void |= *(*at)++ != 0;
	return !rx->check_left;
}

/*
 * A payload begins of which not all is here, or which may be void. at: n bytes of it, and perhaps
 * what follows. Returns as rx_stage.
 */
static int rx_begin(struct hd_tcp_link *l, const struct hd_tcp_frame *f, const uint8_t **at, size_t *n)
{
	size_t part = f->len < *n ? f->len : *n;
	int err = hd_deliver_begin(&l->link, &f->pkt, f->len);

	l->rx.in_payload = true;
	l->rx.check_left = (uint8_t)hd_tcp_check_of(f->len);
	l->rx.is_void = false;
	if (!err && part)
		hd_sink_copy(&l->link.sink, *at, part);
	*at += part;
	*n -= part;
	return err;
}

/*
 * Its last byte has been put where it belongs; its check may be among what was read. 1: it is over;
 * 0: more is to come; negative: link down.
 */
static int rx_end(struct hd_tcp_link *l, const uint8_t **at, size_t *n)
{
	int err;

	if (hd_sink_left(&l->link.sink) || !take_check(&l->rx, at, n))
		return 0;
	l->rx.in_payload = false;
	if (__builtin_expect(l->rx.is_void, 0))
		hd_sink_void(&l->link.sink);
	err = hd_deliver_end(&l->link);
	if (err < 0 || l->link.down)
		return err < 0 ? err : -ENOTCONN;
	return 1;
}

/*
 * Is a frame of this length here, to be handed over in one? A long one is, for nothing can be wrong
 * with its check but that it is void.
 */
static inline bool is_whole(const struct hd_tcp_frame *f, const uint8_t *at, size_t n)
{
	uint32_t check = 0;

	if (f->len <= HD_TCP_COPIED)
		return f->len <= n;
	if (f->len + HD_TCP_CHECK > n)
		return false;
	memcpy(&check, at + f->len, sizeof(check));
	return !check;
}

/*
 * Hand over what stands in the stage. Returns the number of packets begun, or negative: link down.
 */
static int rx_stage(struct hd_tcp_link *l, const uint8_t *at, size_t n)
{
	struct hd_tcp_frame f;
	int packets = 0, err;

	while (n && next_header(&l->rx, &f, &at, &n)) {
		err = check_frame(l, &f);
		if (err < 0)
			return err;
		l->rx.bulk = f.len >= RX_BULK_MIN;
		packets++;
		if (f.pkt.kind == HD_TCP_PKT_GRANT)
			continue;
		if (is_whole(&f, at, n)) {
			size_t all = f.len + hd_tcp_check_of(f.len);

			err = hd_deliver(&l->link, &f.pkt, at, f.len);
			at += all;
			n -= all;
		} else {
			/* of their own, so that the others stay in registers */
			const uint8_t *rest = at;
			size_t left = n;

			err = rx_begin(l, &f, &rest, &left);
			if (!err && !l->link.down)
				err = rx_end(l, &rest, &left);
			at = rest;
			n = left;
		}
		if (err < 0 || l->link.down)
			return err < 0 ? err : -ENOTCONN;
	}
	return packets;
}

/*
 * What has been read is where it belongs, but for `left` bytes in the stage. Returns as rx_stage.
 */
static inline int rx_taken(struct hd_tcp_link *l, size_t left)
{
	const uint8_t *at = tcp_port_of(l)->stage;
	int n, over;

	if (l->rx.in_payload) {
		const uint8_t *rest = at;
		size_t more = left;

		over = rx_end(l, &rest, &more);
		if (over <= 0)
			return over < 0 ? over : 1;
		at = rest;
		left = more;
	}
	n = rx_stage(l, at, left);
	return n < 0 ? n : n + 1;
}

/* Where the next bytes go: the open payload and, when all of its rest fits, the stage behind it. */
static int rx_list(struct hd_tcp_link *l, struct iovec *iov, size_t *room, size_t *all)
{
	int n = 0;

	*room = 0;
	if (l->rx.in_payload) {
		n = hd_sink_iov(&l->link.sink, iov, HD_IOV_MAX);
		for (int i = 0; i < n; i++)
			*room += iov[i].iov_len;
	}
	*all = *room;
	if (!l->rx.in_payload || *room == hd_sink_left(&l->link.sink)) {
		iov[n].iov_base = tcp_port_of(l)->stage;
		iov[n].iov_len = l->rx.bulk ? HD_TCP_HEAD - l->rx.have + HD_TCP_CHECK : HD_TCP_STAGE;
		*all += iov[n++].iov_len;
	}
	return n;
}

static ssize_t rx_read(int fd, struct iovec *iov, int count)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)count };
	ssize_t r;

	do {
		r = count == 1 ? recv(fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT)
			       : recvmsg(fd, &msg, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static const char *what_broke(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return "the other end does not answer within HEDDLE_PEER_TIMEOUT: is it up?";
	case -EBADMSG:
		return "what comes has not been sealed with our key, or was changed on its way: give both ends the same HEDDLE_KEY_FILE";
	case -ECONNRESET:
		return "reset by the other end";
	default:
		return "connection broken";
	}
}

/* The stream is over, r says how. */
static void rx_over(struct hd_tcp_link *l, ssize_t r)
{
	if (r < 0)
		hd_tcp_link_down(l, (int)r, what_broke((int)r));
	else if (l->tx.err)
		hd_tcp_link_down(l, l->tx.err, what_broke(l->tx.err));
	else if (l->rx.in_payload || l->rx.have)
		hd_tcp_link_down(l, -ECONNRESET, "closed by the other end within a frame");
	else
		hd_tcp_link_down(l, -ECONNRESET, "closed by the other end");
}

/*
 * Some of the sink's memory is gone, or protected: read into the stage, and copy as the program
 * would. Where it has a handler of its own for faults, that one may make it writable. As rx_once.
 */
static __attribute__((noinline, cold)) ssize_t rx_by_hand(struct hd_tcp_link *l, size_t *left, bool *full)
{
	struct hd_sink *sink = &l->link.sink;
	struct iovec stage = { tcp_port_of(l)->stage, HD_TCP_STAGE };
	ssize_t r;

	if (hd_sink_left(sink) < stage.iov_len)
		stage.iov_len = hd_sink_left(sink);
	r = rx_read(l->watch.fd, &stage, 1);
	*left = 0;
	*full = r == (ssize_t)stage.iov_len;
	if (r > 0)
		hd_sink_copy(sink, stage.iov_base, (size_t)r);
	return r;
}

/*
 * Read once. Returns as rx_read; *left of these bytes stand in the stage, those before them are
 * where they belong. *full: there may be more to read.
 */
static inline ssize_t rx_once(struct hd_tcp_link *l, size_t *left, bool *full)
{
	struct iovec iov[HD_IOV_MAX + 1];
	size_t room, all;
	int count = rx_list(l, iov, &room, &all);
	bool gone = false, more = false;
	ssize_t r;

	if (__builtin_expect(l->seal != NULL, 0))
		r = tcp_port_of(l)->seals->read(l->seal, iov, count, &gone, &more);
	else
		r = rx_read(l->watch.fd, iov, count);
	*full = r == (ssize_t)all;
	l->rx.more = more;
	if (__builtin_expect(r == -EFAULT && room, 0))
		return rx_by_hand(l, left, full);
	if (r <= 0)
		return r;
	hd_port_read(l->link.port, (size_t)r);
	if (__builtin_expect(gone && l->rx.in_payload, 0))
		hd_sink_gone(&l->link.sink);
	if ((size_t)r < room)
		room = (size_t)r;
	if (l->rx.in_payload)
		hd_sink_advance(&l->link.sink, room);
	*left = (size_t)r - room;
	return r;
}

int hd_tcp_rx(struct hd_tcp_link *l, bool *dry)
{
	size_t left, total = 0;
	int n, handled = 0;
	bool full;
	ssize_t r;

	*dry = false;
	do {
		r = rx_once(l, &left, &full);
		if (r == -EAGAIN) {
			*dry = !l->rx.more;
			break;
		}
		if (r <= 0) {
			rx_over(l, r);
			return handled + 1;
		}
		n = rx_taken(l, left);
		if (n < 0)
			return handled + 1;
		handled += n;
		total += (size_t)r;
	} while (full && total < RX_PORTION);
	if (hd_unlikely(l->caller != NULL) && hd_link_is_a_peers(&l->link))
		hd_tcp_caller_leave(l);
	if (l->rx.more)
		/* no descriptor tells whoever sleeps of what has been read ahead */
		hd_node_stir(l->link.node);
	return handled;
}
