/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_cq(3). Reading exists once in source and eight times in code: by format, with and without the
 * node's lock; fi_cq_readfrom is not worth that and looks its format up.
 */
#include "front/ofi/av.h"
#include "front/ofi/cq_entry.h"
#include "front/ofi/newer.h"
#include "front/ofi/stubs.h"
#include "front/ofi/wait.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_SIZE 1024
#define MAX_SIZE (1u << 26)
#define FORMATS (FI_CQ_FORMAT_TAGGED + 1)

/* ---- reading --------------------------------------------------------------------------------- */

/* Where readfrom writes sources; src is NULL for read. */
struct reading {
	struct hd_fi_cq *cq;
	char *buf;
	size_t count;
	fi_addr_t *src;
	bool looks; /* a constant where speed counts */
};

/* Caller holds the node's lock: an endpoint's AV may be unbound, or grow, beside us. */
static fi_addr_t cq_source_of(const struct hd_fi_domain *domain, const struct hd_cqe *e)
{
	struct hd_fi_av *av = e->ep < domain->reader_count ? domain->readers[e->ep].av : NULL;

	return av && e->src ? hd_fi_av_source(av, e->src) : FI_ADDR_NOTAVAIL;
}

/* Not whether he has a name: with FI_AV_USER_ID that may be FI_ADDR_NOTAVAIL. */
static bool cq_knows_source(const struct hd_fi_domain *domain, const struct hd_cqe *e)
{
	struct hd_fi_av *av = domain->readers[e->ep].av;

	if (!av || !e->src)
		return false;
	return hd_fi_av_source(av, e->src) != FI_ADDR_NOTAVAIL || hd_fi_av_far_knows(av, e->src);
}

/*
 * FI_SOURCE_ERR: the message has been received, but whom it is from has to
 * be told by fi_cq_readerr.
 */
static bool is_stranger(const struct hd_fi_domain *domain, const struct hd_cqe *e)
{
	return e->flags & HD_C_RECV && e->ep < domain->reader_count && domain->readers[e->ep].source_err &&
	       !cq_knows_source(domain, e);
}

/* FI_MSG_PREFIX: a receive counts the space in front of its message, and begins with it. */
static struct hd_cqe with_prefix(const struct hd_fi_domain *domain, const struct hd_cqe *e)
{
	size_t prefix = e->ep < domain->reader_count ? domain->readers[e->ep].prefix : 0;
	struct hd_cqe out = *e;

	if (!prefix || !(e->flags & HD_C_RECV))
		return out;
	if (!e->err || e->err == HD_S_LENGTH)
		out.len += prefix;
	if (e->buf)
		out.buf = (char *)e->buf - prefix;
	return out;
}

/* The oldest entry, where it may be read at once. */
HD_FI_INLINE const struct hd_cqe *cq_at_once(const struct hd_cq *cq)
{
	const struct hd_cqe *e = hd_cq_peek(cq);

	return e && !hd_fi_rare(hd_cq_gathers(cq)) ? e : NULL;
}

/* The oldest entry. Progress is made at most once, and only when the queue is empty. */
HD_FI_INLINE const struct hd_cqe *cq_first(struct hd_cq *cq)
{
	const struct hd_cqe *e = cq_at_once(cq);

	return e ? e : hd_cq_poll(cq);
}

/* fi_cq_read of no entries asks for progress, whatever is there to read. */
static __attribute__((noinline)) ssize_t read_none(const struct hd_fi_cq *cq, bool looks)
{
	const struct hd_cqe *e;

	hd_node_poll(cq->domain->node);
	e = hd_cq_peek(cq->cq);
	if (!e)
		return -FI_EAGAIN;
	return e->err || (looks && is_stranger(cq->domain, e)) ? -FI_EAVAIL : 0;
}

static __attribute__((noinline)) ssize_t refilled(struct hd_cq *cq, ssize_t got)
{
	hd_cq_refill(cq);
	return got;
}

/*
 * From e on, the oldest. An error is left for fi_cq_readerr; the entries before it are read first.
 * Nothing is called on the way of plain entries, and the queue is looked at anew for each, so that
 * no register has to be saved.
 */
