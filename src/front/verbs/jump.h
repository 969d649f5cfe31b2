/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Functions that hand over whatever they were given, since their types are not theirs to know. */
#ifndef HEDDLE_FRONT_VERBS_JUMP_H
#define HEDDLE_FRONT_VERBS_JUMP_H

#include "base/macros.h"

#if defined(__x86_64__)
#define HV_JUMPS 1

/*
 * HV_JUMP: the function `name` jumps to where the pointer `slot` points; both are names of symbols.
 */
#define HV_JUMP(name, slot) \
	__asm__(".text\n" \
		".globl " name "\n" \
		".type " name ", @function\n" name ":\n" HD_LANDING "	jmp *" slot "(%rip)\n" \
		".size " name ", . - " name "\n");
#elif defined(__aarch64__)
#define HV_JUMPS 1

/* x16 is nobody's between a call and the function (AAPCS64, 6.1.1). */
#define HV_JUMP(name, slot) \
	__asm__(".text\n" \
		".globl " name "\n" \
		".type " name ", %function\n" name ":\n" HD_LANDING "	adrp x16, " slot "\n" \
		"	ldr x16, [x16, #:lo12:" slot "]\n" \
		"	br x16\n" \
		".size " name ", . - " name "\n");
#else
#define HV_JUMPS 0
#endif

#endif
