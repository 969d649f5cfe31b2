/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * ibv_open_xrcd(3), ibv_open_qp(3). What is in a domain without an inode is found through its context alone. That a domain of an inode exists,
 * which O_CREAT and O_EXCL ask for, all processes of the host (and network namespace) see: each context that has it open binds one of a row
 * of abstract UNIX sockets with the inode's name, and these go with their process. Its number is made of the inode, the user and the host's
 * boot, so that all contexts have the same and nobody on another host can guess it.
 */
#include "front/verbs/xrc/xrc.h"
#include "base/socket.h"
#include "front/verbs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLAIMS 512 /* contexts of a host that may have one domain open */

uint64_t hv_xrcd_number(const struct hv_xrcd *xrcd)
{
	return xrcd->domain->number;
}

/* ---- who else has it ----------------------------------------------------------------------------------------------------------- */

static socklen_t xrc_claim_name(const struct hv_context *ctx, const struct stat *st, int i,
				struct sockaddr_un *out)
{
	int n;

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "heddle/xrcd/%s/%x/%llx/%llx/%d",
		     ctx->device->name, (unsigned)geteuid(), (unsigned long long)st->st_dev,
		     (unsigned long long)st->st_ino, i);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int claim_socket(void)
{
	int fd = hd_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Have the first that is free: the descriptor, and which in *at; -errno. */
static int claim(const struct hv_context *ctx, const struct stat *st, int *at)
{
	struct sockaddr_un name;
	int fd = claim_socket(), rc = -ENOMEM;

	for (*at = 0; fd >= 0 && *at < CLAIMS; ++*at) {
		socklen_t len = xrc_claim_name(ctx, st, *at, &name);

		if (!bind(fd, (struct sockaddr *)&name, len))
			return fd;
		rc = -errno;
		if (rc != -EADDRINUSE)
			break;
	}
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : rc == -EADDRINUSE ? -ENOMEM : rc;
}

/* Has anybody else one of them? */
static bool xrc_is_claimed(const struct hv_context *ctx, const struct stat *st, int but)
{
	struct sockaddr_un name;
	int fd = claim_socket();
	bool found = false;

	for (int i = 0; fd >= 0 && i < CLAIMS && !found; i++) {
		socklen_t len = xrc_claim_name(ctx, st, i, &name);

		found = i != but && !connect(fd, (struct sockaddr *)&name, len);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* ---- domains ------------------------------------------------------------------------------------------------------------------- */

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
	d->claim = d->file = -1;
	d->next = ctx->domains;
	ctx->domains = d;
	return d;
}

/* See the top. */
static uint64_t xrc_number_of(const struct hv_context *ctx, const struct stat *st)
{
	char boot[64] = "", text[256];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	int n;

	if (f && !fgets(boot, sizeof(boot), f))
		boot[0] = '\0';
	if (f)
		fclose(f);
	n = snprintf(text, sizeof(text), "xrc domain %s %s %x %llx %llx", boot, ctx->device->name,
		     (unsigned)geteuid(), (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
	return hd_key_digest(text, (size_t)n);
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
	if (d->claim >= 0)
		close(d->claim);
	if (d->file >= 0)
		close(d->file);
	free(d);
}

/* The inode alone: a duplicate would hold the program's flock(2), and take its fcntl(2) locks away when it is closed. -1: errno. */
static int inode_keep(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_PATH | O_CLOEXEC);
}

/* Whether it may be opened that exists or does not: 0 or a positive errno. */
static int judge(bool exists, int oflags)
{
	if (exists)
		return oflags & O_EXCL ? EINVAL : 0;
	return oflags & O_CREAT ? 0 : EAGAIN;
}

/* That of an inode, which this context has not open. 0 or a positive errno. */
static int domain_claim(struct hv_context *ctx, const struct stat *st, const struct ibv_xrcd_init_attr *attr,
			struct hv_domain **out)
{
	struct hv_domain *d = NULL;
	int at, rc, file = -1, fd = claim(ctx, st, &at);

	if (fd < 0)
		return -fd;
	rc = judge(xrc_is_claimed(ctx, st, at), attr->oflags);
	if (!rc && (file = inode_keep(attr->fd)) < 0)
		rc = errno;
	if (!rc && !(d = domain_make(ctx)))
		rc = ENOMEM;
	if (rc) {
		close(fd);
		if (file >= 0)
			close(file);
		return rc;
	}
	d->is_inode = true;
	d->dev = st->st_dev;
	d->ino = st->st_ino;
	d->claim = fd;
	d->file = file;
	d->number = xrc_number_of(ctx, st);
	*out = d;
	return 0;
}

/* 0 or a positive errno, as the kernel has them: EAGAIN where it is to be there and is not. With the lock. */
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
	const struct hd_ep_attr attr = {
		.type = HD_EP_RDM, .policy = HD_EP_NUMBERED | HD_EP_NAMED, .asked = hv_far_told, .owner = d
	};

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

	return d->is_inode && q->is_near && q->len == len && head->what == what && head->domain == d->number;
}

struct ibv_xrcd *hv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct hv_context *ctx = hv_context_of(context);
	struct hv_xrcd *xrcd;
	int rc;

	if (attr->comp_mask & ~(uint32_t)(IBV_XRCD_INIT_ATTR_RESERVED - 1))
		return hv_fail(EOPNOTSUPP);
	if (attr->comp_mask != IBV_XRCD_INIT_ATTR_RESERVED - 1 || attr->oflags & ~(O_CREAT | O_EXCL))
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

/* ---- handles of queue pairs that receive ------------------------------------------------------------------------------------------ */

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
