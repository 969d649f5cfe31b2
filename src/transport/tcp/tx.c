/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Writing. The first packet of a turn is written at once; those that follow before the next poll
 * are gathered and leave together, at that poll or when they are worth a system call of their own.
 * Of a stream, which goes on over the turns, the first waits too: a call for it alone takes as long
 * as the one for all the others (8 bytes: 1.75 million a second and not 1.26). Puts stay where they
 * are, but a stream of them is gathered too, up to eight: each write ends in a segment that is not
 * full, which costs the kernel as much as a full one. (Frames of 128 KiB on loopback: 0.9 of a bare
 * stream one by one, 1.3 by eight.)
 */
#include "base/clock.h"
#include "base/copy.h"
#include "base/minus.h"
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that may wait in a link's buffer; one packet of any size always may. */
#define TX_WAIT_MAX (256u << 10)
#define TX_CAP_MIN (16u << 10)

/* Gathered bytes that are worth a system call. */
#define TX_WORTH (64u << 10)

/*
 * So many frames in one write are a stream, and it goes on as long as the next ones
 * follow within so many turns.
 */
#define STREAM_FRAMES 8
#define STREAM_TURNS 64

/* How long a grant waits for a frame to travel with. */
#define GRANT_POLLS 8

#define IOV_ALL (HD_TCP_PUTS * (HD_IOV_MAX + 1) + 1 + HD_IOV_MAX + 2)

static inline size_t waiting(const struct hd_tcp_tx *tx)
{
	return tx->tail - tx->head;
}

void hd_tcp_tx_free(struct hd_tcp_tx *tx)
{
	free(tx->buf);
	tx->buf = NULL;
	tx->base += tx->tail;
	tx->cap = tx->head = tx->tail = 0;
}

void hd_tcp_tx_trim(struct hd_tcp_tx *tx)
{
	if (tx->cap > TX_CAP_MIN && !hd_tcp_tx_pending(tx))
		hd_tcp_tx_free(tx);
}

/* Everything is written: start at the front again. */
static void tx_rewind(struct hd_tcp_tx *tx)
{
	tx->base += tx->tail;
	tx->head = tx->tail = 0;
}

static void tx_to_front(struct hd_tcp_tx *tx)
{
	memmove(tx->buf, tx->buf + tx->head, waiting(tx));
	tx->base += tx->head;
	tx->tail -= tx->head;
	tx->head = 0;
}

static bool tx_grow(struct hd_tcp_tx *tx, size_t n)
{
	size_t cap = tx->cap ? tx->cap : TX_CAP_MIN;
	uint8_t *buf;

	if (tx->head)
		tx_to_front(tx);
	while (cap < tx->tail + n)
		cap *= 2;
	if (cap == tx->cap)
		return true;
	buf = realloc(tx->buf, cap);
	if (!buf)
		return false;
	tx->buf = buf;
	tx->cap = cap;
	return true;
}

/* Room for n more bytes at the tail. */
static inline bool tx_room(struct hd_tcp_tx *tx, size_t n)
{
	if (waiting(tx) && waiting(tx) + n > TX_WAIT_MAX)
		return false;
	return tx->cap - tx->tail >= n || tx_grow(tx, n);
}

/* There is room. */
static inline void add_header(struct hd_tcp_link *l, const struct hd_pkt *pkt, size_t len)
{
	struct hd_tcp_tx *tx = &l->tx;
	const struct hd_tcp_frame frame = {
		.len = htole32((uint32_t)len),
		.seq = htole32(++tx->seq),
		.ack = htole32(l->rx.seq),
		.grant = htole32(tx->grant),
		.pkt = *pkt,
	};

	tx->grant_sent = tx->grant;
	memcpy(tx->buf + tx->tail, &frame, sizeof(frame));
	tx->tail += sizeof(frame);
}

/* Behind the first `skip` bytes. -EFAULT: not all of it is there, and none of that counts. */
static int add_payload(struct hd_tcp_tx *tx, const struct iovec *iov, int count, size_t skip)
{
	size_t tail = tx->tail;

	for (int i = 0; i < count; i++) {
		size_t n = iov[i].iov_len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		if (hd_copy(tx->buf + tail, (const char *)iov[i].iov_base + skip, n - skip))
			return -EFAULT;
		tail += n - skip;
		skip = 0;
	}
	tx->tail = tail;
	return 0;
}

