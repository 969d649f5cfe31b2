/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * For tests: a look at the copies between processes, and a hand in them. The test is linked with
 * -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev,--wrap=hd_shm_poke.
 */
#ifndef HD_TESTS_VM_SEAM_H
#define HD_TESTS_VM_SEAM_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct vm_call {
	bool out;
	unsigned long near_count, far_count;
	struct iovec near[17], far[16];
};

/*
 * What happens in a copy: it is counted and remembered; `before` is called, if it is set; then it
 * fails with `error`, if that is set and `good` calls have gone well, or is cut to `most` bytes, if
 * that is set, or is carried out. All of it is of the thread that uses it.
 */
struct vm_seam {
	int calls;
	int pokes; /* those of them that were hd_shm_poke */
	struct vm_call last;
	void (*before)(void *arg);
	void *arg;
	int good, error;
	size_t most;
	const void *look[2]; /* reads from here are no copies: nothing of the above happens */
};

extern _Thread_local struct vm_seam vm_seam;

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *near, unsigned long near_count,
				const struct iovec *far, unsigned long far_count, unsigned long flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *near, unsigned long near_count,
				 const struct iovec *far, unsigned long far_count, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *near, unsigned long near_count,
				const struct iovec *far, unsigned long far_count, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *near, unsigned long near_count,
				 const struct iovec *far, unsigned long far_count, unsigned long flags);
struct hd_shm_peer;
bool __real_hd_shm_poke(struct hd_shm_peer *peer, void *here, uint64_t there, size_t len, bool out);
bool __wrap_hd_shm_poke(struct hd_shm_peer *peer, void *here, uint64_t there, size_t len, bool out);

#endif
