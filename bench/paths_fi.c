/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Paths of libfabric: two domains of this process, reliable datagram endpoints, manual progress. */
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "fi_side.h"
#include "paths.h"
#include "sample.h"

#define LONG (256u << 10)
#define EAGER (4u << 10)

static struct hd_side from, to;
static struct fid_mr *target; /* of to's receive buffer */
static uint64_t target_addr;

static fi_addr_t insert(struct hd_side *s, struct hd_side *other)
{
	struct hd_side_name name;

	hd_side_name(other, &name);
	return hd_side_insert(s, &name);
}

static void open_both(void)
{
	const struct hd_side_opts o = { .prov = "heddle",
					.addr = "127.0.0.1",
					.tagged = true,
					.rma = true,
					.atomic = true,
					.buf_size = LONG,
					.rx_depth = 16 };
	int rc;

	hd_side_open(&from, &o);
	hd_side_open(&to, &o);
	from.peer = insert(&from, &to);
	to.peer = insert(&to, &from);
	rc = fi_mr_reg(to.domain, to.rx_buf, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &target, NULL);
	if (rc)
		hd_side_failed("fi_mr_reg", rc);
	target_addr = to.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)to.rx_buf : 0;
}

static void both_turn(void)
{
	hd_side_reap_one(&from);
	hd_side_reap_one(&to);
}

/* Until everything has completed that was posted at either end. */
static void finish(uint64_t received)
{
	while (to.rx_done < received || !hd_side_idle(&from))
		both_turn();
}

static void receives(size_t len)
{
	for (int i = 0; i < BATCH; i++)
		hd_side_recv(&to, len, HD_TAG_DATA, (size_t)i);
}

static void sends(size_t len)
{
	for (int i = 0; i < BATCH; i++)
		hd_side_send(&from, from.peer, len, HD_TAG_DATA);
}

static void messages(size_t len)
{
	uint64_t received = to.rx_done + BATCH;

	receives(len);
	sends(len);
	finish(received);
}

static void tsend_8(void)
{
	messages(8);
}

static void tsend_4k(void)
{
	messages(EAGER);
}

static void tsend_256k(void)
{
	messages(LONG);
}

/* The messages come first: a turn of the target takes them in. */
static void unexpected_8(void)
{
	uint64_t received = to.rx_done + BATCH;

	sends(8);
	both_turn();
	both_turn();
	receives(8);
	finish(received);
}

static void *context(void)
{
	if (!from.tx_nfree)
		hd_give_up("no context is free");
	return from.tx_free[--from.tx_nfree];
}

static void posted(const char *what, ssize_t rc)
{
	if (rc)
		hd_side_failed(what, rc);
}

static void write_8(void)
{
	paths_pause();
	for (int i = 0; i < BATCH; i++)
		posted("fi_write", fi_write(from.ep, from.tx_buf, 8, from.tx_desc, from.peer, target_addr,
					    fi_mr_key(target), context()));
	finish(to.rx_done);
}

static void fetch_add_8(void)
{
	for (int i = 0; i < BATCH; i++)
		posted("fi_fetch_atomic", fi_fetch_atomic(from.ep, from.tx_buf, 1, from.tx_desc, from.rx_buf,
							  from.rx_desc, from.peer, target_addr,
							  fi_mr_key(target), FI_UINT64, FI_SUM, context()));
	finish(to.rx_done);
}

/* Both ends look, and there is nothing. */
static void empty_reads(void)
{
	for (int i = 0; i < BATCH; i++)
		both_turn();
}

const struct path fi_paths[] = {
	{ "tsend-8", open_both, tsend_8 },
	{ "tsend-4k", open_both, tsend_4k },
	{ "tsend-256k", open_both, tsend_256k },
	{ "tsend-8-unexpected", open_both, unexpected_8 },
	{ "tsend-8-tcp", open_both, tsend_8 },
	{ "write-8", open_both, write_8 },
	{ "fetch-add-8", open_both, fetch_add_8 },
	{ "empty-reads", open_both, empty_reads },
	{ NULL, NULL, NULL },
};