HD_FI_INLINE ssize_t read_entries(const struct reading r, const struct hd_cqe *e, enum fi_cq_format format)
{
	struct hd_cq *cq = r.cq->cq;
	bool fails = false;
	size_t n = 0;

	if (hd_fi_rare(!r.count))
		return read_none(r.cq, r.looks);
	do {
		fails = hd_fi_rare(e->err) || (r.looks && is_stranger(r.cq->domain, e));
		if (fails)
			break;
		if (r.looks) {
			struct hd_cqe moved = with_prefix(r.cq->domain, e);

			hd_fi_cqe_put(&moved, format, r.buf + n * hd_fi_cqe_size(format));
		} else {
			hd_fi_cqe_put(e, format, r.buf + n * hd_fi_cqe_size(format));
		}
		if (r.src)
			r.src[n] = cq_source_of(r.cq->domain, e);
		hd_cq_step(cq);
		__asm__ volatile("" ::: "memory"); /* nothing of the queue is kept in a register */
		n++;
		e = n < r.count ? hd_cq_peek(cq) : NULL;
	} while (e);
	if (hd_fi_rare(hd_cq_overflowed(cq)))
		return refilled(cq, n ? (ssize_t)n : -FI_EAVAIL);
	return n ? (ssize_t)n : -FI_EAVAIL;
}

typedef ssize_t entries_fn(struct hd_fi_cq *cq, void *buf, size_t count, const struct hd_cqe *e);

/*
 * A program that polls in vain goes through this alone: what a reader keeps in registers is saved
 * where there is something to read.
 */
HD_FI_INLINE ssize_t read_cq(struct fid_cq *fid, void *buf, size_t count, entries_fn *entries, bool locked)
{
	struct hd_fi_cq *cq = (struct hd_fi_cq *)fid;
	const struct hd_cqe *e = locked ? NULL : cq_at_once(cq->cq);
	ssize_t rc = -FI_EAGAIN;

	if (e)
		return entries(cq, buf, count, e);
	if (locked)
		hd_node_lock(cq->domain->node);
	e = locked ? cq_first(cq->cq) : hd_cq_poll(cq->cq);
	if (e && !locked)
		return entries(cq, buf, count, e);
	if (e)
		rc = entries(cq, buf, count, e);
	if (locked)
		hd_node_unlock(cq->domain->node);
	if (rc == -FI_EAGAIN)
		hd_node_rest(cq->domain->node);
	return rc;
}

#define CQ_READ(name, format, locked) \
	static __attribute__((noinline)) \
	ssize_t name##_entries(struct hd_fi_cq *cq, void *buf, size_t count, const struct hd_cqe *e) \
	{ \
		return read_entries((struct reading){ .cq = cq, .buf = buf, .count = count }, e, format); \
	} \
	static ssize_t name(struct fid_cq *cq, void *buf, size_t count) \
	{ \
		return read_cq(cq, buf, count, name##_entries, locked); \
	}

CQ_READ(read_context, FI_CQ_FORMAT_CONTEXT, false)
CQ_READ(read_msg, FI_CQ_FORMAT_MSG, false)
CQ_READ(read_data, FI_CQ_FORMAT_DATA, false)
CQ_READ(read_tagged, FI_CQ_FORMAT_TAGGED, false)
CQ_READ(read_context_locked, FI_CQ_FORMAT_CONTEXT, true)
CQ_READ(read_msg_locked, FI_CQ_FORMAT_MSG, true)
CQ_READ(read_data_locked, FI_CQ_FORMAT_DATA, true)
CQ_READ(read_tagged_locked, FI_CQ_FORMAT_TAGGED, true)

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	struct hd_fi_cq *cq = (struct hd_fi_cq *)fid;
	const struct reading r = { .cq = cq, .buf = buf, .count = count, .src = src, .looks = cq->looks };
	const struct hd_cqe *e;
	ssize_t rc = -FI_EAGAIN;

	hd_fi_lock(cq->domain);
	e = cq_first(cq->cq);
	if (e)
		rc = read_entries(r, e, cq->format);
	hd_fi_unlock(cq->domain);
	if (rc == -FI_EAGAIN)
		hd_node_rest(cq->domain->node);
	return rc;
}

