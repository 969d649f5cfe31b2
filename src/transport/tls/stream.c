/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a connection says and hears after its handshake. OpenSSL has handed over the secrets of both
 * directions and has no more to do: it would copy each byte once more at each end, take a
 * microsecond for each record beside AES, and end the process where memory of the program's is gone
 * (docs/rationale.md). Records are sealed in a buffer of ours, which one call gives to the socket,
 * and opened where they were read: a system call for each of 16 KiB would cost as much as sealing
 * it.
 */
#include "transport/tls/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* of a record, and a KeyUpdate before it */
#define RECORD_ROOM (HD_TLS_RECORD + 2 * HD_TLS_MORE + 5)
#define OUT_WORTH (256u << 10) /* sealed bytes that are worth a system call of their own */
#define OUT_MOST (OUT_WORTH + RECORD_ROOM)
/* sealed bytes that are read at once, by who hears more than HD_TLS_AHEAD */
#define AHEAD (256u << 10)
#define WORK 1024u   /* records that one call opens; others have their turn then */
#define KEY_WORK 16u /* what a new key costs, in records */
#define IDLE 32u     /* records in a row that say nothing: ours are never two */

/* ---- the socket ---- */

bool hd_tls_grow(struct hd_tls_buffer *b, size_t cap)
{
	uint8_t *more;

	if (cap <= b->cap)
		return true;
	more = realloc(b->at, cap);
	if (!more)
		return false;
	b->at = more;
	b->cap = cap;
	return true;
}

