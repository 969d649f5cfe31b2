/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The page that a node shows to its peers and to `heddle info`; see node_page.h. */
#include "base/advice.h"
#include "base/clock.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/memfd.h"
#include "base/random.h"
#include "engine/name/name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* Linux 6.3 */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10 /* Linux 5.1 */
#endif

#define PAGE_SIZE ((sizeof(struct hd_page_file) + 4095) & ~UINT64_C(4095))
static_assert(PAGE_SIZE / 1024 <= UINT16_MAX, "size_kib says it");
/*
 * from the start: a whole number of pages, however long those are, in the first of which it stands
 */
#define WITNESS_SIZE 0x10000u
static_assert(offsetof(struct hd_node_page, witness) + sizeof(struct hd_witness) <= 4096, "in the first");

static int memfd(void)
{
	int fd = memfd_create(HD_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(HD_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

static void page_fill(struct hd_node *node)
{
	struct hd_node_page *p = hd_core(node)->page;
	FILE *f = fopen("/proc/self/comm", "re");

	if (f) {
		if (fgets(p->program, sizeof(p->program), f))
			p->program[strcspn(p->program, "\n")] = '\0';
		fclose(f);
	}
	snprintf(p->front, sizeof(p->front), "%s",
		 hd_core(node)->attr.front ? hd_core(node)->attr.front : "");
	p->version = HD_PAGE_VERSION;
	p->size_kib = PAGE_SIZE / 1024;
	p->pid = getpid();
	p->link_rows = HD_PAGE_LINKS;
	p->incarnation = hd_now_ns();
	p->probe_addr = (uint64_t)(uintptr_t)&hd_names(node)->probe_word;
	p->probe_value = hd_names(node)->probe_word;
	p->magic = HD_PAGE_MAGIC;
}

/*
 * A file in memory that peers map, and `heddle info`. 0 or a negative errno; what was made is
 * undone by hd_page_close.
 */
static int page_share(struct hd_node *node)
{
	struct hd_names *names = hd_names(node);
	void *at;

	if (ftruncate(names->page_fd, PAGE_SIZE) < 0)
		return -errno;
	at = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, names->page_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	hd_core_show(node, at);
	if (fcntl(names->page_fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

/*
 * A container may refuse memfd_create(2): then nobody else sees the page, and nobody of this host
 * shares memory with the node.
 */
static int page_keep(struct hd_node *node, int error)
{
	static _Atomic bool said;
	void *at = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	hd_core_show(node, at);
	if (!atomic_exchange(&said, true))
		hd_warn("no shared memory: memfd_create: %s%s; without it TCP alone, and `heddle info` does not show this program",
			strerror(error), hd_advice(error));
	return 0;
}

/* hd_page_open: 0 or a negative errno; what was made is undone by hd_page_close. */
int hd_page_open(struct hd_node *node)
{
	int rc;

	hd_names(node)->page_fd = memfd();
	if (hd_names(node)->page_fd >= 0)
		rc = page_share(node);
	else
		rc = hd_memfd_is_refused(errno) ? page_keep(node, errno) : -errno;
	if (rc)
		return rc;
	if (madvise(hd_core(node)->page, PAGE_SIZE, MADV_DONTFORK) < 0)
		return -errno;
	if (hd_random(&hd_core(node)->page->id, sizeof(hd_core(node)->page->id)) ||
	    hd_random(&hd_names(node)->probe_word, sizeof(hd_names(node)->probe_word)))
		return -EIO;
	page_fill(node);
	hd_witness_open(&hd_core(node)->page->witness);
	return 0;
}

/* All of it, or but for the part that another thread's list of robust mutexes goes through. */
static void page_unmap(struct hd_node_page *page)
{
	size_t kept = hd_witness_close(&page->witness) ? 0 : WITNESS_SIZE;

	munmap((char *)page + kept, PAGE_SIZE - kept);
}

void hd_page_close(struct hd_node *node)
{
	if (hd_core(node)->page && !hd_core(node)->gate.dead) /* not mapped in a forked child */
		page_unmap(hd_core(node)->page);
	if (hd_names(node)->page_fd >= 0)
		close(hd_names(node)->page_fd);
}

/* hd_page_row_get: a row for a new link; one that nobody sees when the table is full. */
struct hd_page_link *hd_page_row_get(struct hd_node *node)
{
	for (int i = 0; i < HD_PAGE_LINKS; i++) {
		struct hd_page_link *row = &hd_core(node)->page->links[i];

		if (hd_names(node)->rows_used[i])
			continue;
		hd_names(node)->rows_used[i] = true;
		memset((char *)row + sizeof(row->state), 0, sizeof(*row) - sizeof(row->state));
		return row;
	}
	return &hd_names(node)->spare_row;
}

void hd_page_row_put(struct hd_node *node, struct hd_page_link *row)
{
	if (row == &hd_names(node)->spare_row)
		return;
	/* relaxed: nothing follows from a row that is gone */
	atomic_store_explicit(&row->state, 0, memory_order_relaxed);
	hd_names(node)->rows_used[row - hd_core(node)->page->links] = false;
}

/* ---- what peers may do by themselves --------------------------------------------------------- */

/*
 * hd_page_ep_show: tell peers what the endpoint at this index is; state 0: there is none (any
 * more). Endpoints beyond the table are not shown: operations on them go by packet.
 */
void hd_page_ep_show(struct hd_node *node, uint32_t index, const struct hd_page_ep *what)
{
	struct hd_page_ep *row;

	if (hd_core(node)->gate.dead || index >= HD_PAGE_EPS)
		return;
	row = &hd_page_tables(hd_core(node)->page)->eps[index];
	atomic_store_explicit(&row->state, 0, memory_order_relaxed);
	/* whoever reads what is written now finds another state afterwards */
	atomic_thread_fence(memory_order_release);
	memcpy((char *)row + sizeof(row->state), (const char *)what + sizeof(what->state),
	       sizeof(*row) - sizeof(row->state));
	/* release: the rest is there when the state is */
	atomic_store_explicit(&row->state, what->state, memory_order_release);
}

/*
 * hd_page_mr_take: a row that nobody uses for a region with this key, or -1: there is
 * none in the key's window.
 */
int hd_page_mr_take(struct hd_node *node, uint64_t key)
{
	uint32_t home = hd_page_mr_home(key);

	for (uint32_t i = 0; i < HD_PAGE_WINDOW && !hd_core(node)->gate.dead; i++) {
		uint32_t place = (home + i) & (HD_PAGE_MRS - 1);

		if (hd_names(node)->mr_rows[place])
			continue;
		hd_names(node)->mr_rows[place] = true;
		hd_page_tables(hd_core(node)->page)->mr_count++;
		return (int)place;
	}
	return -1;
}

/* hd_page_mr_put: the row is free again: it is hidden, and nobody acts on it. */
void hd_page_mr_put(struct hd_node *node, int place)
{
	hd_names(node)->mr_rows[place] = false;
	if (!hd_core(node)->gate.dead)
		hd_page_tables(hd_core(node)->page)->mr_count--;
}

/* NULL in a forked child: the table is the parent's. */
static struct hd_page_mr *mr_row(struct hd_node *node, int place)
{
	return hd_core(node)->gate.dead ? NULL : &hd_page_tables(hd_core(node)->page)->mrs[place];
}

/*
 * hd_page_mr_hide: the row is not valid from now on. Whoever saw it valid may still act on it:
 * see hd_transport.settle.
 */
void hd_page_mr_hide(struct hd_node *node, int place)
{
	struct hd_page_mr *row = mr_row(node, place);
	uint32_t state;

	if (!row)
		return;
	state = atomic_load_explicit(&row->state, memory_order_relaxed);
	if (state & 1)
		atomic_store_explicit(&row->state, state + 1, memory_order_release);
}

/*
 * hd_page_mr_show: fill a row that is hidden, and make it valid; `what` is
 * copied but for its state.
 */
void hd_page_mr_show(struct hd_node *node, int place, const struct hd_page_mr *what)
{
	struct hd_page_mr *row = mr_row(node, place);
	uint32_t state;

	if (!row)
		return;
	state = atomic_load_explicit(&row->state, memory_order_relaxed);
	/*
	 * whoever reads what is written now has seen the number before, and
	 * finds another one afterwards
	 */
	atomic_thread_fence(memory_order_release);
	memcpy((char *)row + sizeof(row->state), (const char *)what + sizeof(what->state),
	       sizeof(*row) - sizeof(row->state));
	atomic_store_explicit(&hd_core(node)->page->handles_faults, hd_guard_asks(), memory_order_relaxed);
	/* release: whoever sees the row valid sees it whole */
	atomic_store_explicit(&row->state, state + 1, memory_order_release);
}

const struct hd_node_id *hd_node_id(const struct hd_node *node)
{
	return &hd_core(node)->page->id;
}

struct hd_node_page *hd_node_page(struct hd_node *node)
{
	return hd_core(node)->page;
}

int hd_node_page_fd(struct hd_node *node)
{
	return hd_names(node)->page_fd;
}

int hd_node_wake_fd(struct hd_node *node)
{
	return hd_core(node)->wake_fd;
}
