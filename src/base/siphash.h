/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * SipHash-1-3 of Aumasson and Bernstein, for tables that strangers fill: who does not know the key
 * cannot choose what collides. Any thread.
 */
#ifndef HD_BASE_SIPHASH_H
#define HD_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hd_siphash(const uint64_t key[2], const void *data, size_t len);

#endif
