/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Private to copy.c and what is written for its processors. */
#ifndef HEDDLE_BASE_COPY_LOOP_H
#define HEDDLE_BASE_COPY_LOOP_H

#include "base/guard.h"
#include "base/macros.h"

#define HD_COPY_DECLARE(name) \
	int name(void *to, const void *from, size_t n) __attribute__((visibility("hidden")))

/* hd_copy_plain: memcpy(3), which nothing guards. */
HD_COPY_DECLARE(hd_copy_plain);

/*
 * Functions whose every instruction may fault: int f(void *to, const void *from, size_t n), which
 * use no stack and call nobody, so that after a fault, wherever it was, their end is at `refused`,
 * which has to say -EFAULT.
 */
#define HD_COPY_LOOP(name, body, refused) \
	__asm__(".pushsection .text\n" \
		".balign 32\n" \
		".globl " #name "\n" \
		".hidden " #name "\n" \
		".type " #name ", @function\n" #name ":\n" \
		"	.cfi_startproc\n" HD_LANDING body ".L_" #name "_end:\n" refused "	ret\n" \
		"	.cfi_endproc\n" \
		".size " #name ", . - " #name "\n" \
		".popsection\n" HD_GUARD_LINE(#name, ".L_" #name "_end", ".L_" #name "_end"))

#endif
