/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Keeping cancellation out of the calls that hold a node's lock. */
#ifndef HEDDLE_FRONT_VERBS_CANCEL_H
#define HEDDLE_FRONT_VERBS_CANCEL_H

#include "front/verbs/verbs_front.h"

#include <pthread.h>

/* hv_pthread_cancel: what the preload answers pthread_cancel(3) with; NULL in the drop-in. */
extern int hv_pthread_cancel(pthread_t thread) __attribute__((weak));

/*
 * hv_cancel_watch: a context is open; hv_cancel_forget: it goes. hv_cancel_begins: a thread is
 * about to be cancelled. Any thread, without locks.
 */
void hv_cancel_watch(struct hv_context *ctx);
void hv_cancel_forget(struct hv_context *ctx);
void hv_cancel_begins(void);

#endif
