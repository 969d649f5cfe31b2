/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/vm_seam.h"

_Thread_local struct vm_seam vm_seam;

/* Note the call. 0: carry it out on *far_count segments of `far`; else the errno to fail with. */
static int note(bool out, const struct iovec *near, unsigned long near_count, struct iovec *far,
		unsigned long *far_count)
{
	struct vm_seam *s = &vm_seam;
	size_t room = s->most;

	s->calls++;
	s->last = (struct vm_call){ .out = out, .near_count = near_count, .far_count = *far_count };
	memcpy(s->last.far, far, *far_count * sizeof(far[0]));
	memcpy(s->last.near, near, near_count * sizeof(near[0]));
	if (s->before) {
		void (*before)(void *) = s->before;

		s->before = NULL;
		before(s->arg);
	}
	if (s->error && s->good-- <= 0)
		return s->error;
	for (unsigned long i = 0; s->most && i < *far_count; i++) {
		far[i].iov_len = far[i].iov_len < room ? far[i].iov_len : room;
		room -= far[i].iov_len;
	}
	return 0;
}

static ssize_t call(bool out, pid_t pid, const struct iovec *near, unsigned long near_count,
		    const struct iovec *far, unsigned long far_count, unsigned long flags)
{
	struct iovec mine[16];

	/* looking for the page that is not there, or whether the process is still the same */
	if (far_count > 16 || far[0].iov_base == vm_seam.look[0] || far[0].iov_base == vm_seam.look[1])
		return __real_process_vm_readv(pid, near, near_count, far, far_count, flags);
	memcpy(mine, far, far_count * sizeof(far[0]));
	errno = note(out, near, near_count, mine, &far_count);
	if (errno)
		return -1;
	return out ? __real_process_vm_writev(pid, near, near_count, mine, far_count, flags)
		   : __real_process_vm_readv(pid, near, near_count, mine, far_count, flags);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *near, unsigned long near_count,
				const struct iovec *far, unsigned long far_count, unsigned long flags)
{
	return call(false, pid, near, near_count, far, far_count, flags);
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *near, unsigned long near_count,
				 const struct iovec *far, unsigned long far_count, unsigned long flags)
{
	return call(true, pid, near, near_count, far, far_count, flags);
}

/* One that does not go well is judged by the call that comes after it. */
bool __wrap_hd_shm_poke(struct hd_shm_peer *peer, void *here, uint64_t there, size_t len, bool out)
{
	struct iovec near = { here, len }, far = { (void *)(uintptr_t)there, len };
	unsigned long one = 1;
	bool done;

	if (vm_seam.error || vm_seam.most)
		return false;
	note(out, &near, 1, &far, &one);
	done = __real_hd_shm_poke(peer, here, there, len, out);
	vm_seam.calls -= !done;
	vm_seam.pokes += done;
	return done;
}
