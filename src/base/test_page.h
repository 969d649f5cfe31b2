/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * For tests: memory is protected and taken away by pages, which are of 4, 16 or 64
 * KiB, as the kernel was made.
 */
#ifndef HD_BASE_TEST_PAGE_H
#define HD_BASE_TEST_PAGE_H

#define TEST_PAGE 65536u /* whole pages of each */

#endif
