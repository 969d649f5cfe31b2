/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Whether each side may copy from and to the other's memory, and what is shown of it. */
#include "transport/shm/copy.h"

#include "base/config.h"
#include "base/log.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

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

/* The other side says whether we may before the link is live, and never again. */
void hd_shm_may_look(struct hd_shm_link *l)
{
	l->reaches = l->state == HD_SHM_LIVE && hd_shm_we_can(l);
}

static uint8_t row_direct(uint32_t direct, uint16_t *error)
{
	static const uint8_t shown[] = {
		[HD_SHM_DIRECT_UNKNOWN] = HD_DIRECT_NA,
		[HD_SHM_DIRECT_YES] = HD_DIRECT_YES,
		[HD_SHM_DIRECT_OFF] = HD_DIRECT_OFF,
		[HD_SHM_DIRECT_REFUSED] = HD_DIRECT_REFUSED,
	};
	uint32_t what = direct & 0xff;

	*error = (uint16_t)(direct >> 8);
	return what < sizeof(shown) ? shown[what] : HD_DIRECT_NA;
}

void hd_shm_link_show(struct hd_shm_link *l)
{
	struct hd_page_link *row = l->base.row;
	uint32_t ours, theirs;

	if (!row || !l->own)
		return;
	ours = atomic_load_explicit(&l->own->direct, memory_order_relaxed);
	theirs = atomic_load_explicit(&l->other->direct, memory_order_relaxed);
	if (ours == HD_SHM_DIRECT_OFF || theirs == HD_SHM_DIRECT_OFF)
		ours = theirs = HD_SHM_DIRECT_OFF; /* one side's wish is enough */
	row->peer_pid = l->peer.pid;
	row->direct_out = row_direct(ours, &row->direct_out_errno);
	row->direct_in = row_direct(theirs, &row->direct_in_errno);
}

static void say_direct(struct hd_shm_link *l, enum hd_shm_direct what, int error)
{
	atomic_store_explicit(&l->own->direct, (uint32_t)what | (uint32_t)error << 8, memory_order_relaxed);
	hd_shm_may_look(l);
	hd_shm_link_show(l);
}

void hd_shm_refused(struct hd_shm_link *l, int error)
{
	hd_info("process %d: no direct copies: %s: messages go through the ring; `heddle info` says what is allowed here",
		(int)l->peer.pid, strerror(error));
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

bool hd_shm_probe(struct hd_shm_link *l)
{
	int error;

	if (!hd_config_bool(HD_SET_DIRECT_COPY)) {
		say_direct(l, HD_SHM_DIRECT_OFF, 0);
		return true;
	}
	error = hd_shm_probe_page(&l->peer);
	l->peer.probed = !error;
	if (error)
		hd_shm_refused(l, error);
	else
		say_direct(l, HD_SHM_DIRECT_YES, 0);
	return error != ESRCH;
}
