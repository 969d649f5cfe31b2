/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See guard.h. */
#include "base/guard.h"
#include "base/lock.h"
#include "base/macros.h"

#include <signal.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE_LEAST 4096u /* of any processor that we know */

static void *next_page(const void *at)
{
	return (void *)(((uintptr_t)at | (PAGE_LEAST - 1)) + 1);
}

bool hd_guard_readable(const void *from, size_t n)
{
	const uint8_t *at = from, *end = at + n;
	uint8_t byte;

	for (; at < end; at = next_page(at))
		if (!hd_guard_load8(&byte, at))
			return false;
	return true;
}

#ifdef HD_GUARD_ASAN
#include <sanitizer/asan_interface.h>

/* memcpy(3) is watched, and tells of what is wrong. */
void hd_guard_sees(const void *from, const void *to, size_t n)
{
	if (n && (__asan_region_is_poisoned((void *)from, n) || __asan_region_is_poisoned((void *)to, n)))
		memcpy((void *)to, from, n);
}
#endif

#if HD_GUARDED

/* ---- the table ------------------------------------------------------------------------------- */

struct line {
	int32_t at, end, to; /* each counted from its own place */
};

extern const struct line __start_hd_guard[] __attribute__((visibility("hidden")));
extern const struct line __stop_hd_guard[] __attribute__((visibility("hidden")));

static uintptr_t place(const int32_t *word)
{
	return (uintptr_t)word + (uintptr_t)(intptr_t)*word;
}

/*
 * Some hundred lines, and a fault is rare: they are looked at one by one. 0: it is none of these.
 */
static uintptr_t guard_other_place(uintptr_t at)
{
	for (const struct line *l = __start_hd_guard; l != __stop_hd_guard; l++)
		if (at >= place(&l->at) && at < place(&l->end))
			return place(&l->to);
	return 0;
}

/* ---- the handler ----------------------------------------------------------------------------- */

/*
 * Other copies of Heddle in this process, and of other versions, know our handler by what stands
 * before it: two words, never to be changed.
 */
#define MARK_FIRST 0x6864206775617264ull
#define MARK_LAST 0x9b5d1c0a4be77e31ull

#if defined(__x86_64__)
#define JUMP "jmp"
#define WHERE(context) (&((ucontext_t *)(context))->uc_mcontext.gregs[REG_RIP])
typedef greg_t where_t;
#else
#define JUMP "b"
#define WHERE(context) (&((ucontext_t *)(context))->uc_mcontext.pc)
typedef unsigned long long where_t;
#endif

__asm__(".pushsection .text\n"
	".balign 16\n"
	".quad 0x6864206775617264, 0x9b5d1c0a4be77e31\n"
	".globl hd_guard_entry\n"
	".hidden hd_guard_entry\n"
	".type hd_guard_entry, @function\n"
	"hd_guard_entry:\n" HD_LANDING "	" JUMP " hd_guard_caught\n"
	".size hd_guard_entry, . - hd_guard_entry\n"
	".popsection\n");

void hd_guard_entry(int sig, siginfo_t *info, void *context) __attribute__((visibility("hidden")));
void hd_guard_caught(int sig, siginfo_t *info, void *context) __attribute__((visibility("hidden"), used));

typedef void (*handler_fn)(int, siginfo_t *, void *);

static const int signals[] = { SIGSEGV, SIGBUS };
/* who is asked in turn: the program's handler, another copy's, or nobody */
static struct sigaction before[2];
static bool has_programs[2]; /* the program's is among them */
static bool was_there[2];

/*
 * Whose flags have it, so that another copy sees it, has a handler of the program's behind it. For
 * a fault it means nothing else.
 */
#define OVER_PROGRAMS SA_RESTART

/*
 * As if there were no handler: the access is made once more and faults, where that is what it was.
 */
static void guard_pass_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *other = &before[sig == SIGBUS];

	if (other->sa_flags & SA_SIGINFO) {
		other->sa_sigaction(sig, info, context);
	} else if (other->sa_handler != SIG_DFL) {
		other->sa_handler(sig);
	} else {
		signal(sig, SIG_DFL);
		if (info->si_code <= 0)
			raise(sig); /* somebody has sent it; it stays blocked until we are back */
	}
}

