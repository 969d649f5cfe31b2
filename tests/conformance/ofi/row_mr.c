/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Memory regions as others see them: fi_mr(3). Each mode by what it means for addresses and keys;
 * rights, counters, events, raw keys. Rank 0 reaches into the memory of rank 1.
 */
#include "region.h"

#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LEN 4096
#define LONG 300000
#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ALL_MODES \
	(FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | \
	 FI_MR_RMA_EVENT | FI_MR_ENDPOINT | FI_MR_COLLECTIVE)

static const struct ct_want usual = { .caps = FI_MSG | FI_TAGGED | FI_RMA };

static void write_to(struct ct_ep *e, const void *buf, size_t len, struct ct_place at)
{
	CT_POST(e, fi_write(e->ep, buf, len, NULL, e->addr[1], at.addr, at.key, CTX(1)));
	ct_done(e, CTX(1));
}

static void read_from(struct ct_ep *e, void *buf, size_t len, struct ct_place at)
{
	CT_POST(e, fi_read(e->ep, buf, len, NULL, e->addr[1], at.addr, at.key, CTX(2)));
	ct_done(e, CTX(2));
}

static void must_fail(struct ct_ep *e, bool writes, struct ct_place at, size_t len)
{
	static char buf[LONG];
	struct ct_comp c;

	if (writes)
		CT_POST(e, fi_write(e->ep, buf, len, NULL, e->addr[1], at.addr, at.key, CTX(3)));
	else
		CT_POST(e, fi_read(e->ep, buf, len, NULL, e->addr[1], at.addr, at.key, CTX(3)));
	ct_of(e, CTX(3), &c);
	CT_TRUE(e->ct, c.err > 0);
}

/*
 * arg: the mr_mode of the hints. The answer is no more than that, and says
 * how to address the region.
 */
static void mode(struct ct *ct)
{
	struct ct_want want = usual;
	char out[100], in[100];
	struct ct_region r;
	struct ct_dom dom;
	struct ct_place at;
	struct ct_ep e;
	int hints = (int)ct->cs->arg, answer;

	want.mr_mode = hints ? hints : CT_MR_NONE;
	ct_start(ct, &dom, &e, &want);
	answer = dom.info->domain_attr->mr_mode;
	CT_EQ(ct, answer & ~hints, 0);
	if (hints == FI_MR_BASIC || hints == FI_MR_SCALABLE)
		CT_EQ(ct, answer, hints);
	ct_offer(&e, &r, LEN, REMOTE, &at);
	if (ct->rank && !(answer & (FI_MR_PROV_KEY | FI_MR_BASIC)))
		CT_EQ(ct, r.at.key, 7);
	if (!ct->rank) {
		ct_fill(out, sizeof(out), 3);
		at.addr += 1000;
		write_to(&e, out, sizeof(out), at);
		read_from(&e, in, sizeof(in), at);
		CT_TRUE(ct, !memcmp(in, out, sizeof(in)));
	}
	ct_sync(ct, &e);
	if (ct->rank)
		ct_verify(ct, r.mem + 1000, sizeof(out), 3, "written");
	ct_take_back(&e, &r);
}

/* One region of several buffers: without FI_MR_VIRT_ADDR they are one range of offsets. */
static void several_buffers(struct ct *ct)
{
	struct ct_want want = usual;
	struct iovec iov[3];
	struct ct_dom dom;
	struct ct_place at;
	struct fid_mr *mr;
	struct ct_ep e;
	char data[300];
	char *mem = ct_alloc(ct, LEN);

	want.mr_mode = CT_MR_NONE;
	ct_start(ct, &dom, &e, &want);
	if (dom.info->domain_attr->mr_iov_limit < 3)
		ct_unsupported(ct, "mr_iov_limit %zu", dom.info->domain_attr->mr_iov_limit);
	for (int i = 0; i < 3; i++)
		iov[i] = (struct iovec){ mem + 1000 * i, 100 };
	if (ct->rank) {
		CT_OK(ct, fi_mr_regv(dom.domain, iov, 3, REMOTE, 0, 55, 0, &mr, NULL));
		at = ct_region_ready(&e, mr, mem);
		CT_EQ(ct, at.key, 55);
	}
	ct_sync(ct, &e);
	if (!ct->rank) {
		at = (struct ct_place){ 0, 55 };
		ct_fill(data, sizeof(data), 1);
		write_to(&e, data, sizeof(data), at);
		memset(data, 0, sizeof(data));
		read_from(&e, data, sizeof(data), at);
		ct_verify(ct, data, sizeof(data), 1, "read back");
		must_fail(&e, true, at, 301);
		at.addr = 299;
		must_fail(&e, false, at, 2);
	}
	ct_sync(ct, &e);
	if (ct->rank) {
		for (size_t i = 0; i < 3; i++) {
			CT_TRUE(ct, ct_match(mem + 1000 * i, 100, 1, 100 * i));
			CT_TRUE(ct, ct_untouched(mem + 1000 * i + 100, 900, 0));
		}
		CT_OK(ct, fi_close(&mr->fid));
	}
	free(mem);
	ct_finish(&e);
}

