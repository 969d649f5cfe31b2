/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Is a process gone that may be in the middle of a copy from or to memory of ours? Its pidfd tells,
 * its own or one that we have opened. Where the kernel gives none, the process table does. Or it
 * has become another program by execve(2), which ends all that it was in the middle of: then the
 * word that its page speaks of is not there any more.
 */
#include "base/proc.h"
#include "transport/shm/copy.h"

#include <poll.h>
#include <signal.h>
#include <sys/uio.h>

uint64_t hd_shm_born(pid_t pid)
{
	uint64_t born = 0;
	char state;

	return pid > 0 && hd_proc_stat(pid, &state, &born) ? born : 0;
}

/* It is, once its process has ended; -1: nobody knows. */
static bool pidfd_is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

/*
 * By its number: it is no more, waits for its parent to read how it ended, or
 * the number is another's.
 */
static bool gone_by_number(const struct hd_shm_process *p)
{
	uint64_t born = 0;
	char state = 0;

	if (p->pid <= 0)
		return false;
	if (kill(p->pid, 0) < 0 && errno == ESRCH)
		return true;
	return hd_proc_stat(p->pid, &state, &born) &&
	       (state == 'Z' || state == 'X' || (p->born && born != p->born));
}

int hd_shm_probe_word(pid_t pid, uint64_t addr, uint64_t want)
{
	uint64_t got = 0;
	struct iovec here = { &got, sizeof(got) }, there = { (void *)(uintptr_t)addr, sizeof(got) };
	ssize_t n;

	if (pid <= 0)
		return ESRCH;
	n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	if (n < 0)
		return errno;
	/* another process has this pid where we look */
	return n == sizeof(got) && got == want ? 0 : ESRCH;
}

int hd_shm_probe_page(const struct hd_shm_peer *peer)
{
	return hd_shm_probe_word(peer->pid, peer->page->probe_addr, peer->page->probe_value);
}

bool hd_shm_process_is_gone(const struct hd_shm_process *p)
{
	int error = p->probed ? hd_shm_probe_word(p->pid, p->probe_addr, p->probe_value) : 0;

	if (pidfd_is_readable(p->pidfd) || error == ESRCH || error == EFAULT)
		return true;
	return p->pidfd < 0 && gone_by_number(p);
}

void hd_shm_process_of(const struct hd_shm_peer *peer, struct hd_shm_process *p)
{
	*p = (struct hd_shm_process){ .pid = peer->pid,
				      .pidfd = peer->pidfd.fd,
				      .born = peer->born,
				      .probed = peer->page && peer->probed };
	if (p->probed) {
		p->probe_addr = peer->page->probe_addr;
		p->probe_value = peer->page->probe_value;
	}
}

bool hd_shm_is_gone(const struct hd_shm_peer *peer)
{
	struct hd_shm_process p;

	hd_shm_process_of(peer, &p);
	return hd_shm_process_is_gone(&p);
}

/*
 * A pid may have been given to another process since its owner died; the pidfd is readable from the
 * death on. After execve(2) the process is another program, with other memory at the same
 * addresses, and neither tells: the word that its page speaks of does, which no two nodes have
 * alike. It is read by the call that is about to write, hence from the same memory: a descriptor of
 * the old memory goes on to read it for as long as anybody else holds it.
 */
bool hd_shm_look_there(const struct hd_shm_peer *peer)
{
	int error;

	if (pidfd_is_readable(peer->pidfd.fd))
		return false;
	error = hd_shm_probe_page(peer);
	return error != ESRCH && error != EFAULT; /* of anything else the copy itself tells */
}