/*
 * A program that handles faults may open what it has protected. Of what is not there it is not
 * asked, as the kernel asks nobody.
 */
static bool guard_is_ours_alone(int sig, const siginfo_t *info)
{
	return !has_programs[sig == SIGBUS] ||
	       info->si_code == (sig == SIGBUS ? (int)BUS_ADRERR : (int)SEGV_MAPERR);
}

void hd_guard_caught(int sig, siginfo_t *info, void *context)
{
	where_t *where = WHERE(context);
	uintptr_t to = info->si_code > 0 ? guard_other_place((uintptr_t)*where) : 0;

	if (to && guard_is_ours_alone(sig, info))
		*where = (where_t)to;
	else
		guard_pass_on(sig, info, context);
}

/* Nothing is known of what stands before a function of the program's: the kernel reads it. */
static bool is_a_copys(handler_fn fn)
{
	uint64_t mark[2] = { 0, 0 };
	struct iovec here = { mark, sizeof(mark) };
	struct iovec there = { (char *)(uintptr_t)fn - sizeof(mark), sizeof(mark) };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof(mark) && mark[0] == MARK_FIRST &&
	       mark[1] == MARK_LAST;
}

static bool guard_is_ours(const struct sigaction *now)
{
	return now->sa_flags & SA_SIGINFO && now->sa_sigaction == hd_guard_entry;
}

/*
 * Who came after us may call us, or has taken over: left as it is. So is what is ignored,
 * or is to be called once.
 */
static bool guard_may_go_over(int i, const struct sigaction *now)
{
	if (guard_is_ours(now))
		return false;
	if (!(now->sa_flags & SA_SIGINFO) && now->sa_handler == SIG_DFL)
		return true;
	return !was_there[i] && !(now->sa_flags & (int)SA_RESETHAND) &&
	       (now->sa_flags & SA_SIGINFO || now->sa_handler != SIG_IGN);
}

static void guard_install(int i)
{
	struct sigaction now, ours = { .sa_sigaction = hd_guard_entry, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (sigaction(signals[i], NULL, &now) < 0 || !guard_may_go_over(i, &now))
		return;
	before[i] = now;
	has_programs[i] = false;
	sigemptyset(&ours.sa_mask);
	if (now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL) {
		has_programs[i] = !(now.sa_flags & SA_SIGINFO) || !is_a_copys(now.sa_sigaction) ||
				  now.sa_flags & OVER_PROGRAMS;
		/* it is called as the kernel would: on its stack, with its mask */
		ours.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_ONSTACK | SA_NODEFER)) |
				(has_programs[i] ? OVER_PROGRAMS : 0);
		ours.sa_mask = now.sa_mask;
	}
	was_there[i] = sigaction(signals[i], &ours, NULL) == 0;
}

HD_LOCK_DEFINE(guard_lock);

void hd_guard_open(void)
{
	hd_lock_take(&guard_lock);
	for (int i = 0; i < 2; i++)
		guard_install(i);
	hd_lock_give(&guard_lock);
}

bool hd_guard_is_ours(int sig)
{
	struct sigaction now;

	return sigaction(sig, NULL, &now) == 0 && guard_is_ours(&now);
}

#ifdef HD_GUARD_ASAN

bool hd_guard_asks(void)
{
	return false;
}

#else

/* One that came after ours is asked as well, as for an access of the program's. */
bool hd_guard_asks(void)
{
	struct sigaction now;
	bool asks;

	if (sigaction(SIGSEGV, NULL, &now) < 0)
		return false;
	asks = now.sa_flags & SA_SIGINFO || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
	hd_lock_take(&guard_lock);
	if (guard_is_ours(&now))
		asks = has_programs[0];
	hd_lock_give(&guard_lock);
	return asks;
}

#endif

#else

void hd_guard_open(void)
{
}

bool hd_guard_is_ours(int sig)
{
	return false;
}

bool hd_guard_asks(void)
{
	return false;
}

#endif
