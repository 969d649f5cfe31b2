/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory of the program's that may be gone: unmapped, protected, or of a file that has been
 * shortened. Instructions that touch it stand in a table, as a kernel's do that touch a user's,
 * with the place where to go on after a fault; the usual case costs nothing but the instruction.
 *
 *	SIGSEGV, SIGBUS ──► guard.c ──► by one of these instructions: go on at its other place,
 *	                            │   which answers false or -EFAULT
 *	                            └─► by any other: who handled it before, or the default action,
 *	                                as if there were no handler
 *
 * Where the program had a handler before ours, that one is called for an access of ours as for one
 * of its own, since write barriers live on it: not where nothing is mapped, of which a kernel asks
 * nobody either, and which the handlers of others (UCX's, Python's) end the process for. One that
 * comes later is in front, and knows nothing of ours. Several copies of Heddle in one process call
 * each other's. x86-64 and 64-bit ARM have the table, and not under the thread sanitizer, which
 * must see each access: elsewhere these are plain accesses (docs/limits.md).
 */
#ifndef HD_BASE_GUARD_H
#define HD_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HD_GUARD_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define HD_GUARD_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HD_GUARD_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HD_GUARD_ASAN 1
#endif
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__LP64__) && !defined(HD_GUARD_TSAN) && \
	(defined(__clang__) || __GNUC__ >= 11)
#define HD_GUARDED 1
#else
#define HD_GUARDED 0
#endif

/*
 * hd_guard_open: be there for faults from now on, as said above. Any thread, as often as one likes;
 * never undone, since this library stays where it is (-z nodelete).
 */
void hd_guard_open(void);

/*
 * hd_guard_asks: has the program a handler of its own, which may open what is protected? A
 * sanitizer's is none. By a system call; any thread.
 */
bool hd_guard_asks(void);

/* hd_guard_is_ours: is our handler what this signal has? For tests. */
bool hd_guard_is_ours(int sig);

/*
 * hd_guard_sees: where the address sanitizer watches, which does not see these accesses: say it of
 * what it should have seen. Any length.
 */
#ifdef HD_GUARD_ASAN
void hd_guard_sees(const void *from, const void *to, size_t n);
#else
static inline void hd_guard_sees(const void *from, const void *to, size_t n)
{
}
#endif

#if HD_GUARDED

/*
 * A line of the table: a fault at an instruction from `at` to below `end` goes on at `to`. Places
 * are as far from their word as it says.
 */
#define HD_GUARD_LINE(at, end, to) \
	".pushsection hd_guard, \"a\", @progbits\n\t.balign 4\n\t.long (" at ") - .\n\t.long (" end \
	") - .\n\t.long (" to ") - .\n\t.popsection\n"
#define HD_GUARD_OP(instruction) "1:\t" instruction "\n" HD_GUARD_LINE("1b", "1b + 1", "%l[fault]")

/*
 * The empty one after it: gcc before 12.4 may take the outputs of an asm goto for unused, or move
 * what follows before them.
 */
#define HD_GUARD_ASM(...) \
	do { \
		__asm__ volatile goto(__VA_ARGS__); \
		__asm__ volatile(""); \
	} while (0)

/*
 * How this processor does it: HD_GUARD_REGISTER(bits) is what a register holds, HD_GUARD_LOAD,
 * HD_GUARD_STORE are instructions, HD_GUARD_EXCHANGE is a function.
 */
#if defined(__x86_64__)
#include "base/guard_x86_64.h"
#else
#include "base/guard_arm64.h"
#endif

#define HD_GUARD_ACCESS(bits) \
	typedef uint##bits##_t __attribute__((may_alias, aligned(1))) hd_guard_u##bits; \
	static inline __attribute__((always_inline)) bool hd_guard_load##bits(uint##bits##_t *to, \
									      const void *from) \
	{ \
		HD_GUARD_REGISTER(bits) value; \
		HD_GUARD_ASM(HD_GUARD_OP(HD_GUARD_LOAD(bits)) \
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
		HD_GUARD_ASM(HD_GUARD_OP(HD_GUARD_STORE(bits)) \
			     : "=m"(*(hd_guard_u##bits *)to) \
			     : "r"((HD_GUARD_REGISTER(bits))value) \
			     : \
			     : fault); \
		return true; \
fault: \
		return false; \
	} \
	HD_GUARD_EXCHANGE(bits)

#else /* plain accesses; others may change what is loaded by atomic ones (rma/atomic_ops.c) */

#define HD_GUARD_ACCESS(bits) \
	static inline bool hd_guard_load##bits(uint##bits##_t *to, const void *from) \
	{ \
		if ((uintptr_t)from % sizeof(*to) == 0) \
			*to = __atomic_load_n((const uint##bits##_t *)from, __ATOMIC_RELAXED); \
		else \
			memcpy(to, from, sizeof(*to)); \
		return true; \
	} \
	static inline bool hd_guard_store##bits(void *to, uint##bits##_t value) \
	{ \
		memcpy(to, &value, sizeof(value)); \
		return true; \
	} \
	static inline bool hd_guard_exchange##bits(void *memory, uint##bits##_t *seen, uint##bits##_t next, \
						   bool *is) \
	{ \
		*is = __atomic_compare_exchange_n((uint##bits##_t *)memory, seen, next, false, \
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		return true; \
	}

#endif

/*
 * hd_guard_load, hd_guard_store, hd_guard_exchange, of 8 to 64 bits: one access of memory that may
 * be gone. False: it is, and nothing has happened; what stands in *to, *seen and *is then says
 * nothing (gcc 12.2 has `is` true there at -O1, whatever it is set to). The last wants it aligned.
 */
HD_GUARD_ACCESS(8)
HD_GUARD_ACCESS(16)
HD_GUARD_ACCESS(32)
HD_GUARD_ACCESS(64)

/* hd_guard_readable: could all of it be a moment ago? One byte of each page is. */
bool hd_guard_readable(const void *from, size_t n);

#endif
