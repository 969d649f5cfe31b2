/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Part of copy.h: the loops on x86-64. */
#include "base/copy.h"
#include "base/copy_loop.h"

#if HD_GUARDED && defined(__x86_64__)

/* Refused: EFAULT. */
#define FUNCTION(name, body, refused) HD_COPY_LOOP(name, body, refused "	mov $-14, %eax\n")

/* At most twice a width by two, from both ends, which meet or lap over; up to 255 bytes. */
FUNCTION(hd_copy_brief,
	 "	lea (%rsi, %rdx), %r8\n"
	 "	lea (%rdi, %rdx), %r9\n"
	 "	cmp $16, %rdx\n"
	 "	jb 3f\n"
	 "	movups (%rsi), %xmm0\n"
	 "	movups -16(%r8), %xmm1\n"
	 "	cmp $32, %rdx\n"
	 "	ja 1f\n"
	 "0:	movups %xmm0, (%rdi)\n"
	 "	movups %xmm1, -16(%r9)\n"
	 "	xor %eax, %eax\n"
	 "	ret\n"
	 "1:	movups 16(%rsi), %xmm2\n"
	 "	movups -32(%r8), %xmm3\n"
	 "	cmp $64, %rdx\n"
	 "	ja 2f\n"
	 "	movups %xmm2, 16(%rdi)\n"
	 "	movups %xmm3, -32(%r9)\n"
	 "	jmp 0b\n"
	 "2:	movups %xmm0, (%rdi)\n" /* 32 of each turn, and up to 64 from the end */
	 "	movups %xmm2, 16(%rdi)\n"
	 "	add $32, %rsi\n"
	 "	add $32, %rdi\n"
	 "	sub $32, %rdx\n"
	 "	movups (%rsi), %xmm0\n"
	 "	movups 16(%rsi), %xmm2\n"
	 "	cmp $64, %rdx\n"
	 "	ja 2b\n"
	 "	movups %xmm2, 16(%rdi)\n"
	 "	movups %xmm3, -32(%r9)\n"
	 "	jmp 0b\n"
	 "3:	cmp $8, %edx\n"
	 "	jb 4f\n"
	 "	mov (%rsi), %rax\n"
	 "	mov -8(%r8), %rcx\n"
	 "	mov %rax, (%rdi)\n"
	 "	mov %rcx, -8(%r9)\n"
	 "	xor %eax, %eax\n"
	 "	ret\n"
	 "4:	cmp $4, %edx\n"
	 "	jb 5f\n"
	 "	mov (%rsi), %eax\n"
	 "	mov -4(%r8), %ecx\n"
	 "	mov %eax, (%rdi)\n"
	 "	mov %ecx, -4(%r9)\n"
	 "	xor %eax, %eax\n"
	 "	ret\n"
	 "5:	test %edx, %edx\n"
	 "	je 6f\n"
	 "	movzbl (%rsi), %eax\n"
	 "	movzbl -1(%r8), %ecx\n"
	 "	shr %edx\n"
	 "	movzbl (%rsi, %rdx), %esi\n"
	 "	mov %al, (%rdi)\n"
	 "	mov %sil, (%rdi, %rdx)\n"
	 "	mov %cl, -1(%r9)\n"
	 "6:	xor %eax, %eax\n"
	 "	ret\n",
	 "");

/*
 * Half a line a vector: two stores fill a line, and as many lines are on their way as the
 * processor has room for stores. Two lines a turn, all loads before all stores. What is left over
 * is the last two lines once more.
 */
FUNCTION(hd_copy_wide_avx2,
	 "	cmp $128, %rdx\n"
	 "	jb hd_copy_brief\n"
	 "	lea -128(%rsi, %rdx), %r8\n"
	 "	lea -128(%rdi, %rdx), %r9\n"
	 "	sub $128, %rdx\n"
	 "1:	vmovdqu (%rsi), %ymm0\n"
	 "	vmovdqu 32(%rsi), %ymm1\n"
	 "	vmovdqu 64(%rsi), %ymm2\n"
	 "	vmovdqu 96(%rsi), %ymm3\n"
	 "	vmovdqu %ymm0, (%rdi)\n"
	 "	vmovdqu %ymm1, 32(%rdi)\n"
	 "	vmovdqu %ymm2, 64(%rdi)\n"
	 "	vmovdqu %ymm3, 96(%rdi)\n"
	 "	sub $-128, %rsi\n"
	 "	sub $-128, %rdi\n"
	 "	sub $128, %rdx\n"
	 "	jae 1b\n"
	 "	cmp $-128, %rdx\n"
	 "	je 2f\n"
	 "	vmovdqu (%r8), %ymm0\n"
	 "	vmovdqu 32(%r8), %ymm1\n"
	 "	vmovdqu 64(%r8), %ymm2\n"
	 "	vmovdqu 96(%r8), %ymm3\n"
	 "	vmovdqu %ymm0, (%r9)\n"
	 "	vmovdqu %ymm1, 32(%r9)\n"
	 "	vmovdqu %ymm2, 64(%r9)\n"
	 "	vmovdqu %ymm3, 96(%r9)\n"
	 "2:	vzeroupper\n"
	 "	xor %eax, %eax\n"
	 "	ret\n",
	 "	vzeroupper\n");

