/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Part of guard.h: 64-bit ARM. Instructions of 8 and 16 bits have a letter more, and all but those
 * of 64 have the short names of registers. The exchange is a pair that every such processor has,
 * and may fault at either: nothing was stored then.
 */
#ifndef HD_BASE_GUARD_ARM64_H
#define HD_BASE_GUARD_ARM64_H

#define HD_GUARD_REGISTER8 uint32_t
#define HD_GUARD_REGISTER16 uint32_t
#define HD_GUARD_REGISTER32 uint32_t
#define HD_GUARD_REGISTER64 uint64_t
#define HD_GUARD_LETTER8 "b"
#define HD_GUARD_LETTER16 "h"
#define HD_GUARD_LETTER32 ""
#define HD_GUARD_LETTER64 ""
#define HD_GUARD_NAME8 "%w"
#define HD_GUARD_NAME16 "%w"
#define HD_GUARD_NAME32 "%w"
#define HD_GUARD_NAME64 "%x"

#define HD_GUARD_REGISTER(bits) HD_GUARD_REGISTER##bits
#define HD_GUARD_LOAD(bits) "ldr" HD_GUARD_LETTER##bits " " HD_GUARD_NAME##bits "0, %1"
#define HD_GUARD_STORE(bits) "str" HD_GUARD_LETTER##bits " " HD_GUARD_NAME##bits "1, %0"

/* As __atomic_compare_exchange_n: *is: it was *seen, and is `next` now. */
#define HD_GUARD_EXCHANGE(bits) HD_GUARD_EXCHANGE_BY(bits, HD_GUARD_LETTER##bits, HD_GUARD_NAME##bits)
#define HD_GUARD_EXCHANGE_BY(bits, letter, name) \
	static inline bool hd_guard_exchange##bits(void *memory, uint##bits##_t *seen, uint##bits##_t next, \
						   bool *is) \
	{ \
		HD_GUARD_REGISTER(bits) was, want = *seen; \
		uint32_t lost; \
		HD_GUARD_ASM("1:\tldaxr" letter " " name "0, %2\n" HD_GUARD_LINE( \
				     "1b", "1b + 1", \
				     "%l[fault]") "\tcmp " name "0, " name "3\n" \
						  "\tb.ne 3f\n" \
						  "2:\tstlxr" letter " %w1, " name "4, %2\n" HD_GUARD_LINE( \
							  "2b", "2b + 1", "%l[fault]") "\tcbnz %w1, 1b\n" \
										       "3:\n" \
			     : "=&r"(was), "=&r"(lost), "+Q"(*(hd_guard_u##bits *)memory) \
			     : "r"(want), "r"((HD_GUARD_REGISTER(bits))next) \
			     : "memory", "cc" \
			     : fault); \
		*seen = (uint##bits##_t)was; \
		*is = was == want; \
		return true; \
fault: \
		return false; \
	}

#endif