static ssize_t read_looking(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/* ---- blocking reads -------------------------------------------------------------------------- */

/*
 * How many entries end the wait: with FI_CQ_COND_THRESHOLD the condition is the number itself, and
 * no more than there is room for.
 */
static size_t wanted_entries(const struct hd_fi_cq *cq, const void *cond, size_t room)
{
	size_t wanted = cq->cond == FI_CQ_COND_THRESHOLD ? (uintptr_t)cond : 1;

	if (wanted > room)
		wanted = room;
	return wanted ? wanted : 1;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src, const void *cond,
			    int timeout)
{
	struct hd_fi_cq *cq = (struct hd_fi_cq *)fid;
	uint64_t end = hd_deadline_ns(timeout);
	size_t wanted = wanted_entries(cq, cond, count);
	ssize_t got = -FI_EAGAIN;

	if (!hd_fi_waiting_blocks(&cq->waiting))
		return hd_fi_no(FI_EINVAL, "fi_cq_sread of a queue without a wait object");
	if (wanted == 1)
		got = cq_readfrom(fid, buf, count, src);
	while (got == -FI_EAGAIN) {
		int left = hd_left_ms(end);
		int rc = hd_cq_wait(cq->cq, wanted, left);

		if (rc && rc != -EAGAIN && rc != -ECANCELED && rc != -EINTR)
			return hd_fi_ret(rc);
		got = cq_readfrom(fid, buf, count, src);
		if (rc == -ECANCELED || rc == -EINTR ||
		    !left) /* fi_cq(3): also whoever is signalled gets -FI_EAGAIN */
			break;
	}
	return got;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct hd_fi_cq *cq = (struct hd_fi_cq *)fid;

	if (cq->waiting.obj == FI_WAIT_NONE)
		return hd_fi_no(FI_EINVAL, "fi_cq_signal of a queue without a wait object");
	hd_cq_signal(cq->cq);
	return 0;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* The address of a stranger, for fi_av_insert(3): bytes that were put there, `room` at most. */
static size_t put_stranger(const struct hd_fi_cq *cq, const struct hd_cqe *e, void *to, size_t room)
{
	int family = hd_fi_family(cq->domain->addr_format);
	struct sockaddr_storage name;
	size_t len = 0;

	if (!e->err && !hd_source_name(cq->domain->node, e->src, family, &name))
		len = hd_sockaddr_size((struct sockaddr *)&name);
	if (len > room)
		len = room;
	if (len)
		memcpy(to, &name, len);
	return len;
}

/* fi_av(3): what the key of a stranger was inserted as; of nobody else anything is told here. */
static fi_addr_t cq_key_of(const struct hd_fi_domain *domain, const struct hd_cqe *e)
{
	fi_addr_t key = !e->err && e->ep < domain->reader_count ? domain->readers[e->ep].key : 0;

	return key ? key : FI_ADDR_NOTAVAIL;
}

/*
 * Error data is the address of a stranger, and there is none of real errors. Who has no room for it
 * gets it in a buffer of the queue. A program built for an interface before 1.5 has no
 * err_data_size behind err_data, so that must not be written, and no buffer there.
 */
static void put_error_data(struct hd_fi_cq *cq, const struct hd_cqe *e, struct fi_cq_err_entry *out)
{
	const bool old = FI_VERSION_LT(cq->domain->fabric->fid.api_version, FI_VERSION(1, 5));
	size_t len;

	if (old || !out->err_data_size) {
		len = put_stranger(cq, e, &cq->stranger, sizeof(cq->stranger));
		out->err_data = len ? &cq->stranger : NULL;
	} else {
		len = out->err_data ? put_stranger(cq, e, out->err_data, out->err_data_size) : 0;
	}
	if (!old)
		out->err_data_size = len;
}

/* A program built for an interface before 1.20 has no src_addr behind those. */
static void put_error(struct hd_fi_cq *cq, const struct hd_cqe *e, struct fi_cq_err_entry *out)
{
	out->op_context = e->ctx;
	out->flags = hd_fi_cqe_flags(e->flags);
	out->len = e->len;
	out->buf = e->buf;
	out->data = e->imm;
	out->tag = e->tag;
	out->olen = e->olen;
	out->err = e->err ? hd_fi_errno(hd_status_errno(e->err)) : FI_EADDRNOTAVAIL;
	out->prov_errno = hd_status_errno(e->err);
	put_error_data(cq, e, out);
	if (FI_VERSION_GE(cq->domain->fabric->fid.api_version, FI_VERSION(1, 20)))
		hd_fi_err_source(out, cq_key_of(cq->domain, e));
}

/*
 * There are no flags for it, and some programs say FI_SEND or FI_RECV: an error is not
 * kept from them for that.
 */
static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct hd_fi_cq *cq = (struct hd_fi_cq *)fid;
	const struct hd_cqe *e;
	ssize_t rc = -FI_EAGAIN;

	if (!buf)
		return hd_fi_no(FI_EINVAL, "fi_cq_readerr without a buffer");
	hd_fi_lock(cq->domain);
	e = hd_cq_peek(cq->cq);
	if (e && (e->err || (cq->looks && is_stranger(cq->domain, e)))) {
		struct hd_cqe moved = cq->looks ? with_prefix(cq->domain, e) : *e;

		put_error(cq, &moved, buf);
		hd_cq_pop(cq->cq);
		rc = 1;
	}
	hd_fi_unlock(cq->domain);
	return rc;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	return hd_fi_strerror(prov_errno, buf, len);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

int hd_fi_cq_trywait(struct fid *fid)
{
	struct hd_fi_cq *cq = hd_fi_as(hd_fi_cq, HD_FI_CQ, FI_CLASS_CQ, fid);
	int rc;

	if (!cq)
		return hd_fi_no(FI_EINVAL, "fi_trywait of a queue that is none");
	if (hd_node_dead(cq->domain->node))
		return hd_fi_no(FI_EOPBADSTATE,
				"the domain is that of the process which has forked this one");
	if (cq->waiting.obj != FI_WAIT_FD)
		return hd_fi_waiting_trywait(&cq->waiting);
	hd_fi_lock(cq->domain);
	rc = hd_cq_arm(cq->cq);
	hd_fi_unlock(cq->domain);
	return hd_fi_ret(rc);
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_cq *cq = (struct hd_fi_cq *)fid;

	return hd_fi_waiting_control(&cq->waiting, hd_cq_fd(cq->cq), command, arg);
}

static int close_engine_cq(struct hd_fi_cq *cq)
{
	int rc;

	hd_cq_leave(cq->cq);
	hd_fi_lock(cq->domain);
	rc = hd_cq_close(cq->cq);
	hd_fi_unlock(cq->domain);
	return hd_fi_ret(rc, "fi_close of a completion queue that is in use");
}

static int cq_close(struct fid *fid)
{
	struct hd_fi_cq *cq = (struct hd_fi_cq *)fid;
	int rc = atomic_load(&cq->users)
			 ? hd_fi_no(FI_EBUSY, "fi_close of a completion queue that endpoints are bound to")
			 : close_engine_cq(cq);

	if (rc)
		return rc;
	cq->magic = 0;
	hd_fi_waiting_drop(&cq->waiting, cq->domain, &cq->object);
	free(cq);
	return 0;
}

static struct fi_ops cq_fid_ops = HD_FI_FID_OPS(cq_close, hd_fi_no_bind, cq_control);

#define CQ_OPS(reader) \
	{ \
		.size = sizeof(struct fi_ops_cq), .read = reader, .readfrom = cq_readfrom, \
		.readerr = cq_readerr, .sread = cq_sread, .sreadfrom = cq_sreadfrom, .signal = cq_signal, \
		.strerror = cq_strerror \
	}

static struct fi_ops_cq cq_ops[FORMATS][2] = {
	[FI_CQ_FORMAT_CONTEXT] = { CQ_OPS(read_context), CQ_OPS(read_context_locked) },
	[FI_CQ_FORMAT_MSG] = { CQ_OPS(read_msg), CQ_OPS(read_msg_locked) },
	[FI_CQ_FORMAT_DATA] = { CQ_OPS(read_data), CQ_OPS(read_data_locked) },
	[FI_CQ_FORMAT_TAGGED] = { CQ_OPS(read_tagged), CQ_OPS(read_tagged_locked) },
};

static struct fi_ops_cq looking_ops = CQ_OPS(read_looking);

void hd_fi_cq_share(struct fid *fid)
{
	struct hd_fi_cq *cq = hd_fi_as(hd_fi_cq, HD_FI_CQ, FI_CLASS_CQ, fid);

	if (cq && !cq->looks)
		cq->fid.ops = &cq_ops[cq->format][true];
}

void hd_fi_cq_look(struct hd_fi_cq *cq)
{
	cq->looks = true;
	cq->fid.ops = &looking_ops;
}

static int cq_check_attr(const struct fi_cq_attr *attr)
{
	if (attr->flags & FI_PEER)
		return hd_fi_no(FI_EINVAL,
				"fi_cq_open with FI_PEER: completions of peer providers are not offered");
	if (attr->flags & ~FI_AFFINITY)
		return hd_fi_no(FI_EBADFLAGS, "fi_cq_open with flags that it does not take");
	if (attr->format > FI_CQ_FORMAT_TAGGED)
		return hd_fi_no(FI_ENOSYS, "fi_cq_open with a format that there is not");
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_cond != FI_CQ_COND_NONE &&
	    attr->wait_cond != FI_CQ_COND_THRESHOLD)
		return hd_fi_no(FI_EINVAL, "fi_cq_open with a condition of waiting that there is not");
	return attr->size > MAX_SIZE ? hd_fi_no(FI_EINVAL, "fi_cq_open with more entries than 67108864") : 0;
}

static int ofi_cq_make(struct hd_fi_domain *domain, const struct fi_cq_attr *attr, struct hd_fi_cq *cq)
{
	const struct hd_fi_wait_want want = { .obj = attr->wait_obj,
					      .set = attr->wait_set,
					      .fabric = domain->fabric,
					      .can_bell = domain->locked };
	struct hd_cq_attr a = { .size = attr->size ? (uint32_t)attr->size : DEFAULT_SIZE };
	int rc = hd_fi_waiting_open(&want, &cq->waiting);

	if (rc)
		return rc;
	a.any_signal = true;
	a.waitable = cq->waiting.obj == FI_WAIT_FD;
	a.overruns = domain->overruns;
	cq->cond = attr->wait_cond;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr->format;
	cq->domain = domain;
	hd_fi_lock(domain);
	rc = hd_cq_open(domain->node, &a, &cq->cq);
	hd_fi_unlock(domain);
	if (!rc && cq->waiting.set) {
		rc = hd_cq_join(cq->cq, cq->waiting.set);
		if (rc)
			close_engine_cq(cq);
	}
	if (rc)
		hd_fi_waiting_close(&cq->waiting);
	return hd_fi_ret(rc, "fi_cq_open");
}

int hd_fi_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	struct hd_fi_domain *domain = hd_fi_as(hd_fi_domain, HD_FI_DOMAIN, FI_CLASS_DOMAIN, domain_fid);
	static const struct fi_cq_attr defaults;
	struct hd_fi_cq *cq;
	int rc;

	if (!domain || !out)
		return hd_fi_no(FI_EINVAL, "fi_cq_open without a domain, or room for the queue");
	rc = attr ? cq_check_attr(attr) : 0;
	if (rc)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return hd_fi_no(FI_ENOMEM);
	rc = ofi_cq_make(domain, attr ? attr : &defaults, cq);
	if (rc) {
		free(cq);
		return rc;
	}
	if (attr && attr->format == FI_CQ_FORMAT_UNSPEC)
		attr->format = cq->format;
	cq->fid.fid = (struct fid){ .fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops };
	cq->fid.ops = &cq_ops[cq->format][domain->locked];
	cq->magic = HD_FI_CQ;
	hd_fi_domain_add(domain, &cq->object, &cq->fid.fid);
	*out = &cq->fid;
	return 0;
}
