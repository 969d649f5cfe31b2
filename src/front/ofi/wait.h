/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a queue or a counter is waited for with, fi_poll(3). FI_WAIT_FD, _UNSPEC and _YIELD are the
 * object's own business; FI_WAIT_SET makes it a member of the program's wait set,
 * FI_WAIT_MUTEX_COND of a set that it has for itself.
 */
#ifndef HEDDLE_FRONT_OFI_WAIT_H
#define HEDDLE_FRONT_OFI_WAIT_H

#include "front/ofi/ofi.h"

struct hd_fi_waitset {
	struct fid_wait fid;
	uint32_t magic;
	enum fi_wait_obj obj; /* FI_WAIT_FD, _YIELD, _MUTEX_COND or _POLLFD */
	struct hd_fi_fabric *fabric;
	struct hd_wset *set;
	struct hd_wake_set *bell; /* of FI_WAIT_MUTEX_COND */
};

/*
 * hd_fi_waiting_open makes what a wait object needs. can_bell: a thread of ours may use what is
 * waited for. 0; -FI_EINVAL for a wait set that is none of this fabric's, -FI_ENOSYS for what is
 * not offered, -FI_ENOMEM, -FI_EMFILE. hd_fi_waiting_close comes after the object has left the set;
 * hd_fi_waiting_drop does the same for an object of a domain, which it leaves as well.
 */
struct hd_fi_wait_want {
	enum fi_wait_obj obj;
	struct fid_wait *set;
	const struct hd_fi_fabric *fabric;
	bool can_bell;
};
int hd_fi_waiting_open(const struct hd_fi_wait_want *want, struct hd_fi_waiting *out);
void hd_fi_waiting_close(struct hd_fi_waiting *w);
void hd_fi_waiting_drop(struct hd_fi_waiting *w, struct hd_fi_domain *domain, struct hd_fi_object *object);

/*
 * hd_fi_waiting_blocks tells whether calls that block are allowed: not with
 * FI_WAIT_NONE, not with FI_WAIT_SET.
 */
static inline bool hd_fi_waiting_blocks(const struct hd_fi_waiting *w)
{
	return w->obj != FI_WAIT_NONE && w->obj != FI_WAIT_SET;
}

/*
 * hd_fi_waiting_trywait is fi_trywait(3) for an object that is in a set: 0, -FI_EAGAIN; -FI_EINVAL
 * for one that has nothing to wait for natively.
 */
int hd_fi_waiting_trywait(const struct hd_fi_waiting *w);

/*
 * hd_fi_waiting_control is fi_control(3), FI_GETWAIT and FI_GETWAITOBJ; fd is the
 * object's own, for FI_WAIT_FD.
 */
int hd_fi_waiting_control(const struct hd_fi_waiting *w, int fd, int command, void *arg);

/* hd_fi_waitset_open is fi_wait_open(3); hd_fi_waitset_trywait is fi_trywait(3) for one. */
int hd_fi_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **out);
int hd_fi_waitset_trywait(struct fid *fid);

#endif
