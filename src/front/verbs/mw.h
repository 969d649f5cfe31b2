/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What posting needs of memory windows. */
#ifndef HEDDLE_FRONT_VERBS_MW_H
#define HEDDLE_FRONT_VERBS_MW_H

#include "front/verbs/qp.h"

/*
 * hv_bind_is_right: could this be posted? Whether it may be bound so is another question,
 * which its completion answers.
 */
bool hv_bind_is_right(const struct hv_qp *qp, const struct ibv_mw *mw, const struct ibv_mw_bind_info *info);

/*
 * hv_bind_post: post it; args has tag, ctx and flags, and in the low 8 bits of key what the program
 * has chosen. 0, -errno as hd_send. With the lock.
 */
int hv_bind_post(struct hv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind_info *info,
		 struct hd_bind_args *args);

/* hv_post_bind_one: as hv_post_send_one, for the windows of ibv_bind_mw(3). */
int hv_post_bind_one(struct hv_qp *qp, const struct ibv_send_wr *wr);

#endif
