/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Part of copy.h: the loops on 64-bit ARM, by the vectors that every such processor has. None goes
 * past the caches: what does so there is a hint alone.
 */
#include "base/copy.h"
#include "base/copy_loop.h"

#if HD_GUARDED && defined(__aarch64__)

#define FUNCTION(name, body) HD_COPY_LOOP(name, body, "	mov w0, #-14\n") /* EFAULT */

/* At most twice a width by two, from both ends, which meet or lap over; up to 255 bytes. */
FUNCTION(hd_copy_brief, "	add x8, x1, x2\n"
			"	add x9, x0, x2\n"
			"	cmp x2, #16\n"
			"	b.lo 3f\n"
			"	ldr q0, [x1]\n"
			"	ldur q1, [x8, #-16]\n"
			"	cmp x2, #32\n"
			"	b.hi 1f\n"
			"0:	str q0, [x0]\n"
			"	stur q1, [x9, #-16]\n"
			"	mov w0, #0\n"
			"	ret\n"
			"1:	ldr q2, [x1, #16]\n"
			"	ldur q3, [x8, #-32]\n"
			"	cmp x2, #64\n"
			"	b.hi 2f\n"
			"	str q2, [x0, #16]\n"
			"	stur q3, [x9, #-32]\n"
			"	b 0b\n"
			/* 32 of each turn, and up to 64 from the end */
			"2:	stp q0, q2, [x0], #32\n"
			"	sub x2, x2, #32\n"
			"	add x1, x1, #32\n"
			"	ldp q0, q2, [x1]\n"
			"	cmp x2, #64\n"
			"	b.hi 2b\n"
			"	str q2, [x0, #16]\n"
			"	stur q3, [x9, #-32]\n"
			"	b 0b\n"
			"3:	cmp x2, #8\n"
			"	b.lo 4f\n"
			"	ldr x3, [x1]\n"
			"	ldur x4, [x8, #-8]\n"
			"	str x3, [x0]\n"
			"	stur x4, [x9, #-8]\n"
			"	mov w0, #0\n"
			"	ret\n"
			"4:	cmp x2, #4\n"
			"	b.lo 5f\n"
			"	ldr w3, [x1]\n"
			"	ldur w4, [x8, #-4]\n"
			"	str w3, [x0]\n"
			"	stur w4, [x9, #-4]\n"
			"	mov w0, #0\n"
			"	ret\n"
			"5:	cbz x2, 6f\n"
			"	lsr x5, x2, #1\n"
			"	ldrb w3, [x1]\n"
			"	ldurb w4, [x8, #-1]\n"
			"	ldrb w6, [x1, x5]\n"
			"	strb w3, [x0]\n"
			"	strb w6, [x0, x5]\n"
			"	sturb w4, [x9, #-1]\n"
			"6:	mov w0, #0\n"
			"	ret\n");

/* A line of 64 bytes a turn, all loads before all stores. */
FUNCTION(hd_copy_wide, "	subs x2, x2, #64\n"
		       "	b.lo 2f\n"
		       "1:	ldp q0, q1, [x1]\n"
		       "	ldp q2, q3, [x1, #32]\n"
		       "	add x1, x1, #64\n"
		       "	stp q0, q1, [x0]\n"
		       "	stp q2, q3, [x0, #32]\n"
		       "	add x0, x0, #64\n"
		       "	subs x2, x2, #64\n"
		       "	b.hs 1b\n"
		       "2:	add x2, x2, #64\n"
		       "	b hd_copy_brief\n");

HD_COPY_DECLARE(hd_copy_wide);

const struct hd_copy_ops hd_copy_choices[] = {
	{ .wide = hd_copy_plain, .past = hd_copy_plain },
	{ .wide = hd_copy_wide, .past = hd_copy_wide },
};
const int hd_copy_last = 1;

#endif
