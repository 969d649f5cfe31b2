/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Connected endpoints in the harness. */
#ifndef CT_CONNECT_H
#define CT_CONNECT_H

#include "ct.h"

/* ct_event waits for the next event and returns what fi_eq_read does: bytes, or -FI_EAVAIL. */
ssize_t ct_event(struct ct *ct, struct fid_eq *eq, uint32_t *event, void *buf, size_t len);
/* ct_expect waits for this connection event of this endpoint; anything else fails the case. */
void ct_expect(struct ct *ct, struct fid_eq *eq, uint32_t wanted, struct fid *fid);
/*
 * ct_request waits for FI_CONNREQ and returns its info; data, if wanted, must
 * have *len bytes at least.
 */
struct fi_info *ct_request(struct ct *ct, struct fid_eq *eq, struct fid_pep *pep, char *data, size_t *len);
void ct_eq_open(struct ct_dom *dom, struct fid_eq **eq);
/* ct_listen opens a passive endpoint that listens; its name has at most CT_NAME bytes. */
struct fid_pep *ct_listen(struct ct_dom *dom, struct fid_eq *eq, char *name, size_t *len);

/*
 * ct_connects tells whether the domain's endpoints are FI_EP_MSG. The others are steps of
 * ct_ep_open, ct_ep_enable and ct_join.
 */
bool ct_connects(const struct ct_dom *dom);
struct fi_info *ct_connect_info(struct ct_ep *e);
void ct_connect_bind(struct ct_ep *e);
void ct_connect_begin(struct ct_ep *e);
void ct_connect_end(struct ct_ep *e);
void ct_connect_close(struct ct_ep *e);

/* ct_not_for: why a case is not for endpoints of this type, or NULL when it is (types.c). */
const char *ct_not_for(enum fi_ep_type type, const struct ct_case *cs);

#endif
