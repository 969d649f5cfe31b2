/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Part of guard.h: x86-64, whose move has one name for both ways and all widths. */
#ifndef HD_BASE_GUARD_X86_64_H
#define HD_BASE_GUARD_X86_64_H

#define HD_GUARD_REGISTER(bits) uint##bits##_t
#define HD_GUARD_LOAD(bits) "mov %1, %0"
#define HD_GUARD_STORE(bits) "mov %1, %0"

/* As __atomic_compare_exchange_n: *is: it was *seen, and is `next` now. */
#define HD_GUARD_EXCHANGE(bits) \
	static inline bool hd_guard_exchange##bits(void *memory, uint##bits##_t *seen, uint##bits##_t next, \
						   bool *is) \
	{ \
		uint##bits##_t was = *seen; \
		bool same; \
		HD_GUARD_ASM(HD_GUARD_OP("lock cmpxchg %3, %0") "\tsete %2" \
			     : "+m"(*(hd_guard_u##bits *)memory), "+a"(was), "=q"(same) \
			     : "r"(next) \
			     : "memory", "cc" \
			     : fault); \
		*seen = was; \
		*is = same; \
		return true; \
fault: \
		return false; \
	}

#endif