/* But for the first bytes of it, which have been taken. */
static void add_check(struct hd_tcp_tx *tx, bool is_void, size_t taken)
{
	const uint32_t check = htole32(is_void);

	memcpy(tx->buf + tx->tail, (const char *)&check + taken, sizeof(check) - taken);
	tx->tail += sizeof(check) - taken;
}

/* Everything that waits, in the order of the stream. */
static int tx_list(const struct hd_tcp_tx *tx, struct iovec *iov)
{
	size_t from = tx->head;
	int n = 0;

	for (unsigned i = tx->put_sent; i != tx->put_next; i++) {
		const struct hd_tcp_put *p = &tx->put[i % HD_TCP_PUTS];
		size_t at = (size_t)(p->at - tx->base);

		if (at > from)
			iov[n++] = (struct iovec){ tx->buf + from, at - from };
		from = at;
		memcpy(iov + n, p->iov + p->cur, (size_t)(p->count - p->cur) * sizeof(*iov));
		n += p->count - p->cur;
	}
	if (tx->tail > from)
		iov[n++] = (struct iovec){ tx->buf + from, tx->tail - from };
	return n;
}

/* n bytes of this payload are written; n is at most p->left. */
static void put_advance(struct hd_tcp_put *p, size_t n)
{
	p->left -= n;
	while (n && n >= p->iov[p->cur].iov_len)
		n -= p->iov[p->cur++].iov_len;
	if (n) {
		p->iov[p->cur].iov_base = (char *)p->iov[p->cur].iov_base + n;
		p->iov[p->cur].iov_len -= n;
	}
}

/*
 * What is left of a payload whose memory is gone: zeros, and its check says so, which stands in the
 * buffer where it stands in the stream.
 */
static void put_void(struct hd_tcp_tx *tx, struct hd_tcp_put *p)
{
	static uint8_t zeros[64u << 10]; /* nobody writes to it */
	size_t left = p->left;

	static_assert(HD_FRAME_MAX <= HD_IOV_MAX * sizeof(zeros), "enough of them");
	p->is_void = true;
	p->cur = 0;
	for (p->count = 0; left; p->count++) {
		size_t n = left < sizeof(zeros) ? left : sizeof(zeros);

		p->iov[p->count] = (struct iovec){ zeros, n };
		left -= n;
	}
	tx->buf[p->at - tx->base] = 1;
}

/*
 * Copy what is not written yet, and write it from there. We copy as the program would: where it has
 * a handler of its own for faults, that one may make the memory readable.
 */
static int put_own(struct hd_tcp_tx *tx, struct hd_tcp_put *p)
{
	if (p->is_void || p->own)
		return 0;
	p->own = malloc(p->left);
	if (!p->own)
		return -ENOMEM;
	if (hd_iov_drain(p->iov + p->cur, p->count - p->cur, p->own, p->left)) {
		put_void(tx, p);
		return 0;
	}
	p->iov[0] = (struct iovec){ p->own, p->left };
	p->cur = 0;
	p->count = 1;
	return 0;
}

/*
 * The socket could not read something of what was listed. Copy one more payload that it may be
 * of; false: there is none.
 */
static bool puts_gone(struct hd_tcp_tx *tx)
{
	for (unsigned i = tx->put_sent; i != tx->put_next; i++) {
		struct hd_tcp_put *p = &tx->put[i % HD_TCP_PUTS];

		if (!p->is_void && !p->own)
			return put_own(tx, p) == 0;
	}
	return false;
}

/*
 * n bytes of what tx_list listed are written. Returns how many of them came
 * after everything listed.
 */
static size_t tx_written(struct hd_tcp_tx *tx, size_t n)
{
	size_t part;

	for (; tx->put_sent != tx->put_next; tx->put_sent++) {
		struct hd_tcp_put *p = &tx->put[tx->put_sent % HD_TCP_PUTS];
		size_t before = (size_t)(p->at - tx->base) - tx->head;

		part = n < before ? n : before;
		tx->head += part;
		n -= part;
		if (part < before)
			return 0;
		part = n < p->left ? n : p->left;
		put_advance(p, part);
		n -= part;
		if (p->left)
			return 0;
	}
	part = n < waiting(tx) ? n : waiting(tx);
	tx->head += part;
	if (tx->head == tx->tail)
		tx_rewind(tx);
	return n - part;
}

