/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the verbs programs here begin with. */
#ifndef HD_BENCH_VERBS_OPEN_H
#define HD_BENCH_VERBS_OPEN_H

#include <infiniband/verbs.h>

/*
 * must, must_be_0 - what a verb has answered, an object or an error number (or -1 with errno);
 * each gives up on failure.
 */
void *must(const char *what, void *object);
void must_be_0(const char *what, int rc);

/* device_open - the device of this name. Gives up if there is none. */
struct ibv_context *device_open(const char *wanted);

/*
 * rc_connect - take a new RC queue pair to RTS, with the one of this number at this
 * LID. Gives up on failure.
 */
void rc_connect(struct ibv_qp *qp, uint32_t number, uint16_t lid);

#endif