/*
 * Each right by itself; a closed region has none. Capabilities, which some programs name
 * beside the rights, give none.
 */
static void rights(struct ct *ct)
{
	static const uint64_t rights[] = { FI_REMOTE_READ, FI_REMOTE_WRITE,
					   FI_READ | FI_WRITE | FI_SEND | FI_RECV,
					   FI_RMA | FI_MSG | FI_TAGGED | FI_ATOMIC | FI_WRITE };
	struct ct_dom dom;
	struct ct_ep e;
	char buf[8];

	ct_start(ct, &dom, &e, &usual);
	for (size_t i = 0; i < CT_COUNT(rights); i++) {
		struct ct_region r;
		struct ct_place at;

		ct_offer(&e, &r, LEN, rights[i], &at);
		if (!ct->rank && rights[i] & FI_REMOTE_READ)
			read_from(&e, buf, sizeof(buf), at);
		else if (!ct->rank)
			must_fail(&e, false, at, 8);
		if (!ct->rank && rights[i] & FI_REMOTE_WRITE)
			write_to(&e, buf, sizeof(buf), at);
		else if (!ct->rank)
			must_fail(&e, true, at, 8);
		ct_sync(ct, &e);
		if (ct->rank)
			ct_region_close(&e, &r);
		ct_sync(ct, &e);
		if (!ct->rank)
			must_fail(&e, i & 1, at, 8);
	}
	ct_ping(&e, !ct->rank);
	ct_finish(&e);
}

/* The program's key is taken until its region closes; what is no region is refused. */
static void keys(struct ct *ct)
{
	struct ct_want want = usual;
	struct fid_mr *mr, *other;
	char mem[64];
	struct ct_dom dom;

	want.mr_mode = CT_MR_NONE;
	ct_open(ct, &dom, &want);
	CT_EQ(ct, dom.info->domain_attr->mr_mode & FI_MR_PROV_KEY, 0);
	CT_OK(ct, fi_mr_reg(dom.domain, mem, 64, FI_REMOTE_READ, 0, 5, 0, &mr, NULL));
	CT_EQ(ct, fi_mr_key(mr), 5);
	CT_EQ(ct, fi_mr_reg(dom.domain, mem, 64, FI_REMOTE_READ, 0, 5, 0, &other, NULL), -FI_ENOKEY);
	CT_OK(ct, fi_close(&mr->fid));
	CT_OK(ct, fi_mr_reg(dom.domain, mem, 64, FI_REMOTE_READ, 0, 5, 0, &mr, NULL));
	/* of nothing */
	CT_OK(ct, fi_mr_reg(dom.domain, mem, 0, FI_REMOTE_READ, 0, 6, 0, &other, NULL));
	CT_OK(ct, fi_close(&other->fid));
	CT_REFUSED(ct, fi_mr_reg(dom.domain, NULL, 64, FI_REMOTE_READ, 0, 6, 0, &other, NULL));
	CT_REFUSED(ct, fi_mr_reg(dom.domain, mem, 64, FI_REMOTE_READ, 8, 6, 0, &other, NULL));
	CT_EQ(ct, fi_mr_reg(dom.domain, mem, 64, FI_REMOTE_READ, 0, 6, 1ULL << 40, &other, NULL),
	      -FI_EBADFLAGS);
	CT_EQ(ct, fi_close(&dom.domain->fid), -FI_EBUSY);
	CT_OK(ct, fi_close(&mr->fid));
	ct_close(&dom);
}

