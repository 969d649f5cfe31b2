/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Registration, fi_mr(3), as far as one process sees it: which modes are answered, and what each
 * makes of the calls. A domain may also be opened with modes that we never ask for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/ofi.h"

#include <string.h>

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

static char memory[4096];

static struct fi_info *ask(uint32_t version, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->domain_attr->mr_mode = mr_mode;
	assert_int_equal(hd_fi_getinfo(version, NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	return info;
}

static void open_with(struct world *w, int mr_mode, size_t key_size)
{
	w->info = ask(HD_FI_OLDEST, 0);
	w->info->domain_attr->mr_mode = mr_mode;
	w->info->domain_attr->mr_key_size = key_size;
	assert_int_equal(hd_fi_fabric_open(w->info->fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
}

static void close_world(struct world *w)
{
	assert_int_equal(fi_close(&w->domain->fid), 0);
	assert_int_equal(fi_close(&w->fabric->fid), 0);
	fi_freeinfo(w->info);
}

static int reg(struct world *w, uint64_t key, uint64_t flags, struct fid_mr **mr)
{
	return fi_mr_reg(w->domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, flags,
			 mr, NULL);
}

static struct fid_mr *must_reg(struct world *w, uint64_t key, uint64_t flags)
{
	struct fid_mr *mr;

	assert_int_equal(reg(w, key, flags, &mr), 0);
	return mr;
}

/* ---- modes ----------------------------------------------------------------------------------- */

static int answer(uint32_t version, int mr_mode)
{
	struct fi_info *info = ask(version, mr_mode);
	int mode = info->domain_attr->mr_mode;

	fi_freeinfo(info);
	return mode;
}

/* fi_mr(3): what the provider does not need is cleared, whatever the hints allow. */
static void modes_are_answered_with_what_is_needed(void **state)
{
	const int all = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
			FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_COLLECTIVE;
	const uint32_t old = FI_VERSION(1, 4);

	assert_int_equal(answer(HD_FI_OLDEST, 0), 0);
	assert_int_equal(answer(HD_FI_OLDEST, all), 0);
	assert_int_equal(answer(HD_FI_OLDEST, FI_MR_VIRT_ADDR), 0);
	assert_int_equal(answer(HD_FI_OLDEST, FI_MR_PROV_KEY | FI_MR_LOCAL), 0);
	assert_int_equal(answer(HD_FI_OLDEST, FI_MR_BASIC), FI_MR_BASIC);
	assert_int_equal(answer(HD_FI_OLDEST, FI_MR_SCALABLE), FI_MR_SCALABLE);
	assert_int_equal(answer(old, FI_MR_UNSPEC), FI_MR_SCALABLE);
	assert_int_equal(answer(old, FI_MR_BASIC), FI_MR_BASIC);
	assert_int_equal(answer(old, FI_MR_SCALABLE), FI_MR_SCALABLE);
}

static void chosen_keys_are_kept(void **state)
{
	const int modes[] = { 0, FI_MR_SCALABLE, FI_MR_VIRT_ADDR };

	for (size_t i = 0; i < 3; i++) {
		struct fid_mr *a, *b;
		struct world w;

		open_with(&w, modes[i], 8);
		a = must_reg(&w, 0, 0);
		assert_true(fi_mr_key(a) == 0);
		b = must_reg(&w, FI_KEY_NOTAVAIL - 1, 0);
		assert_true(fi_mr_key(b) == FI_KEY_NOTAVAIL - 1);
		assert_int_equal(fi_close(&b->fid), 0);
		assert_int_equal(reg(&w, 0, 0, &b), -FI_ENOKEY);
		assert_int_equal(reg(&w, FI_KEY_NOTAVAIL, 0, &b), -FI_EKEYREJECTED);
		assert_int_equal(fi_close(&a->fid), 0);
		a = must_reg(&w, 0, 0);
		assert_int_equal(fi_close(&w.domain->fid), -FI_EBUSY);
		assert_int_equal(fi_close(&a->fid), 0);
		close_world(&w);
	}
}

static void drawn_keys_are_not_what_was_asked_for(void **state)
{
	const int modes[] = { FI_MR_BASIC, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR };

	for (size_t i = 0; i < 2; i++) {
		struct fid_mr *a, *b;
		struct world w;

		open_with(&w, modes[i], 8);
		a = must_reg(&w, FI_KEY_NOTAVAIL, 0); /* ignored */
		b = must_reg(&w, FI_KEY_NOTAVAIL, 0);
		assert_true(fi_mr_key(a) != fi_mr_key(b));
		assert_true(fi_mr_key(a) != FI_KEY_NOTAVAIL);
		assert_int_equal(fi_close(&a->fid), 0);
		assert_int_equal(fi_close(&b->fid), 0);
		close_world(&w);
	}
}

static void keys_have_the_domains_size(void **state)
{
	struct fid_mr *mr;
	struct world w;

	open_with(&w, 0, 2);
	assert_int_equal(reg(&w, 0x10000, 0, &mr), -FI_EKEYREJECTED);
	mr = must_reg(&w, 0xffff, 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);

	open_with(&w, FI_MR_PROV_KEY, 2);
	for (int i = 0; i < 100; i++) {
		mr = must_reg(&w, 0x10000, 0);
		assert_true(fi_mr_key(mr) < 0xffff);
		assert_int_equal(fi_close(&mr->fid), 0);
	}
	close_world(&w);
}

static void raw_keys_travel_through_the_mapping(void **state)
{
	for (int raw = 0; raw < 2; raw++) {
		uint64_t base = 1, key = 0;
		uint8_t blob[16];
		size_t size = 3;
		struct fid_mr *mr;
		struct world w;

		open_with(&w, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | (raw ? FI_MR_RAW : 0), 8);
		mr = must_reg(&w, 0, 0);
		assert_int_equal(fi_mr_raw_attr(mr, &base, blob, &size, 0), -FI_ETOOSMALL);
		assert_int_equal(size, 8);
		size = sizeof(blob);
		assert_int_equal(fi_mr_raw_attr(mr, &base, blob, &size, 0), 0);
		assert_int_equal(size, 8);
		assert_true(base == (uintptr_t)memory);
		assert_int_equal(fi_mr_map_raw(w.domain, base, blob, size, &key, 0), 0);
		assert_int_equal(fi_mr_map_raw(w.domain, base, blob, size + 1, &key, 0), -FI_EINVAL);
		assert_true(raw ? fi_mr_key(mr) == FI_KEY_NOTAVAIL : fi_mr_key(mr) == key);
		assert_int_equal(fi_mr_unmap_key(w.domain, key), 0);
		assert_int_equal(fi_close(&mr->fid), 0);
		close_world(&w);
	}
}

/* ---- binding --------------------------------------------------------------------------------- */

static void counters_are_bound_before_enabling(void **state)
{
	for (int event = 0; event < 2; event++) {
		struct fid_cntr *cntr, *other;
		struct fid_mr *mr;
		struct world w;

		open_with(&w, event ? FI_MR_RMA_EVENT : 0, 8);
		assert_int_equal(fi_cntr_open(w.domain, NULL, &cntr, NULL), 0);
		assert_int_equal(fi_cntr_open(w.domain, NULL, &other, NULL), 0);
		mr = must_reg(&w, 1, event ? FI_RMA_EVENT : 0);
		assert_int_equal(fi_mr_bind(mr, &cntr->fid, 0), -FI_EINVAL);
		assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_SEND), -FI_EBADFLAGS);
		assert_int_equal(fi_mr_bind(mr, &w.domain->fid, FI_REMOTE_WRITE), -FI_EINVAL);
		assert_int_equal(fi_mr_bind(mr, NULL, FI_REMOTE_WRITE), -FI_EINVAL);
		assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
		assert_int_equal(fi_mr_bind(mr, &other->fid, FI_REMOTE_WRITE), -FI_EINVAL);
		assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);
		assert_int_equal(fi_mr_enable(mr), 0);
		assert_int_equal(fi_mr_bind(mr, &other->fid, FI_REMOTE_READ), -FI_EOPBADSTATE);
		assert_int_equal(fi_close(&mr->fid), 0);
		if (event) { /* counters must have been announced */
			mr = must_reg(&w, 1, 0);
			assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL);
			assert_int_equal(fi_close(&mr->fid), 0);
		}
		assert_int_equal(fi_close(&cntr->fid), 0);
		assert_int_equal(fi_close(&other->fid), 0);
		close_world(&w);
	}
}

