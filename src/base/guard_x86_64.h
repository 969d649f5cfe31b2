/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Part of guard.h: the accesses on x86-64, whose move has one name for all widths. */
#ifndef HD_BASE_GUARD_X86_64_H
#define HD_BASE_GUARD_X86_64_H

#define HD_GUARD_ACCESS(bits) \
	typedef uint##bits##_t __attribute__((may_alias, aligned(1))) hd_guard_u##bits; \
	static inline __attribute__((always_inline)) bool hd_guard_load##bits(uint##bits##_t *to, \
									      const void *from) \
	{ \
		uint##bits##_t value; \
		HD_GUARD_ASM(HD_GUARD_OP("mov %1, %0") \
			     : "=r"(value) \
			     : "m"(*(const hd_guard_u##bits *)from) \
			     : \
			     : fault); \
		*to = value; \
		return true; \
fault: \
		return false; \
	} \
	static inline \
		__attribute__((always_inline)) bool hd_guard_store##bits(void *to, uint##bits##_t value) \
	{ \
		HD_GUARD_ASM(HD_GUARD_OP("mov %1, %0") \
			     : "=m"(*(hd_guard_u##bits *)to) \
			     : "r"(value) \
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