size_t hd_tls_recv(struct hd_seal *s, void *to, size_t len)
{
	ssize_t r;

	do {
		r = recv(s->fd, to, len, MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r > 0) {
		s->drained = (size_t)r < len; /* if more has come since, the next call takes it */
		return (size_t)r;
	}
	if (r == 0)
		s->ended = true;
	else if (errno == EAGAIN)
		s->dry = true;
	else
		s->err = -errno;
	return 0;
}

int hd_tls_flush(struct hd_seal *s)
{
	struct hd_tls_buffer *b = &s->out;
	ssize_t r;

	while (b->head < b->tail) {
		r = send(s->fd, b->at + b->head, b->tail - b->head, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (r > 0)
			b->head += (size_t)r;
		else if (r < 0 && errno != EINTR)
			return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0 : -errno;
	}
	b->head = b->tail = 0;
	return 0;
}

/* ---- what comes in ---- */

/* What is no data: 0, or a negative errno that ends the connection. */
static int hear_control(struct hd_seal *s, uint8_t type, const uint8_t *said, size_t len)
{
	static const uint8_t close_notify[2] = { 1, 0 }, key_update[4] = { 24, 0, 0, 1 };

	if (type == HD_TLS_ALERT && len == sizeof(close_notify) && !memcmp(said, close_notify, len)) {
		s->ended = true;
		return 0;
	}
	if (type != HD_TLS_HANDSHAKE || len != sizeof(key_update) + 1 ||
	    memcmp(said, key_update, sizeof(key_update)) != 0 || said[4] > 1)
		return -EBADMSG;
	s->renew |= said[4] == 1;
	s->work += KEY_WORK;
	return hd_tls_way_renew(&s->hears) ? 0 : -EIO;
}

/*
 * Open the next record, when it is there whole. 1, 0, or a negative errno that ends the connection.
 */
static int hear_record(struct hd_seal *s)
{
	struct hd_tls_buffer *b = &s->in;
	uint8_t *record = b->at + b->head, type;
	ssize_t len = hd_tls_record_len(record, b->tail - b->head), said;
	int rc;

	if (len <= 0)
		return (int)len;
	said = hd_tls_record_open(&s->hears, record, (size_t)len, &type);
	if (said < 0)
		return (int)said;
	b->head += (size_t)len;
	s->work++;
	s->idle = type == HD_TLS_DATA && said ? 0 : s->idle + 1;
	if (s->idle > IDLE)
		return -EBADMSG;
	if (type != HD_TLS_DATA) {
		rc = hear_control(s, type, record + HD_TLS_HEAD, (size_t)said);
		return rc < 0 ? rc : 1;
	}
	s->plain = record + HD_TLS_HEAD;
	s->plain_len = (size_t)said;
	return 1;
}

/*
 * Read what the socket has. No record stands whole in the buffer, so little has to move to its
 * front. False: nothing came.
 */
static bool in_fill(struct hd_seal *s)
{
	struct hd_tls_buffer *b = &s->in;
	bool full = b->tail == b->cap;
	size_t n;

	memmove(b->at, b->at + b->head, b->tail - b->head);
	b->tail -= b->head;
	b->head = 0;
	if (full && b->cap < AHEAD && !hd_tls_grow(b, AHEAD)) {
		s->err = -ENOMEM;
		return false;
	}
	n = hd_tls_recv(s, b->at + b->tail, b->cap - b->tail);
	b->tail += n;
	return n > 0;
}

/*
 * Something that was said is there. False: why not stands in err, ended and dry; or
 * this call has done enough.
 */
static bool has_plain(struct hd_seal *s)
{
	int rc;

	while (!s->plain_len && !s->err && !s->ended && s->work < WORK) {
		rc = hear_record(s);
		if (rc < 0)
			s->err = rc;
		else if (!rc && s->drained)
			s->dry = true;
		if (rc < 0 || (!rc && (s->dry || !in_fill(s))))
			return false;
	}
	return s->plain_len > 0;
}

ssize_t hd_tls_read(struct hd_seal *s, const struct iovec *iov, int count, bool *gone, bool *more)
{
	size_t all = 0;

	s->drained = s->dry = false;
	s->work = 0;
	ERR_set_mark();
	for (int i = 0; i < count; i++)
		for (size_t at = 0, n; at < iov[i].iov_len; at += n, all += n) {
			if (!has_plain(s))
				goto out;
			n = iov[i].iov_len - at < s->plain_len ? iov[i].iov_len - at : s->plain_len;
			if (s->sealer->copy((char *)iov[i].iov_base + at, s->plain, n))
				*gone = true;
			s->plain += n;
			s->plain_len -= n;
		}
out:
	ERR_pop_to_mark();
	*more = !s->dry;
	if (all)
		return (ssize_t)all; /* what is wrong will be so the next time */
	return s->err || s->ended ? s->err : -EAGAIN;
}

/* ---- what goes out ---- */

/* Where the next bytes are: segment i, from `at` on. */
struct cursor {
	const struct iovec *iov;
	int count, i;
	size_t at;
	bool gone; /* they are not there */
};

/* Copy the next bytes, a record's at most. How many. */
static size_t cursor_take(const struct hd_seal *s, struct cursor *c, uint8_t *to)
{
	size_t n = 0, part;

	while (c->i < c->count && n < HD_TLS_RECORD) {
		part = c->iov[c->i].iov_len - c->at;
		part = part < HD_TLS_RECORD - n ? part : HD_TLS_RECORD - n;
		if (part && s->sealer->copy(to + n, (const char *)c->iov[c->i].iov_base + c->at, part)) {
			c->gone = true;
			break; /* what stands before it goes first */
		}
		n += part;
		c->at += part;
		if (c->at == c->iov[c->i].iov_len) {
			c->i++;
			c->at = 0;
		}
	}
	return n;
}

/* Seal what stands where the next record's data does. */
static bool record_put(struct hd_seal *s, size_t len, enum hd_tls_type type)
{
	if (!hd_tls_record_seal(&s->says, s->out.at + s->out.tail, len, type))
		return false;
	s->out.tail += len + HD_TLS_MORE;
	return true;
}

/* A KeyUpdate that asks for none (4.6.3), and the next key. */
static bool key_next(struct hd_seal *s)
{
	static const uint8_t update[5] = { 24, 0, 0, 1, 0 };

	s->renew = false;
	memcpy(s->out.at + s->out.tail + HD_TLS_HEAD, update, sizeof(update));
	return record_put(s, sizeof(update), HD_TLS_HANDSHAKE) && hd_tls_way_renew(&s->says);
}

/* Seal a record of what is next; *len of it. 0 or a negative errno. */
static int record_next(struct hd_seal *s, struct cursor *c, size_t *len)
{
	*len = 0;
	if (!hd_tls_grow(&s->out, s->out.tail ? OUT_MOST : RECORD_ROOM))
		return -ENOMEM;
	if ((s->renew || s->says.number + 1 >= s->sealer->records) && !key_next(s))
		return -EIO;
	*len = cursor_take(s, c, s->out.at + s->out.tail + HD_TLS_HEAD);
	return !*len || record_put(s, *len, HD_TLS_DATA) ? 0 : -EIO;
}

ssize_t hd_tls_write(struct hd_seal *s, const struct iovec *iov, int count, size_t *left)
{
	struct cursor c = { .iov = iov, .count = count };
	size_t all = 0, len;
	int err = 0;

	if (s->out.head < s->out.tail)
		err = hd_tls_flush(s);
	ERR_set_mark();
	while (!err && s->out.tail == 0) {
		while (!err && s->out.tail < OUT_WORTH && c.i < count && !c.gone) {
			err = record_next(s, &c, &len);
			all += len;
		}
		if (!s->out.tail)
			break;
		if (!err)
			err = hd_tls_flush(s);
	}
	ERR_pop_to_mark();
	*left = s->out.tail - s->out.head;
	if (c.gone && !all && !err)
		return -EFAULT;
	return err ? err : (ssize_t)all;
}
