/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Long messages: cooperative copy. The sender offers its memory by address; the receiver fetches it, and where
 * the message has several chunks asks the sender for help. From then on both take chunks from one counter in
 * shared memory and copy them, the receiver with process_vm_readv(2), the sender with process_vm_writev(2), a
 * chunk in each turn of progress. Nobody waits for the other, except for a chunk that it has taken already.
 *
 *	sender                              receiver
 *	------                              --------
 *	offer(): number, segments  ------>  pull(): open the claim of a copy
 *	                           <------  HELP: number, copy, generation
 *	take chunk, write it                take chunk, read it
 *	…                                   …
 *	helped = n: store, release ------>  own + helped == all: done
 *
 * Each side may find at any time that the kernel does not let it copy (another user name space, a seccomp
 * filter, memory of a device). The helper then gives its chunk back in `returned`, and the receiver copies
 * that too. The receiver begins anew with a new generation, in which the helper does everything. When neither
 * can, the engine sends the message in frames.
 *
 * Nobody reads or writes its own memory at an address that came from the other side: an offer is looked up by
 * number in a private table, a buffer is the one that was given to pull().
 */
#include "transport/shm/copy.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALIVE_US 1000 /* how long a process is taken for alive without asking */

/* ---- may we? ---- */

static uint32_t direct_of(const struct hd_shm_side *side)
{
	return side ? atomic_load_explicit(&side->direct, memory_order_relaxed) : 0;
}

bool hd_shm_we_can(const struct hd_shm_link *l)
{
	return direct_of(l->own) == HD_SHM_DIRECT_YES && direct_of(l->other) != HD_SHM_DIRECT_OFF;
}

bool hd_shm_they_can(const struct hd_shm_link *l)
{
	return direct_of(l->other) == HD_SHM_DIRECT_YES && direct_of(l->own) != HD_SHM_DIRECT_OFF;
}

static void say_direct(struct hd_shm_link *l, enum hd_shm_direct what, int error)
{
	atomic_store_explicit(&l->own->direct, (uint32_t)what | (uint32_t)error << 8, memory_order_relaxed);
	hd_shm_direct_look(l);
	hd_shm_link_show(l);
}

void hd_shm_refused(struct hd_shm_link *l, int error)
{
	hd_info("process %d: no direct copies: %s: messages go through the ring", (int)l->peer_pid,
		strerror(error));
	say_direct(l, HD_SHM_DIRECT_REFUSED, error);
}

/* Yama's mode 1 lets only ancestors in, unless one asks; elsewhere asking is needless. */
void hd_shm_copy_init(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd < 0)
		return;
	if (read(fd, &scope, 1) != 1)
		scope = '0';
	close(fd);
	if (scope != '1' || !hd_config_bool(HD_SET_PTRACER) || !hd_config_bool(HD_SET_DIRECT_COPY))
		return;
	if (prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) < 0)
		hd_debug("the kernel restricts direct copies and does not let us permit them: %m");
}

static int probe(const struct hd_shm_link *l)
{
	return hd_shm_probe_word(l->peer_pid, l->page->probe_addr, l->page->probe_value);
}

bool hd_shm_probe(struct hd_shm_link *l)
{
	int error;

	if (!hd_config_bool(HD_SET_DIRECT_COPY)) {
		say_direct(l, HD_SHM_DIRECT_OFF, 0);
		return true;
	}
	error = probe(l);
	l->probed = !error;
	if (error)
		hd_shm_refused(l, error);
	else
		say_direct(l, HD_SHM_DIRECT_YES, 0);
	return error != ESRCH;
}

/* ---- copying ---- */

int hd_shm_slice(const struct iovec *iov, uint64_t at, uint64_t n, struct iovec *out)
{
	int count = 0;

	for (; n; iov++) {
		uint64_t here;

		if (at >= iov->iov_len) {
			at -= iov->iov_len;
			continue;
		}
		here = iov->iov_len - at < n ? iov->iov_len - at : n;
		out[count++] = (struct iovec){ (uint8_t *)iov->iov_base + at, here };
		n -= here;
		at = 0;
	}
	return count;
}

bool hd_shm_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

/*
 * A pid may have been given to another process since its owner died; the pidfd is readable from the death on. After execve(2) the process is another program,
 * with other memory at the same addresses, and neither tells: the word that its page speaks of does, which no two nodes have alike. It is read by the call that
 * is about to write, hence from the same memory: a descriptor of the old memory goes on to read it for as long as anybody else holds it.
 */
bool hd_shm_look_there(struct hd_shm_link *l)
{
	int error;

	if (hd_shm_readable(l->pidfd.fd))
		return false;
	error = probe(l);
	if (error == ESRCH || error == EFAULT)
		return false; /* of anything else the copy itself tells */
	l->alive_until = hd_ticks() + ALIVE_US * hd_ticks_per_us();
	return true;
}

static int copy_bytes(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t at,
		      uint64_t n, bool out)
{
	struct iovec here[HD_IOV_MAX], there[HD_SHM_SEGS];
	int heres = hd_shm_slice(near, at, n, here), theres = hd_shm_slice(far, at, n, there);
	ssize_t done = hd_shm_copy_call(l, here, heres, there, theres, out);

	if (done < 0)
		return (int)-done;
	return (uint64_t)done == n ? 0 : EFAULT;
}

int hd_shm_copy_part(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t at,
		     uint64_t n, bool out)
{
	int error = copy_bytes(l, near, far, at, n, out);

	if (error == ESRCH)
		hd_shm_link_end(l, -ECONNRESET, "the process has ended");
	else if (error && error != EFAULT && hd_shm_we_can(l))
		hd_shm_refused(l, error);
	return error;
}

int hd_shm_copy_chunk(struct hd_shm_link *l, const struct iovec *near, const struct iovec *far, uint64_t len,
		      uint32_t k, bool out)
{
	uint64_t chunk = hd_shm_chunk(len), at = k * chunk;

	return hd_shm_copy_part(l, near, far, at, len - at < chunk ? len - at : chunk, out);
}

bool hd_shm_take_chunk(_Atomic uint64_t *claim, uint32_t gen, uint64_t chunks)
{
	uint64_t now = atomic_load_explicit(claim, memory_order_relaxed);

	do
		if (now >> 32 != gen || (uint32_t)now >= chunks)
			return false;
	while (!atomic_compare_exchange_weak_explicit(claim, &now, now + 1, memory_order_relaxed,
						      memory_order_relaxed));
	return true;
}

/* ---- progress ---- */

int hd_shm_copy_poll(struct hd_shm_link *l)
{
	int n = hd_shm_help_poll(l);

	n += hd_shm_pulls_poll(l);
	if (l->state == HD_SHM_LIVE)
		l->attention = !TAILQ_EMPTY(&l->pulls) || !TAILQ_EMPTY(&l->helps) || !TAILQ_EMPTY(&l->row);
	return n;
}

bool hd_shm_copy_arm(struct hd_shm_link *l)
{
	return !TAILQ_EMPTY(&l->helps) || hd_shm_pulls_arm(l);
}

void hd_shm_copy_stop(struct hd_shm_link *l)
{
	hd_shm_pulls_stop(l);
	hd_shm_help_stop(l);
}

void hd_shm_copy_end(struct hd_shm_link *l)
{
	hd_shm_help_stop(l);
	hd_shm_pulls_end(l);
}
