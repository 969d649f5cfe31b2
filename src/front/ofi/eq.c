/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * fi_eq(3). Connectionless endpoints have no events of their own: what comes here is written by the program,
 * or says that a registration is done. A queue belongs to the fabric, not to a node, so it has a lock and a
 * descriptor of its own.
 */
#include "front/ofi/stubs.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_EVENT 65536 /* bytes that fi_eq_write takes */

struct event {
	STAILQ_ENTRY(event) entry;
	uint32_t code;
	size_t len;
	char data[];
};

struct hd_fi_eq {
	struct fid_eq fid;
	uint32_t magic;
	struct hd_fi_fabric *fabric;
	enum fi_wait_obj wait_obj;
	bool writable;
	_Atomic int users;
	pthread_mutex_t mutex; /* events, fd's state */
	STAILQ_HEAD(, event) events;
	int fd; /* eventfd: readable while there are events */
};

struct hd_fi_eq *hd_fi_eq_as(struct fid *fid, const struct hd_fi_fabric *fabric)
{
	struct hd_fi_eq *eq = hd_fi_as(hd_fi_eq, HD_FI_EQ, FI_CLASS_EQ, fid);

	return eq && eq->fabric == fabric ? eq : NULL;
}

void hd_fi_eq_use(struct hd_fi_eq *eq, int delta)
{
	atomic_fetch_add(&eq->users, delta);
}

int hd_fi_eq_post(struct hd_fi_eq *eq, uint32_t code, const void *data, size_t len)
{
	struct event *ev = malloc(sizeof(*ev) + len);

	if (!ev)
		return -FI_ENOMEM;
	ev->code = code;
	ev->len = len;
	if (len)
		memcpy(ev->data, data, len);
	pthread_mutex_lock(&eq->mutex);
	if (STAILQ_EMPTY(&eq->events))
		eventfd_write(eq->fd, 1);
	STAILQ_INSERT_TAIL(&eq->events, ev, entry);
	pthread_mutex_unlock(&eq->mutex);
	return 0;
}

/* Caller holds the mutex. */
static ssize_t take(struct hd_fi_eq *eq, uint32_t *code, void *buf, size_t len, bool peek)
{
	struct event *ev = STAILQ_FIRST(&eq->events);
	eventfd_t ignored;
	ssize_t got;

	if (!ev)
		return -FI_EAGAIN;
	if (len < ev->len)
		return -FI_ETOOSMALL;
	got = (ssize_t)ev->len;
	*code = ev->code;
	memcpy(buf, ev->data, ev->len);
	if (peek)
		return got;
	STAILQ_REMOVE_HEAD(&eq->events, entry);
	free(ev);
	if (STAILQ_EMPTY(&eq->events))
		eventfd_read(eq->fd, &ignored);
	return got;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	ssize_t got;

	if (!event || (!buf && len))
		return -FI_EINVAL;
	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&eq->mutex);
	got = take(eq, event, buf, len, flags & FI_PEEK);
	pthread_mutex_unlock(&eq->mutex);
	return got;
}

/* No operation of this provider fails asynchronously, so there is never an error event. */
static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (!eq->writable || (!buf && len) || len > MAX_EVENT)
		return -FI_EINVAL;
	rc = hd_fi_eq_post(eq, event, buf, len);
	return rc ? rc : (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	uint64_t end = hd_fi_deadline(timeout);

	if (eq->wait_obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	for (;;) {
		struct pollfd pfd = { .fd = eq->fd, .events = POLLIN };
		ssize_t got = eq_read(fid, event, buf, len, flags);

		if (got != -FI_EAGAIN)
			return got;
		if (poll(&pfd, 1, hd_fi_left_ms(end)) == 0)
			return -FI_EAGAIN;
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	return hd_fi_strerror(prov_errno, buf, len);
}

int hd_fi_eq_trywait(struct fid *fid)
{
	struct hd_fi_eq *eq = hd_fi_as(hd_fi_eq, HD_FI_EQ, FI_CLASS_EQ, fid);
	bool empty;

	if (!eq || eq->wait_obj != FI_WAIT_FD)
		return -FI_EINVAL;
	pthread_mutex_lock(&eq->mutex);
	empty = STAILQ_EMPTY(&eq->events);
	pthread_mutex_unlock(&eq->mutex);
	return empty ? 0 : -FI_EAGAIN;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	}
	if (eq->wait_obj != FI_WAIT_FD)
		return -FI_ENODATA;
	*(int *)arg = eq->fd;
	return 0;
}

static int eq_close(struct fid *fid)
{
	struct hd_fi_eq *eq = (struct hd_fi_eq *)fid;
	struct event *ev;

	if (atomic_load(&eq->users))
		return -FI_EBUSY;
	while ((ev = STAILQ_FIRST(&eq->events))) {
		STAILQ_REMOVE_HEAD(&eq->events, entry);
		free(ev);
	}
	eq->magic = 0;
	close(eq->fd);
	pthread_mutex_destroy(&eq->mutex);
	atomic_fetch_sub(&eq->fabric->users, 1);
	free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = hd_fi_no_bind,
	.control = eq_control,
	.ops_open = hd_fi_no_ops_open,
	.tostr = hd_fi_no_tostr,
	.ops_set = hd_fi_no_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int hd_fi_eq_open(struct fid_fabric *fabric_fid, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
	struct hd_fi_fabric *fabric = hd_fi_as(hd_fi_fabric, HD_FI_FABRIC, FI_CLASS_FABRIC, fabric_fid);
	struct hd_fi_eq *eq;

	if (!fabric || !out)
		return -FI_EINVAL;
	if (attr && attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return -FI_EBADFLAGS;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (eq->fd < 0 || !hd_fi_wait_obj(attr ? attr->wait_obj : FI_WAIT_UNSPEC, &eq->wait_obj)) {
		int rc = eq->fd < 0 ? -errno : -FI_ENOSYS;

		if (eq->fd >= 0)
			close(eq->fd);
		free(eq);
		return rc;
	}
	eq->fid.fid = (struct fid){ .fclass = FI_CLASS_EQ, .context = context, .ops = &eq_fid_ops };
	eq->fid.ops = &eq_ops;
	eq->magic = HD_FI_EQ;
	eq->fabric = fabric;
	eq->writable = attr && attr->flags & FI_WRITE;
	pthread_mutex_init(&eq->mutex, NULL);
	STAILQ_INIT(&eq->events);
	atomic_fetch_add(&fabric->users, 1);
	*out = &eq->fid;
	return 0;
}