static void endpoint_open(struct world *w, struct fid_ep **ep, struct fid_av **av, struct fid_cq **cq)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };

	assert_int_equal(fi_av_open(w->domain, &av_attr, av, NULL), 0);
	assert_int_equal(fi_cq_open(w->domain, &cq_attr, cq, NULL), 0);
	assert_int_equal(fi_endpoint(w->domain, w->info, ep, NULL), 0);
	assert_int_equal(fi_ep_bind(*ep, &(*av)->fid, 0), 0);
	assert_int_equal(fi_ep_bind(*ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV), 0);
}

/* Either may be closed first. */
static void regions_belong_to_the_endpoint(void **state)
{
	for (int first = 0; first < 2; first++) {
		struct fid_mr *mr;
		struct fid_ep *ep;
		struct fid_av *av;
		struct fid_cq *cq;
		struct world w;

		open_with(&w, FI_MR_ENDPOINT, 8);
		endpoint_open(&w, &ep, &av, &cq);
		mr = must_reg(&w, 1, 0);
		assert_int_equal(fi_mr_enable(mr), -FI_EOPBADSTATE);
		assert_int_equal(fi_mr_bind(mr, &ep->fid, FI_REMOTE_WRITE), -FI_EBADFLAGS);
		assert_int_equal(fi_mr_bind(mr, &ep->fid, 0), 0);
		assert_int_equal(fi_mr_bind(mr, &ep->fid, 0), -FI_EINVAL);
		assert_int_equal(fi_mr_enable(mr), -FI_EOPBADSTATE);
		assert_int_equal(fi_enable(ep), 0);
		assert_int_equal(fi_mr_enable(mr), 0);
		assert_int_equal(fi_mr_refresh(mr, NULL, 0, 0), 0);
		assert_int_equal(fi_close(first ? &mr->fid : &ep->fid), 0);
		assert_int_equal(fi_close(first ? &ep->fid : &mr->fid), 0);
		assert_int_equal(fi_close(&cq->fid), 0);
		assert_int_equal(fi_close(&av->fid), 0);
		close_world(&w);
	}
}

