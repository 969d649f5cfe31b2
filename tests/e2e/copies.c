/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Several copies of Heddle in one process, as a program has that uses libfabric and verbs: each
 * looks out for the faults of its own copying, passes on the others', and what is nobody's ends the
 * process as if there were none. copies FIRST SECOND: two modules with the same in them
 * (copies_one.c).
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 65536 /* whole pages of any kernel */

struct copy {
	void (*opens)(void);
	int (*copies)(void *to, const void *from, size_t n);
};

static struct copy copy[2];
static char *pages; /* the second is not there */
static int tests;

static void result(bool good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, name);
}

static bool load(const char *path, struct copy *c)
{
	void *at = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!at) {
		printf("# %s\n", dlerror());
		return false;
	}
	*(void **)&c->opens = dlsym(at, "one_opens");
	*(void **)&c->copies = dlsym(at, "one_copies");
	return c->opens && c->copies;
}

/* What a fault of this copy comes to. */
static bool notices(const struct copy *c)
{
	char here[300] = { 0 };

	return c->copies(here, pages + PAGE - 8, sizeof(here)) == -EFAULT &&
	       c->copies(pages + PAGE - 8, here, sizeof(here)) == -EFAULT && c->copies(here, pages, 64) == 0;
}

/* In a child, where each opens as often as it likes: 0: all was well; else how the child ended. */
static int in_a_child(bool (*does)(const struct copy *first, const struct copy *second), int first)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		_exit(!does(&copy[first], &copy[!first]));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static bool both_notice(const struct copy *first, const struct copy *second)
{
	first->opens();
	second->opens();
	if (!notices(first) || !notices(second))
		return false;
	first->opens(); /* who was there first does not go round in a circle */
	second->opens();
	return notices(first) && notices(second) && notices(first);
}

static bool the_programs_fault(const struct copy *first, const struct copy *second)
{
	if (!both_notice(first, second))
		return false;
	*(volatile char *)(pages + PAGE) = 1;
	return false; /* it should have ended */
}

static volatile sig_atomic_t seen;

static void program_handles(int sig, siginfo_t *info, void *context)
{
	seen++;
	if (mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE))
		_exit(1);
}

/*
 * A handler that the program installs in between is called for each copy's faults,
 * and nobody goes over it.
 */
static bool the_programs_handler(const struct copy *first, const struct copy *second)
{
	const struct sigaction own = { .sa_sigaction = program_handles, .sa_flags = SA_SIGINFO };
	char here[300] = { 1 };

	first->opens();
	sigaction(SIGSEGV, &own, NULL);
	second->opens();
	for (int i = 0; i < 2; i++) {
		mprotect(pages + PAGE, PAGE, PROT_READ);
		if ((i ? second : first)->copies(pages + PAGE, here, sizeof(here)) || seen != i + 1)
			return false;
	}
	return true;
}

/* One that was there before both is asked for what is protected, and not for what is not there. */
static bool the_programs_handler_below(const struct copy *first, const struct copy *second)
{
	const struct sigaction own = { .sa_sigaction = program_handles, .sa_flags = SA_SIGINFO };
	char here[300] = { 1 };

	sigaction(SIGSEGV, &own, NULL);
	first->opens();
	second->opens();
	first->opens();
	for (int i = 0; i < 2; i++) {
		mprotect(pages + PAGE, PAGE, PROT_READ);
		if ((i ? second : first)->copies(pages + PAGE, here, sizeof(here)) || seen != i + 1)
			return false;
	}
	munmap(pages + PAGE, PAGE);
	return notices(first) && notices(second) && seen == 2;
}

int main(int argc, char **argv)
{
	int status;

	if (argc != 3)
		return 2;
#if !defined(__x86_64__)
	printf("1..0 # SKIP run on x86-64: nobody looks out for faults on this processor\n");
	return 0;
#endif
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE) || !load(argv[1], &copy[0]) ||
	    !load(argv[2], &copy[1]) || copy[0].opens == copy[1].opens) {
		printf("Bail out! two copies cannot be loaded\n");
		return 1;
	}
	printf("1..8\n");
	for (int first = 0; first < 2; first++) {
		result(!in_a_child(both_notice, first), "each notices what its own copying has touched");
		status = in_a_child(the_programs_fault, first);
		result(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
		       "what is nobody's ends the process by its signal");
		result(!in_a_child(the_programs_handler, first), "the program's handler is called");
		result(!in_a_child(the_programs_handler_below, first), "and one that was there before");
	}
	return 0;
}
