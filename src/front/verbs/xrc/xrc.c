/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_open_xrcd(3), ibv_open_qp(3). What is in a domain without an inode is found through its
 * context alone. That of an inode has all contexts of a user on this host (and in one network
 * namespace): its number is drawn at random by the first who opens it, and the others find it by
 * the inode, in a file in memory that only this user can read (base/shared.h). Whoever has that
 * file open has the domain, which is what O_CREAT and O_EXCL ask for. Nobody else can name it.
 */
#include "front/verbs/xrc/xrc.h"
#include "base/advice.h"
#include "base/log.h"
#include "base/random.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t hv_xrcd_number(const struct hv_xrcd *xrcd)
{
	return xrcd->domain->number;
}

/* ---- the secret ------------------------------------------------------------------------------ */

#define SECRET_MAGIC UINT64_C(0x6372786c64646568) /* "heddlxrc" */
#define SECRET_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* What all who have an inode's domain open have in common. */
struct xrc_secret {
	uint64_t magic, number;
	char name[64];
};

static bool xrc_is_secret(void *arg, int fd, const struct stat *st)
{
	struct xrc_secret *want = arg, s;

	if (st->st_size != sizeof(s) || pread(fd, &s, sizeof(s), 0) != sizeof(s) || s.magic != SECRET_MAGIC ||
	    !s.number || memcmp(s.name, want->name, sizeof(s.name)))
		return false;
	want->number = s.number;
	return true;
}