/* ---- what is refused ------------------------------------------------------------------------- */

static int reg_with(struct world *w, struct iovec iov, uint64_t access, uint64_t offset, uint64_t flags)
{
	struct fid_mr *mr;
	int rc = fi_mr_regv(w->domain, &iov, 1, access, offset, 1, flags, &mr, NULL);

	if (!rc)
		assert_int_equal(fi_close(&mr->fid), 0);
	return rc;
}

static void bad_regions_are_refused(void **state)
{
	const struct iovec good = { memory, 8 }, end = { (void *)-4096, 8192 }, all = { NULL, SIZE_MAX };
	struct iovec many[HD_MAX_IOV + 1];
	struct fi_mr_attr attr = { .mr_iov = &good, .iov_count = 1, .access = FI_REMOTE_READ };
	struct fid_mr *mr;
	struct world w;

	open_with(&w, 0, 8);
	assert_int_equal(reg_with(&w, good, FI_REMOTE_READ | FI_COLLECTIVE, 0, 0), 0);
	assert_int_equal(reg_with(&w, good, FI_REMOTE_READ, 0, FI_RMA_EVENT), 0);
	assert_int_equal(reg_with(&w, all, FI_REMOTE_READ, 0, 0), 0);
	assert_int_equal(reg_with(&w, (struct iovec){ NULL, 8 }, FI_REMOTE_READ, 0, 0), -FI_EINVAL);
	/* of nothing */
	assert_int_equal(reg_with(&w, (struct iovec){ memory, 0 }, FI_REMOTE_READ, 0, 0), 0);
	assert_int_equal(reg_with(&w, (struct iovec){ NULL, 0 }, FI_REMOTE_READ, 0, 0), 0);
	assert_int_equal(reg_with(&w, end, FI_REMOTE_READ, 0, 0), -FI_EINVAL);
	assert_int_equal(reg_with(&w, good, FI_RMA | FI_SEND | FI_REMOTE_READ, 0, 0),
			 0); /* more than rights */
	assert_int_equal(reg_with(&w, good, FI_REMOTE_READ, 4, 0), -FI_EINVAL);
	assert_int_equal(reg_with(&w, good, FI_REMOTE_READ, 0, FI_RMA_PMEM), -FI_EBADFLAGS);
	assert_int_equal(reg_with(&w, good, FI_REMOTE_READ, 0, FI_HMEM_DEVICE_ONLY), -FI_EBADFLAGS);
	assert_int_equal(reg_with(&w, good, FI_REMOTE_READ, 0, FI_HMEM_HOST_ALLOC), -FI_EBADFLAGS);
	for (int i = 0; i <= HD_MAX_IOV; i++)
		many[i] = (struct iovec){ memory + 16 * i, 8 };
	assert_int_equal(fi_mr_regv(w.domain, many, HD_MAX_IOV + 1, FI_SEND, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regv(w.domain, many, 0, FI_SEND, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_regattr(w.domain, NULL, 0, &mr), -FI_EINVAL);
	attr.iface = FI_HMEM_CUDA; /* ignored without FI_HMEM */
	assert_int_equal(fi_mr_regattr(w.domain, &attr, 0, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_are_answered_with_what_is_needed),
		cmocka_unit_test(chosen_keys_are_kept),
		cmocka_unit_test(drawn_keys_are_not_what_was_asked_for),
		cmocka_unit_test(keys_have_the_domains_size),
		cmocka_unit_test(raw_keys_travel_through_the_mapping),
		cmocka_unit_test(counters_are_bound_before_enabling),
		cmocka_unit_test(regions_belong_to_the_endpoint),
		cmocka_unit_test(bad_regions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
