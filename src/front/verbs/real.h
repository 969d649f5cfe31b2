/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#ifndef HEDDLE_FRONT_VERBS_REAL_H
#define HEDDLE_FRONT_VERBS_REAL_H

#include "base/macros.h"

#include <stdbool.h>

/*
 * hv_private_bind: the real libibverbs has been loaded. Only in the drop-in (private.c); in
 * the preload this is NULL.
 */
__attribute__((weak)) void hv_private_bind(void *library);

/*
 * hv_elsewhere: the library of another copy of this front, to which all calls go; NULL: there is
 * none. Set before anything is called.
 */
extern void *hv_elsewhere;

/*
 * hv_real_asked: this thread is asking the real library which devices it has, for a program that
 * also gets ours.
 */
extern HD_THREAD_LOCAL bool hv_real_asked;

/*
 * hv_real_notice: says once what helps, if `caller`, an address, is in the real libibverbs or
 * librdmacm, and nobody here has asked that for its devices: then the program has loaded it and
 * finds none of ours. Any thread; errno stays as it is.
 */
void hv_real_notice(const void *caller);

/* hv_cm_defer: calls of rdma_cm go to those of this library from now on. */
void hv_cm_defer(void *library);

#endif