/* A raw key travels in its own form. */
static void raw_key(struct ct *ct)
{
	struct {
		uint64_t base;
		size_t size;
		uint8_t key[256];
	} raw = { 0 };
	struct ct_region r;
	struct ct_dom dom;
	struct ct_place at;
	struct ct_ep e;
	char data[64];

	ct_start(ct, &dom, &e, &usual);
	ct_offer(&e, &r, LEN, REMOTE, &at);
	if (ct->rank) {
		CT_EQ(ct, fi_mr_raw_attr(r.mr, &raw.base, raw.key, &raw.size, 0), -FI_ETOOSMALL);
		CT_TRUE(ct, raw.size && raw.size <= sizeof(raw.key));
		CT_OK(ct, fi_mr_raw_attr(r.mr, &raw.base, raw.key, &raw.size, 0));
		ct_put(ct, 0, &raw, sizeof(raw));
	} else {
		ct_get(ct, &e, 1, &raw, sizeof(raw));
		CT_OK(ct, fi_mr_map_raw(dom.domain, raw.base, raw.key, raw.size, &at.key, 0));
		CT_EQ(ct, at.addr, raw.base);
		ct_fill(data, sizeof(data), 9);
		write_to(&e, data, sizeof(data), at);
		CT_OK(ct, fi_mr_unmap_key(dom.domain, at.key));
	}
	ct_sync(ct, &e);
	if (ct->rank)
		ct_verify(ct, r.mem, sizeof(data), 9, "written");
	ct_take_back(&e, &r);
}

/* A counter of the region counts what others write, through whatever endpoint. */
static void counter(struct ct *ct)
{
	struct ct_want want = usual;
	struct fid_cntr *cntr;
	struct fid_mr *mr, *quiet;
	char *mem = ct_alloc(ct, LEN);
	struct ct_place at[2];
	struct ct_dom dom;
	struct ct_ep e;
	double end;

	want.caps |= FI_RMA_EVENT;
	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		uint64_t flags = dom.info->domain_attr->mr_mode & FI_MR_RMA_EVENT ? FI_RMA_EVENT : 0;

		CT_OK(ct, fi_cntr_open(dom.domain, &(struct fi_cntr_attr){ .events = FI_CNTR_EVENTS_COMP },
				       &cntr, NULL));
		CT_OK(ct, fi_mr_reg(dom.domain, mem, LEN / 2, REMOTE, 0, 1, flags, &mr, NULL));
		CT_OK(ct, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
		at[0] = ct_region_ready(&e, mr, mem);
		CT_OK(ct, fi_mr_reg(dom.domain, mem + LEN / 2, LEN / 2, REMOTE, 0, 2, 0, &quiet, NULL));
		at[1] = ct_region_ready(&e, quiet, mem + LEN / 2);
		CT_REFUSED(ct, fi_close(&cntr->fid));
		ct_put(ct, 0, at, sizeof(at));
		for (end = ct_deadline(ct); fi_cntr_read(cntr) < 10;)
			ct_late(ct, end, "ten writes to be counted");
		ct_sync(ct, &e);
		CT_EQ(ct, fi_cntr_read(cntr), 10);
		CT_OK(ct, fi_close(&mr->fid));
		CT_OK(ct, fi_close(&quiet->fid));
		CT_OK(ct, fi_close(&cntr->fid));
	} else {
		ct_get(ct, &e, 1, at, sizeof(at));
		for (size_t i = 0; i < 10; i++) {
			write_to(&e, mem, i % 2 ? 8 : LEN / 2, at[0]);
			write_to(&e, mem, 8, at[1]);
			read_from(&e, mem, 8, at[0]);
		}
		ct_sync(ct, &e);
	}
	free(mem);
	ct_finish(&e);
}

/* Bound to an EQ with FI_REG_MR the domain tells there that a region is ready. */
static void told_by_event(struct ct *ct)
{
	struct fi_eq_entry entry = { 0 };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct ct_dom dom;
	struct fid_eq *eq;
	struct fid_mr *mr;
	uint32_t event = 0;
	char mem[64];
	double end = ct_deadline(ct);
	int rc;

	ct_open(ct, &dom, &usual);
	CT_OK(ct, fi_eq_open(dom.fabric, &attr, &eq, NULL));
	rc = fi_domain_bind(dom.domain, &eq->fid, FI_REG_MR);
	if (rc == -FI_ENOSYS || rc == -FI_EINVAL)
		ct_unsupported(ct, "fi_domain_bind with FI_REG_MR: %s", fi_strerror(-rc));
	CT_OK(ct, rc);
	CT_OK(ct, fi_mr_reg(dom.domain, mem, 64, REMOTE, 0, 1, 0, &mr, CTX(42)));
	while (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) == -FI_EAGAIN)
		ct_late(ct, end, "the event of a registration");
	CT_EQ(ct, event, FI_MR_COMPLETE);
	CT_TRUE(ct, entry.fid == &mr->fid && entry.context == CTX(42));
	CT_REFUSED(ct, fi_mr_reg(dom.domain, NULL, 64, REMOTE, 0, 2, 0, &mr, NULL));
	CT_EQ(ct, fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	CT_OK(ct, fi_close(&mr->fid));
	CT_OK(ct, fi_close(&dom.domain->fid));
	CT_OK(ct, fi_close(&eq->fid));
	CT_OK(ct, fi_close(&dom.fabric->fid));
	fi_freeinfo(dom.info);
}

