/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Writes of a word, and reads within a page: through /proc/PID/mem, which process_vm_writev(2) and
 * process_vm_readv(2) are a sixth to a third slower than, and half as fast where two processes
 * write to each other at the same time: these find the process, lock what says who may, and ask,
 * anew in every call; this was asked when the file was opened. The kernel takes what is copied so
 * through a page of its own, so it pays for short ones only, and the order within it is nobody's
 * promise, so writes are those that are one word.
 *
 * Most kernels let such a write through page protection, as a debugger's (FOLL_FORCE). There it is
 * not for writes: a page that its owner has made read-only is to stay as it is.
 *
 * Nothing is judged here: whatever does not go well is tried again with the other call,
 * which tells what is wrong.
 */
#include "transport/shm/copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Is it the memory of the process that has made this page? It may have ended, and
 * its number be another's.
 */
static bool is_theirs(const struct hd_shm_peer *peer, int fd)
{
	uint64_t got = 0;

	return pread(fd, &got, sizeof(got), (off_t)peer->page->probe_addr) == sizeof(got) &&
	       got == peer->page->probe_value;
}

static int word_open(const struct hd_shm_peer *peer)
{
	char path[32];
	int fd;

	if (peer->pid <= 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)peer->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !is_theirs(peer, fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

__attribute__((noinline)) bool hd_shm_poke_is_open(struct hd_shm_peer *peer)
{
	if (!peer->poke_tried)
		peer->poke_fd = word_open(peer);
	peer->poke_tried = true;
	return peer->poke_fd >= 0;
}

static bool write_is_forced(int fd, const void *page)
{
	uint64_t word = 0;

	/* who cannot ask takes it for so */
	return fd < 0 || page == MAP_FAILED ||
	       pwrite(fd, &word, sizeof(word), (off_t)(uintptr_t)page) == sizeof(word);
}

bool hd_shm_poke_forces(void)
{
	static _Atomic int known; /* 0: not yet; 1: no; 2: yes */
	int is = atomic_load_explicit(&known, memory_order_relaxed);

	if (!is) {
		int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		void *page = mmap(NULL, HD_SHM_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		is = write_is_forced(fd, page) ? 2 : 1;
		if (page != MAP_FAILED)
			munmap(page, HD_SHM_PAGE);
		if (fd >= 0)
			close(fd);
		atomic_store_explicit(&known, is, memory_order_relaxed); /* all find the same */
	}
	return is == 2;
}

/*
 * The bare calls: pwrite(3) is a point of cancellation, which this must not be, and which costs a
 * program with threads a twentieth of it.
 */
bool hd_shm_poke(struct hd_shm_peer *peer, void *here, uint64_t there, size_t len, bool out)
{
	if (hd_unlikely(peer->poke_fd < 0) && !hd_shm_poke_is_open(peer))
		return false;
#ifdef __LP64__
	if (syscall(out ? SYS_pwrite64 : SYS_pread64, peer->poke_fd, here, len, there) != (long)len)
		return false;
#else
	if ((out ? pwrite(peer->poke_fd, here, len, (off_t)there)
		 : pread(peer->poke_fd, here, len, (off_t)there)) != (ssize_t)len)
		return false;
#endif
	return true;
}
