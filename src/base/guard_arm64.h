/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Part of guard.h: the accesses on 64-bit ARM. Instructions of 8 and 16 bits have a letter more, and all but those of 64 have the short names of
 * registers. The exchange is a pair that every such processor has, and may fault at either: it is the one that was not stored yet.
 */
#ifndef HD_BASE_GUARD_ARM64_H
#define HD_BASE_GUARD_ARM64_H

#define HD_GUARD_LETTER8 "b"
#define HD_GUARD_LETTER16 "h"
#define HD_GUARD_LETTER32 ""
#define HD_GUARD_LETTER64 ""
#define HD_GUARD_WIDTH8 "w"
#define HD_GUARD_WIDTH16 "w"
#define HD_GUARD_WIDTH32 "w"
#define HD_GUARD_WIDTH64 "x"
#define HD_GUARD_REGISTER8 uint32_t
#define HD_GUARD_REGISTER16 uint32_t
#define HD_GUARD_REGISTER32 uint32_t
#define HD_GUARD_REGISTER64 uint64_t

/* clang-format off */
#define HD_GUARD_ACCESS(bits) \
	HD_GUARD_ACCESS_ARM64(bits, HD_GUARD_LETTER##bits, "%" HD_GUARD_WIDTH##bits, HD_GUARD_REGISTER##bits)
/* clang-format on */

/* letter: of the instructions; r: how an operand's register begins; reg: what such a register holds. */
#define HD_GUARD_ACCESS_ARM64(bits, letter, r, reg) \
	typedef uint##bits##_t __attribute__((may_alias, aligned(1))) hd_guard_u##bits; \
	static inline __attribute__((always_inline)) bool hd_guard_load##bits(uint##bits##_t *to, \
									      const void *from) \
	{ \
		reg value; \
		HD_GUARD_ASM(HD_GUARD_OP("ldr" letter " " r "0, %1") \
			     : "=r"(value) \
			     : "m"(*(const hd_guard_u##bits *)from) \
			     : \
			     : fault); \
		*to = (uint##bits##_t)value; \
		return true; \
fault: \
		return false; \
	} \
	static inline \
		__attribute__((always_inline)) bool hd_guard_store##bits(void *to, uint##bits##_t value) \
	{ \
		HD_GUARD_ASM(HD_GUARD_OP("str" letter " " r "1, %0") \
			     : "=m"(*(hd_guard_u##bits *)to) \
			     : "r"((reg)value) \
			     : \
			     : fault); \
		return true; \
fault: \
		return false; \
	} \
	/* As __atomic_compare_exchange_n: *is: it was *seen, and is `next` now. */ \
	static inline bool hd_guard_exchange##bits(void *memory, uint##bits##_t *seen, uint##bits##_t next, \
						   bool *is) \
	{ \
		reg was, want = *seen; \
		uint32_t lost; \
		HD_GUARD_ASM("1:\tldaxr" letter " " r "0, %2\n" HD_GUARD_LINE( \
				     "1b", "1b + 1", \
				     "%l[fault]") "\tcmp " r "0, " r "3\n" \
						  "\tb.ne 3f\n" \
						  "2:\tstlxr" letter " %w1, " r "4, %2\n" HD_GUARD_LINE( \
							  "2b", "2b + 1", "%l[fault]") "\tcbnz %w1, 1b\n" \
										       "3:\n" \
			     : "=&r"(was), "=&r"(lost), "+Q"(*(hd_guard_u##bits *)memory) \
			     : "r"(want), "r"((reg)next) \
			     : "memory", "cc" \
			     : fault); \
		*seen = (uint##bits##_t)was; \
		*is = was == want; \
		return true; \
fault: \
		return false; \
	}

#endif