/* Some programs register all there is and name addresses as offsets. */
static void whole_address_space(struct ct *ct)
{
	struct ct_want want = usual;
	static char word[64];
	struct ct_place at = { 0, 9 };
	struct ct_dom dom;
	struct fid_mr *mr = NULL;
	struct ct_ep e;
	int rc = 0;

	want.mr_mode = CT_MR_NONE;
	ct_start(ct, &dom, &e, &want);
	if (ct->rank) {
		rc = fi_mr_reg(dom.domain, NULL, SIZE_MAX, REMOTE, 0, 9, 0, &mr, NULL);
		at.addr = (uintptr_t)word;
		ct_put(ct, 0, &at, sizeof(at));
		ct_put(ct, 0, &rc, sizeof(rc));
	} else {
		ct_get(ct, &e, 1, &at, sizeof(at));
		ct_get(ct, &e, 1, &rc, sizeof(rc));
	}
	if (rc)
		ct_unsupported(ct, "fi_mr_reg of everything: %s", fi_strerror(-rc));
	if (!ct->rank) {
		char data[64];

		ct_fill(data, sizeof(data), 4);
		write_to(&e, data, sizeof(data), at);
	}
	ct_sync(ct, &e);
	if (ct->rank) {
		ct_verify(ct, word, sizeof(word), 4, "written");
		CT_OK(ct, fi_close(&mr->fid));
	}
	ct_finish(&e);
}

/*
 * A region whose memory has been unmapped: what reaches there fails, at the initiator, and nothing
 * else; the target, which has no handler of faults, and the endpoints go on.
 */
static void unmapped(struct ct *ct)
{
	static const size_t lens[] = { 8, 100, 4096, 30000, LONG };
	struct ct_dom dom;
	struct ct_ep e;

	ct_faults(ct);
	ct_start(ct, &dom, &e, &usual);
	for (size_t i = 0; i < CT_COUNT(lens); i++)
		for (int writes = 0; writes < 2; writes++) {
			struct ct_place at;
			struct fid_mr *mr;
			char *mem;

			if (ct->rank) {
				mem = mmap(CT_APART, LONG, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
				CT_TRUE(ct, mem != MAP_FAILED);
				CT_OK(ct, fi_mr_reg(dom.domain, mem, LONG, REMOTE, 0, 60 + i, 0, &mr, NULL));
				at = ct_region_ready(&e, mr, mem);
				CT_EQ(ct, munmap(mem, LONG), 0);
				ct_put(ct, 0, &at, sizeof(at));
			} else {
				ct_get(ct, &e, 1, &at, sizeof(at));
				must_fail(&e, writes, at, lens[i]);
			}
			ct_sync(ct, &e);
			if (ct->rank)
				CT_OK(ct, fi_close(&mr->fid));
			ct_ping(&e, !ct->rank);
		}
	ct_finish(&e);
}

const struct ct_case ct_mr[] = {
	{ "MR", "mr-no-mode", CT_TWO(mode) },
	{ "MR", "mr-virtual-addresses", CT_TWO(mode), .arg = FI_MR_VIRT_ADDR },
	{ "MR", "mr-keys-of-the-provider", CT_TWO(mode), .arg = FI_MR_PROV_KEY },
	{ "MR", "mr-every-mode", CT_TWO(mode), .arg = ALL_MODES },
	{ "MR", "mr-basic", CT_TWO(mode), .arg = FI_MR_BASIC },
	{ "MR", "mr-scalable", CT_TWO(mode), .arg = FI_MR_SCALABLE },
	{ "MR", "mr-several-buffers", CT_TWO(several_buffers) },
	{ "MR", "mr-rights", CT_TWO(rights) },
	{ "MR", "mr-keys-and-what-is-no-region", { keys } },
	{ "MR", "mr-raw-key", CT_TWO(raw_key) },
	{ "MR", "mr-unmapped", CT_TWO(unmapped) },
	{ "MR", "mr-counter", CT_TWO(counter) },
	{ "MR", "mr-told-by-event", { told_by_event } },
	{ "MR", "mr-whole-address-space", CT_TWO(whole_address_space) },
	{ 0 },
};
