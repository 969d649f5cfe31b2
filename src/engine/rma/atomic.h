/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Atomic operations inside the engine: what one does to memory (atomic_ops.c), and
 * the two packets (atomic.c).
 */
#ifndef HD_ENGINE_ATOMIC_H
#define HD_ENGINE_ATOMIC_H

#include "engine/link/link.h"

/*
 * Elements one behind the other in the target's memory, and what is to be done to each.
 * Nothing need be aligned.
 */
struct hd_atomic_run {
	enum hd_atomic_op op;
	enum hd_atomic_type type; /* hd_atomic_can() the two */
	size_t count;
	void *memory;
	/* count elements each; read only where the operation has them */
	const void *operands, *compares;
	void *old; /* count elements: what the memory held */
};

/*
 * hd_atomic_run: carry it out. Aligned elements of up to 8 bytes change by one instruction of the
 * CPU each, so that the program may use C11 atomics on them at the same time. All others are safe
 * against other calls under the same lock only. Memory that keeps its value is not written. False:
 * some of it is gone, and what stood before that is changed.
 */
bool hd_atomic_run(const struct hd_atomic_run *run);

/* hd_atomic_answered: RESULT has come. 0, or negative: the link is down. */
int hd_atomic_answered(struct hd_link *link, const struct hd_pkt *pkt, const void *payload, size_t len);

#endif
