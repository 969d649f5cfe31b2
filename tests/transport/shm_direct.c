/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/shm_direct.h"

#include <string.h>

struct hd_page_tables *direct_tables(struct duo *d)
{
	return hd_page_tables(d->node[1]->page);
}

static void show(struct duo *d)
{
	atomic_store(&direct_tables(d)->mrs[MR_ROW].state, MR_STATE);
	atomic_store(&direct_tables(d)->eps[EP_ROW].state, EP_STATE);
	direct_tables(d)->mr_count = 1;
}

void direct_scene(struct duo *d)
{
	memset(&vm_seam, 0, sizeof(vm_seam));
	duo_open(d);
	memset(&vm_seam, 0, sizeof(vm_seam)); /* it has probed */
	for (int i = 0; i < 2; i++)
		vm_seam.look[i] = (const void *)(uintptr_t)d->node[i]->page->probe_addr;
	show(d);
}

int64_t direct_reach(struct duo *d, const struct iovec *near, int count, void *far, bool out)
{
	struct hd_direct r = { .mr = MR_ROW,
			       .mr_state = MR_STATE,
			       .ep = EP_ROW,
			       .ep_state = EP_STATE,
			       .near = near,
			       .count = count,
			       .far = (uintptr_t)far,
			       .out = out,
			       .last = true };

	for (int i = 0; i < count; i++)
		r.len += near[i].iov_len;
	return d->link[0]->base.ops->direct(&d->link[0]->base, &r);
}

int64_t direct_one(struct duo *d, void *near, void *far, size_t len, bool out)
{
	struct iovec iov = { near, len };

	return direct_reach(d, &iov, 1, far, out);
}