static int xrc_secret_make(void *arg)
{
	int fd = memfd_create("heddle-xrc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct xrc_secret *s = arg;

	if (fd < 0)
		return -errno;
	if (hd_random(&s->number, sizeof(s->number)) || !s->number ||
	    write(fd, s, sizeof(*s)) != sizeof(*s) || fcntl(fd, F_ADD_SEALS, SECRET_SEALS | F_SEAL_SEAL)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* Where the kernel gives no file in memory, the inode's domain is this context's alone. */
static int xrc_secret_alone(int oflags, uint64_t *number)
{
	HD_LOG_EVERY_MS(1000, HD_LOG_WARN,
			"no file in memory (memfd_create): an XRC domain is for one context alone%s",
			hd_advice(EPERM));
	if (!(oflags & O_CREAT))
		return EAGAIN;
	return -hd_random(number, sizeof(*number));
}

/*
 * 0 or a positive errno, as the kernel has them: EINVAL where it is there and is not to be,
 * EAGAIN the other way round.
 */
static int xrc_secret_open(const struct hv_context *ctx, const struct stat *st, int oflags,
			   struct hd_shared *out, uint64_t *number)
{
	struct xrc_secret s = { .magic = SECRET_MAGIC };
	const struct hd_shared_attr attr = { .kind = "xrc",
					     .name = s.name,
					     .read_only = true,
					     .must_exist = !(oflags & O_CREAT),
					     .must_not_exist = oflags & O_EXCL,
					     .seals = SECRET_SEALS,
					     .is_it = xrc_is_secret,
					     .make = xrc_secret_make,
					     .arg = &s };
	int rc;

	snprintf(s.name, sizeof(s.name), "%s/%llx/%llx", ctx->device->name, (unsigned long long)st->st_dev,
		 (unsigned long long)st->st_ino);
	rc = hd_shared_open(&attr, out);
	if (rc == -EOPNOTSUPP)
		return xrc_secret_alone(oflags, number);
	*number = s.number;
	return rc == -EEXIST ? EINVAL : rc == -ENOENT ? EAGAIN : -rc;
}

/* ---- domains --------------------------------------------------------------------------------- */

static struct hv_domain *domain_of(const struct hv_context *ctx, const struct stat *st)
{
	struct hv_domain *d = ctx->domains;

	while (d && !(d->is_inode && d->dev == st->st_dev && d->ino == st->st_ino))
		d = d->next;
	return d;
}

static struct hv_domain *domain_make(struct hv_context *ctx)
{
	struct hv_domain *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->number = ++ctx->last_domain;
	d->ctx = ctx;
	d->secret = HD_SHARED_NONE;
	d->file = -1;
	d->next = ctx->domains;
	ctx->domains = d;
	return d;
}

void hv_domain_put(struct hv_domain *d)
{
	struct hv_domain **at = &d->ctx->domains;

	if (--d->users > 0)
		return;
	hv_lend_close(d);
	if (d->voice)
		hd_ep_close(d->voice);
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	hd_shared_close(&d->secret);
	if (d->file >= 0)
		close(d->file);
	free(d);
}

/*
 * The inode alone: a duplicate would hold the program's flock(2), and take its fcntl(2) locks away
 * when it is closed. -1: errno.
 */
static int inode_keep(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_PATH | O_CLOEXEC);
}

/* That of an inode, which this context has not open. 0 or a positive errno. */
static int domain_claim(struct hv_context *ctx, const struct stat *st, const struct ibv_xrcd_init_attr *attr,
			struct hv_domain **out)
{
	struct hv_domain *d = NULL;
	struct hd_shared secret;
	uint64_t number;
	int rc = xrc_secret_open(ctx, st, attr->oflags, &secret, &number), file = -1;

	if (!rc && (file = inode_keep(attr->fd)) < 0)
		rc = errno;
	if (!rc && !(d = domain_make(ctx)))
		rc = ENOMEM;
	if (rc) {
		hd_shared_close(&secret);
		if (file >= 0)
			close(file);
		return rc;
	}
	d->is_inode = true;
	d->dev = st->st_dev;
	d->ino = st->st_ino;
	d->secret = secret;
	d->file = file;
	d->number = number;
	*out = d;
	return 0;
}

/*
 * 0 or a positive errno, as the kernel has them: EAGAIN where it is to be there
 * and is not. With the lock.
 */
static int xrc_domain_get(struct hv_context *ctx, const struct ibv_xrcd_init_attr *attr,
			  struct hv_domain **out)
{
	struct stat st;

	if (attr->fd == -1) {
		*out = domain_make(ctx);
		return *out ? 0 : ENOMEM;
	}
	if (fstat(attr->fd, &st) < 0)
		return errno;
	*out = domain_of(ctx, &st);
	if (!*out)
		return domain_claim(ctx, &st, attr, out);
	return attr->oflags & O_EXCL ? EINVAL : 0;
}

int hv_domain_voice(struct hv_domain *d)
{
	const struct hd_ep_attr attr = { .type = HD_EP_RDM,
					 .policy = HD_EP_NUMBERED | HD_EP_XRC_QUEUE,
					 .asked = hv_far_told,
					 .owner = d };

	return d->voice ? 0 : hd_ep_open(d->ctx->node, &attr, &d->voice);
}

int hv_domain_dest(const struct hv_domain *d, uint32_t number, struct hd_dest **out)
{
	struct sockaddr_storage name;

	if (!hd_node_address(d->ctx->node, 0, &name))
		return -ENOENT;
	hd_name_set_number((struct sockaddr *)&name, number);
	return hd_dest_get(d->ctx->node, (struct sockaddr *)&name, out);
}

bool hv_ask_is_right(const struct hv_domain *d, const struct hd_question *q, enum hv_ask what, size_t len)
{
	const struct hv_ask_head *head = q->data;

	return d->is_inode && q->len == len && head->what == what && head->domain == d->number;
}

struct ibv_xrcd *hv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_xrcd *xrcd;
	int rc;

	if (attr->comp_mask & ~(uint32_t)(IBV_XRCD_INIT_ATTR_RESERVED - 1))
		return hv_fail(EOPNOTSUPP);
	if (attr->comp_mask != IBV_XRCD_INIT_ATTR_RESERVED - 1)
		return hv_fail(EINVAL);
	xrcd = hv_object_new(ctx, HV_KIND_XRCD, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	xrcd->pub.context = context;
	xrcd->ctx = ctx;
	rc = EIO;
	if (hv_enter(ctx)) {
		rc = xrc_domain_get(ctx, attr, &xrcd->domain);
		if (!rc) {
			xrcd->domain->users++;
			ctx->objects++;
		}
		hv_leave(ctx);
	}
	if (!rc) {
		hv_object_show(xrcd, 0);
		return &xrcd->pub;
	}
	hv_object_free(ctx, xrcd);
	return hv_fail(rc);
}

int hv_close_xrcd(struct ibv_xrcd *pub)
{
	struct hv_context *ctx = hv_context_of(pub->context);
	struct hv_xrcd *xrcd = hv_xrcd_of(pub);
	int rc = HV_CHECK_PLAIN(pub);

	if (rc)
		return rc;
	if (hv_enter(ctx)) {
		if (xrcd->users) {
			hv_leave(ctx);
			return EBUSY;
		}
		hv_domain_put(xrcd->domain);
		ctx->objects--;
		hv_leave(ctx);
	}
	hv_object_free(ctx, xrcd);
	return 0;
}

/* ---- handles of queue pairs that receive ----------------------------------------------------- */

/* Nothing is posted to handles. */
static const enum hd_qp_state nothing_posted = HD_QP_RESET;

static struct hv_qp *xrc_handle_make(struct hv_xrcd *xrcd, void *qp_context)
{
	struct hv_qp *handle = hv_object_new(xrcd->ctx, HV_KIND_QP, sizeof(*handle));
	struct ibv_qp *pub;

	if (!handle)
		return NULL;
	pub = &handle->pub.qp_base;
	*pub = (struct ibv_qp){ .context = &xrcd->ctx->pub.context,
				.qp_context = qp_context,
				.handle = ++xrcd->ctx->next_handle,
				.qp_type = IBV_QPT_XRC_RECV };
	pthread_mutex_init(&pub->mutex, NULL);
	pthread_cond_init(&pub->cond, NULL);
	handle->target = (struct hv_event_target){ &pub->mutex, &pub->cond, &pub->events_completed, 0 };
	handle->ctx = xrcd->ctx;
	hv_object_show(handle, pub->handle);
	handle->transport = HV_XRC_RECV;
	handle->state = &nothing_posted;
	handle->xrcd = xrcd;
	xrcd->users++;
	xrcd->ctx->objects++;
	return handle;
}

struct hv_qp *hv_xrc_handle(struct hv_qp *real, struct hv_xrcd *xrcd, void *qp_context)
{
	struct hv_qp *handle = xrc_handle_make(xrcd, qp_context);

	if (!handle || !real)
		return handle;
	handle->pub.qp_base.qp_num = real->pub.qp_base.qp_num;
	handle->pub.qp_base.state = hv_qp_look(real);
	handle->real = real;
	handle->next = real->handles;
	real->handles = handle;
	return handle;
}

bool hv_xrc_is_held(const struct hv_qp *real)
{
	return real->handles || !LIST_EMPTY(&real->sharers);
}

bool hv_xrc_unhandle(struct hv_qp *handle)
{
	struct hv_qp **at = handle->real ? &handle->real->handles : NULL;

	while (at && *at != handle)
		at = &(*at)->next;
	if (at)
		*at = handle->next;
	handle->xrcd->users--;
	handle->ctx->objects--;
	return handle->real && !hv_xrc_is_held(handle->real);
}

/* The one with this number and domain. */
static struct hv_qp *xrc_find(const struct hv_context *ctx, uint32_t number, uint64_t domain)
{
	const struct hv_qps *qps = ctx->qps;

	for (uint32_t i = 0; qps && i < qps->size; i++) {
		struct hv_qp *qp = qps->at[i];

		if (qp && qp->domain && qp->pub.qp_base.qp_num == number && qp->domain->number == domain)
			return qp;
	}
	return NULL;
}

struct ibv_qp *hv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needs = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct hv_context *ctx = hv_context_of(context);
	struct hv_qp *real, *handle = NULL;
	int rc = EINVAL;

	if (attr->comp_mask & ~(uint32_t)(IBV_QP_OPEN_ATTR_RESERVED - 1))
		return hv_fail(EOPNOTSUPP);
	if ((attr->comp_mask & needs) != needs || !attr->xrcd || attr->xrcd->context != context ||
	    attr->qp_type != IBV_QPT_XRC_RECV)
		return hv_fail(EINVAL);
	if (!hv_enter(ctx))
		return hv_fail(EIO);
	real = xrc_find(ctx, attr->qp_num, hv_xrcd_number(hv_xrcd_of(attr->xrcd)));
	if (real) {
		void *own = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;

		handle = hv_xrc_handle(real, hv_xrcd_of(attr->xrcd), own);
		rc = ENOMEM;
	}
	hv_leave(ctx);
	if (!real && hv_xrcd_of(attr->xrcd)->domain->is_inode)
		return hv_far_open(hv_xrcd_of(attr->xrcd), attr->qp_num,
				   attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
	return handle ? &handle->pub.qp_base : hv_fail(rc);
}