/*
 * The socket is broken. What the other end sent before that may still be unread, so the link goes
 * down only when a poll has read to the end (see link_poll); until then nothing more is written.
 */
static void tx_fail(struct hd_tcp_link *l, int err)
{
	l->tx.err = err == EPIPE ? -ECONNRESET : -err;
	l->tx.head = l->tx.tail = l->tx.sealed = 0;
	l->tx.put_next = l->tx.put_sent;
	if (l->state != HD_TCP_LAST)
		hd_tcp_link_heat(l);
}

/* As sendmsg(2), but a negative errno. */
static ssize_t plain_write(int fd, const struct iovec *iov, int count)
{
	const struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count };
	ssize_t r;

	do {
		if (count == 1)
			r = send(fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
		else
			r = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/*
 * Offer n bytes to the socket. Returns how many were taken; -EFAULT: none, for not all are there.
 */
static ssize_t tx_write(struct hd_tcp_link *l, const struct iovec *iov, int count, size_t n)
{
	ssize_t r;

	if (__builtin_expect(l->seal != NULL, 0))
		r = tcp_port_of(l)->seals->write(l->seal, iov, count, &l->tx.sealed);
	else
		r = plain_write(l->watch.fd, iov, count);
	if (r > 0)
		hd_port_wrote(l->link.port, (size_t)r);
	l->tx.turn = tcp_port_of(l)->turn;
	l->tx.streams = l->tx.seq - l->tx.written_seq >= STREAM_FRAMES;
	l->tx.written_seq = l->tx.seq;
	if (r == (ssize_t)n && !l->tx.sealed)
		return r;
	if (__builtin_expect(r == -EFAULT, 0))
		return r;
	l->tx.full = true;
	l->tx.full_at = hd_ticks();
	if (r >= 0)
		return r;
	if (r != -EAGAIN && r != -ENOBUFS && r != -ENOMEM)
		tx_fail(l, (int)-r);
	return 0;
}

/*
 * Write what waits and, behind it, `more` from where it is. Returns how many bytes
 * of the latter were taken.
 */
static size_t tx_push(struct hd_tcp_link *l, const struct iovec *more, int count, size_t len)
{
	struct iovec iov[IOV_ALL];
	size_t n = waiting(&l->tx) + len;
	ssize_t r;
	int k;

	for (unsigned i = l->tx.put_sent; i != l->tx.put_next; i++)
		n += l->tx.put[i % HD_TCP_PUTS].left;
	do {
		k = tx_list(&l->tx, iov);
		if (count)
			memcpy(iov + k, more, (size_t)count * sizeof(*more));
		r = tx_write(l, iov, k + count, n);
	} while (__builtin_expect(r == -EFAULT, 0) && puts_gone(&l->tx));
	if (__builtin_expect(r == -EFAULT, 0))
		r = 0; /* of `more`, which is copied then */
	return l->tx.err ? len : tx_written(&l->tx, (size_t)r);
}

void hd_tcp_tx_flush(struct hd_tcp_link *l)
{
	struct hd_tcp_tx *tx = &l->tx;
	struct iovec one;

	if (tx->full || tx->err || !hd_tcp_tx_pending(tx))
		return;
	if (tx->put_sent != tx->put_next || tx->head == tx->tail) {
		tx_push(l, NULL, 0, 0);
		return;
	}
	one = (struct iovec){ tx->buf + tx->head, waiting(tx) };
	tx_written(tx, (size_t)tx_write(l, &one, 1, one.iov_len)); /* all of it is ours */
	/* what one huge packet needed is not kept */
	if (tx->cap > 2 * TX_WAIT_MAX && !hd_tcp_tx_pending(tx))
		hd_tcp_tx_free(tx);
}

/* Something waits: the next poll writes it. */
static inline void tx_later(struct hd_tcp_link *l)
{
	if (l->waiting)
		return;
	l->waiting = true;
	hd_node_gathers(l->link.node, 1);
	TAILQ_INSERT_TAIL(&tcp_port_of(l)->waiting, l, waiting_entry);
	hd_node_stir(l->link.node);
}

/*
 * What a program polls for, so that it polls: it may wait for that. Who connects, leaves or
 * closes may never poll again.
 */
static inline bool is_polled_for(const struct hd_pkt *pkt)
{
	const uint64_t kinds = 1ull << HD_PKT_EAGER | 1ull << HD_PKT_RTS | 1ull << HD_PKT_WRITE |
			       1ull << HD_PKT_PUT | 1ull << HD_PKT_READ | 1ull << HD_PKT_ATOMIC |
			       1ull << HD_PKT_FLUSH;

	return pkt->kind < HD_PKT_KINDS && kinds >> pkt->kind & 1;
}

/* A call for the first one alone would cost a stream as much as the one for all the others. */
static inline bool tx_is_first(struct hd_tcp_link *l, const struct hd_pkt *pkt)
{
	uint32_t turns = tcp_port_of(l)->turn - l->tx.turn;

	return l->tx.streams && is_polled_for(pkt) ? turns > STREAM_TURNS : turns > 0;
}

/* Is it time for a write, with n more bytes? */
static inline bool tx_now(struct hd_tcp_link *l, const struct hd_pkt *pkt, size_t n)
{
	return !l->tx.full && (tx_is_first(l, pkt) || waiting(&l->tx) + n >= TX_WORTH);
}

/* May this link take a packet of n bytes, frame included? 0 or a negative errno. */
static inline int tx_check(struct hd_tcp_link *l, size_t n)
{
	if (__builtin_expect(l->link.down || l->state != HD_TCP_UP, 0))
		return l->state == HD_TCP_LAST ? -EAGAIN : -ENOTCONN;
	if (__builtin_expect(l->tx.err || !tx_room(&l->tx, n), 0))
		return -EAGAIN;
	return 0;
}

static void tx_end(struct hd_tcp_link *l, bool now)
{
	if (now)
		hd_tcp_tx_flush(l);
	if (hd_tcp_tx_pending(&l->tx))
		tx_later(l);
	hd_tcp_link_heat(l); /* an answer is likely */
}

/* What is copied: first the payload, which may not be there, then the header before it. */
static inline int tx_short(struct hd_tcp_link *l, const struct hd_pkt *pkt, const struct iovec *iov,
			   int count, size_t len)
{
	uint8_t *at = l->tx.buf + l->tx.tail + HD_TCP_HEAD;

	if (__builtin_expect(count == 1 && len <= HD_COPY_SMALL, 1)) {
		if (__builtin_expect(!hd_copy_small_out(at, iov->iov_base, len), 0))
			return -EFAULT;
	} else if (__builtin_expect(hd_iov_drain(iov, count, at, len), 0)) {
		return -EFAULT;
	}
	add_header(l, pkt, len);
	l->tx.tail += len;
	return 0;
}

/* What of a long payload and its check has not been taken: it goes by the buffer. */
static void add_rest(struct hd_tcp_tx *tx, const struct iovec *iov, int count, size_t len, size_t taken)
{
	size_t skip = hd_minus(taken, len);
	bool is_void = false;

	if (taken < len && add_payload(tx, iov, count, taken)) {
		is_void = true;
		memset(tx->buf + tx->tail, 0, len - taken);
		tx->tail += len - taken;
	}
	add_check(tx, is_void, skip);
}

/*
 * A long one, perhaps from where it is. It is looked whether it is there, since what has begun to
 * leave cannot be taken back; of what goes in that moment the check says so.
 */
static int sendv_long(struct hd_tcp_link *l, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		      size_t len)
{
	static uint32_t good;
	struct iovec all[HD_IOV_MAX + 2];
	size_t taken = 0;
	bool now;

	for (int i = 0; i < count; i++)
		if (!hd_guard_readable(iov[i].iov_base, iov[i].iov_len))
			return -EFAULT;
	now = tx_now(l, pkt, HD_TCP_HEAD + len);
	add_header(l, pkt, len);
	if (now) {
		memcpy(all, iov, (size_t)count * sizeof(*iov));
		all[count] = (struct iovec){ &good, sizeof(good) };
		taken = tx_push(l, all, count + 1, len + sizeof(good));
	}
	if (taken < len + sizeof(good))
		add_rest(&l->tx, iov, count, len, taken);
	tx_end(l, false);
	return 0;
}

int hd_tcp_send(struct hd_link *link, const struct hd_pkt *pkt, const void *buf, size_t len)
{
	const struct iovec iov = { (void *)buf, len };

	return hd_tcp_sendv(link, pkt, &iov, len ? 1 : 0, len);
}

int hd_tcp_sendv(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count,
		 size_t len)
{
	struct hd_tcp_link *l = tcp_link(link);
	int err = tx_check(l, HD_TCP_HEAD + len + HD_TCP_CHECK);

	if (err < 0)
		return err;
	if (len > HD_TCP_COPIED)
		return sendv_long(l, pkt, iov, count, len);
	err = tx_short(l, pkt, iov, count, len);
	if (err < 0)
		return err;
	tx_end(l, tx_now(l, pkt, 0));
	return 0;
}

static void disown(struct hd_tcp_put *p)
{
	free(p->own);
	p->own = NULL;
}

static void put_queue(struct hd_tcp_tx *tx, const struct iovec *iov, int count, size_t len,
		      struct hd_put *put)
{
	struct hd_tcp_put *p = &tx->put[tx->put_next++ % HD_TCP_PUTS];

	p->put = put;
	p->at = tx->base + tx->tail;
	p->left = len;
	p->cur = 0;
	p->count = count;
	p->is_void = false;
	memcpy(p->iov, iov, (size_t)count * sizeof(*iov));
}

/*
 * A put after a pause is written at once; in a stream of them, which goes on over the
 * turns, they are gathered.
 */
static bool put_is_first(struct hd_tcp_link *l)
{
	uint32_t turn = tcp_port_of(l)->turn;
	bool first = turn - l->tx.put_turn > 2; /* a poll is two turns */

	l->tx.put_turn = turn;
	return first;
}

int hd_tcp_put(struct hd_link *link, const struct hd_pkt *pkt, const struct iovec *iov, int count, size_t len,
	       struct hd_put *put)
{
	struct hd_tcp_link *l = tcp_link(link);
	struct hd_tcp_tx *tx = &l->tx;
	int err;

	if (len <= HD_TCP_COPIED) {
		err = hd_tcp_sendv(link, pkt, iov, count, len);
		return err < 0 ? err : 1;
	}
	err = tx_check(l, HD_TCP_HEAD + HD_TCP_CHECK);
	if (err < 0)
		return err;
	if (tx->put_next - tx->put_done == HD_TCP_PUTS)
		return -EAGAIN;
	add_header(l, pkt, len);
	put_queue(tx, iov, count, len, put);
	add_check(tx, false, 0);
	tx_end(l, tx->put_next - tx->put_sent == HD_TCP_PUTS || put_is_first(l));
	if (tx->err || tx->put_sent != tx->put_next)
		return 0;
	tx->put_sent--;
	tx->put_next--;
	disown(&tx->put[tx->put_next % HD_TCP_PUTS]);
	return __builtin_expect(tx->put[tx->put_next % HD_TCP_PUTS].is_void, 0) ? -EFAULT : 1;
}

void hd_tcp_tx_close(struct hd_tcp_tx *tx)
{
	for (int i = 0; i < HD_TCP_PUTS; i++)
		disown(&tx->put[i]);
	hd_tcp_tx_free(tx);
}

int hd_tcp_unput(struct hd_link *link, struct hd_put *put)
{
	struct hd_tcp_tx *tx = &tcp_link(link)->tx;
	int rc = 0;

	for (unsigned i = tx->put_done; i != tx->put_next;
	     i++) { /* none, where the socket has broken meanwhile */
		struct hd_tcp_put *p = &tx->put[i % HD_TCP_PUTS];

		if (p->put != put)
			continue;
		p->put = NULL;
		if (p->left && put_own(tx, p) < 0)
			rc = -ENOMEM;
	}
	return rc;
}

int hd_tcp_tx_done(struct hd_tcp_link *l)
{
	struct hd_tcp_tx *tx = &l->tx;
	int n = 0;

	while (tx->put_done != tx->put_sent && !l->link.down) {
		struct hd_tcp_put *p = &tx->put[tx->put_done++ % HD_TCP_PUTS];

		disown(p);
		if (p->put) {
			p->put->gone = p->is_void;
			p->put->done(p->put);
		}
		n++;
	}
	return n;
}

void hd_tcp_tx_grant(struct hd_tcp_link *l, bool now)
{
	static const struct hd_pkt pkt = { .kind = HD_TCP_PKT_GRANT };
	struct hd_tcp_tx *tx = &l->tx;

	if (__builtin_expect(tx->grant == tx->grant_sent, 1)) {
		tx->grant_polls = 0;
		return;
	}
	if (now || ++tx->grant_polls >= GRANT_POLLS)
		hd_tcp_sendv(&l->link, &pkt, NULL, 0, 0); /* no room: the next poll tries again */
}
