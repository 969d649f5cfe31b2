/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Passive endpoints and connection requests, fi_cm(3). A request's handle, which travels in
 * fi_info.handle, is a pointer that programs keep for as long as they like: it is looked up by
 * value in a list of those that stand, and never followed before. One lock of the process protects
 * that list and the passive endpoints.
 */
#ifndef HEDDLE_FRONT_OFI_CM_H
#define HEDDLE_FRONT_OFI_CM_H

#include "front/ofi/ep.h"

struct hd_fi_pep {
	struct fid_pep fid;
	uint32_t magic;
	struct hd_fi_fabric *fabric;
	struct hd_fi_eq *eq;
	struct fi_info *info;	    /* a copy: what requests are described by */
	struct hd_node *node;	    /* of its own, since it belongs to no domain */
	struct hd_service *service; /* NULL: it has no address yet, or has handed it on */
	int backlog;
	uint32_t requests; /* handles that stand */
	/*
	 * events of requests that a thread has taken, and is about to
	 * describe: it stays for them, too
	 */
	_Atomic uint32_t reading;
	bool closed; /* by the program; what it was bound to is no longer its own */
	bool listening;
	bool spent; /* an active endpoint has got its address */
	bool has_addr;
	union hd_fi_addr addr; /* where to listen */
	LIST_ENTRY(hd_fi_pep) entry;
};

/* What an event of a request says, before the request is somebody's. */
struct hd_fi_called {
	struct hd_fi_pep *pep; /* counted in its `reading`; may have been closed meanwhile */
	struct hd_request *request;
	struct sockaddr_storage from;
};

/*
 * hd_fi_called_info describes a request: an info whose handle stands for it from now on, when keep
 * is set; else one without a handle. 0; -FI_ENOENT when its passive endpoint is closed, -FI_ENOMEM:
 * the request is rejected. It is read no longer.
 */
int hd_fi_called_info(const struct hd_fi_called *called, bool keep, struct fi_info **out);

/*
 * hd_fi_handle_take looks at the handle of an info that an endpoint is opened with: a request, of
 * which the endpoint may be the acceptor; a passive endpoint, whose address becomes the
 * endpoint's; or -FI_EINVAL.
 */
int hd_fi_handle_take(struct hd_fi_ep *ep, struct fid *handle);

/*
 * hd_fi_peps_end: the fabric closes: who has called passive endpoints of it that are closed, and
 * was never answered, is refused.
 */
void hd_fi_peps_end(const struct hd_fi_fabric *fabric);

int hd_fi_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **out, void *context);

/*
 * hd_fi_answer accepts the request that an endpoint was opened for, and which
 * is enabled; fi_accept(3).
 */
int hd_fi_answer(struct hd_fi_ep *ep, const struct hd_cm_data *data);

/*
 * hd_fi_unanswered: an endpoint goes. The request that it alone was opened for, if that
 * stands, is rejected, for nobody would answer it any more; where the endpoint has not
 * come about, its program can.
 */
void hd_fi_unanswered(struct hd_fi_ep *ep, bool rejects);

/*
 * hd_fi_cm_data takes what is to go with a call or an answer, of which fi_cm(3) has more than
 * FI_OPT_CM_DATA_SIZE cut off; -FI_EINVAL: it is nowhere.
 */
int hd_fi_cm_data(const void *param, size_t paramlen, struct hd_cm_data *out);

/* hd_fi_cm_data_size is the option FI_OPT_CM_DATA_SIZE; 0 or -FI_ETOOSMALL. */
int hd_fi_cm_data_size(void *optval, size_t *optlen);

extern struct fi_ops_cm hd_fi_conn_cm_ops; /* cm.c: of active endpoints that are connected */

#endif
