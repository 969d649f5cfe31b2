/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What was under way when the other end went: holdoff.c. */
#ifndef HD_ENGINE_QP_HOLDOFF_H
#define HD_ENGINE_QP_HOLDOFF_H

#include "engine/qp/qp.h"

struct hd_taken;
struct hd_received;

/*
 * hd_holdoff_send, hd_holdoff_receive: is this error not to be told of yet, since it says that the
 * other end has gone? What it is of is kept then. hd_holdoff_end: nothing is kept any more;
 * receives complete with status; HD_S_OK: not at all.
 */
bool hd_holdoff_send(struct hd_qp *p, enum hd_status status);
bool hd_holdoff_receive(struct hd_qp *p, const struct hd_taken *taken, const struct hd_received *received);
void hd_holdoff_end(struct hd_qp *p, enum hd_status status);

/* hd_holdoff_count: how many receives are kept. */
uint32_t hd_holdoff_count(const struct hd_qp *p);

#endif