/*
 * Whole lines alone go past the caches: part of one would cost a read and a write of memory. A
 * release does not wait for these stores: the fence does.
 */
FUNCTION(hd_copy_past_avx2,
	 "	cmp $128, %rdx\n"
	 "	jb hd_copy_brief\n"
	 "	mov %edi, %ecx\n"
	 "	neg %ecx\n"
	 "	and $63, %ecx\n"
	 "	je 1f\n"
	 "	sub %rcx, %rdx\n"
	 "	rep movsb\n"
	 "1:	sub $64, %rdx\n"
	 "	jb 3f\n"
	 "2:	vmovdqu (%rsi), %ymm0\n"
	 "	vmovdqu 32(%rsi), %ymm1\n"
	 "	vmovntdq %ymm0, (%rdi)\n"
	 "	vmovntdq %ymm1, 32(%rdi)\n"
	 "	add $64, %rsi\n"
	 "	add $64, %rdi\n"
	 "	sub $64, %rdx\n"
	 "	jae 2b\n"
	 "3:	vzeroupper\n"
	 "	sfence\n"
	 "	add $64, %rdx\n"
	 "	jne hd_copy_brief\n"
	 "	xor %eax, %eax\n"
	 "	ret\n",
	 "	vzeroupper\n	sfence\n");

/* The same with what every x86-64 has. */
FUNCTION(hd_copy_wide_sse2,
	 "	cmp $128, %rdx\n"
	 "	jb hd_copy_brief\n"
	 "	sub $64, %rdx\n"
	 "1:	movups (%rsi), %xmm0\n"
	 "	movups 16(%rsi), %xmm1\n"
	 "	movups 32(%rsi), %xmm2\n"
	 "	movups 48(%rsi), %xmm3\n"
	 "	movups %xmm0, (%rdi)\n"
	 "	movups %xmm1, 16(%rdi)\n"
	 "	movups %xmm2, 32(%rdi)\n"
	 "	movups %xmm3, 48(%rdi)\n"
	 "	add $64, %rsi\n"
	 "	add $64, %rdi\n"
	 "	sub $64, %rdx\n"
	 "	jae 1b\n"
	 "	add $64, %rdx\n"
	 "	jne hd_copy_brief\n"
	 "	xor %eax, %eax\n"
	 "	ret\n",
	 "");

FUNCTION(hd_copy_past_sse2,
	 "	cmp $128, %rdx\n"
	 "	jb hd_copy_brief\n"
	 "	mov %edi, %ecx\n"
	 "	neg %ecx\n"
	 "	and $63, %ecx\n"
	 "	je 1f\n"
	 "	sub %rcx, %rdx\n"
	 "	rep movsb\n"
	 "1:	sub $64, %rdx\n"
	 "	jb 3f\n"
	 "2:	movups (%rsi), %xmm0\n"
	 "	movups 16(%rsi), %xmm1\n"
	 "	movups 32(%rsi), %xmm2\n"
	 "	movups 48(%rsi), %xmm3\n"
	 "	movntps %xmm0, (%rdi)\n"
	 "	movntps %xmm1, 16(%rdi)\n"
	 "	movntps %xmm2, 32(%rdi)\n"
	 "	movntps %xmm3, 48(%rdi)\n"
	 "	add $64, %rsi\n"
	 "	add $64, %rdi\n"
	 "	sub $64, %rdx\n"
	 "	jae 2b\n"
	 "3:	sfence\n"
	 "	add $64, %rdx\n"
	 "	jne hd_copy_brief\n"
	 "	xor %eax, %eax\n"
	 "	ret\n",
	 "	sfence\n");

HD_COPY_DECLARE(hd_copy_wide_avx2);
HD_COPY_DECLARE(hd_copy_past_avx2);
HD_COPY_DECLARE(hd_copy_wide_sse2);
HD_COPY_DECLARE(hd_copy_past_sse2);

static bool has_avx2(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2");
}

const struct hd_copy_ops hd_copy_choices[] = {
	{ .wide = hd_copy_plain, .past = hd_copy_plain },
	{ .wide = hd_copy_wide_sse2, .past = hd_copy_past_sse2 },
	{ .wide = hd_copy_wide_avx2, .past = hd_copy_past_avx2, .works = has_avx2 },
};
const int hd_copy_last = 2;

#endif
