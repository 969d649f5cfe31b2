/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What there is to be seen while a call is under way, and after the engine has refused what it
 * asked: two of the engine's calls are looked at on their way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/ofi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int __real_hd_evq_post(struct hd_evq *evq, const struct hd_event *event);
int __wrap_hd_evq_post(struct hd_evq *evq, const struct hd_event *event);
int __real_hd_mr_close(struct hd_mr *mr);
int __wrap_hd_mr_close(struct hd_mr *mr);

static struct fid_mc *mc;
static const struct fid_mc *when_told;
static int refusal; /* of the next event */
static bool region_is_busy;

int __wrap_hd_evq_post(struct hd_evq *evq, const struct hd_event *event)
{
	int rc = refusal;

	refusal = 0;
	when_told = mc;
	return rc ? rc : __real_hd_evq_post(evq, event);
}

int __wrap_hd_mr_close(struct hd_mr *mr)
{
	return region_is_busy ? -EBUSY : __real_hd_mr_close(mr);
}

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_ep *ep[2];
};

static void world_open(struct world *w, uint64_t caps, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	assert_int_equal(hd_fi_getinfo(HD_FI_OLDEST, "127.0.0.1", NULL, FI_SOURCE, hints, &w->info), 0);
	fi_freeinfo(hints);
	w->info->domain_attr->mr_mode |= mr_mode;
	assert_int_equal(hd_fi_fabric_open(w->info->fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
	assert_int_equal(fi_av_open(w->domain, &(struct fi_av_attr){ .type = FI_AV_TABLE }, &w->av, NULL), 0);
	assert_int_equal(
		fi_cq_open(w->domain, &(struct fi_cq_attr){ .format = FI_CQ_FORMAT_MSG }, &w->cq, NULL), 0);
	assert_int_equal(
		fi_eq_open(w->fabric, &(struct fi_eq_attr){ .wait_obj = FI_WAIT_NONE }, &w->eq, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_endpoint(w->domain, w->info, &w->ep[i], NULL), 0);
		assert_int_equal(fi_ep_bind(w->ep[i], &w->av->fid, 0), 0);
		assert_int_equal(fi_ep_bind(w->ep[i], &w->cq->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_ep_bind(w->ep[i], &w->eq->fid, 0), 0);
		assert_int_equal(fi_enable(w->ep[i]), 0);
	}
}

static void world_close(struct world *w)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&w->ep[i]->fid), 0);
	assert_int_equal(fi_close(&w->eq->fid), 0);
	assert_int_equal(fi_close(&w->cq->fid), 0);
	assert_int_equal(fi_close(&w->av->fid), 0);
	assert_int_equal(fi_close(&w->domain->fid), 0);
	assert_int_equal(fi_close(&w->fabric->fid), 0);
	fi_freeinfo(w->info);
}

/* Another thread may read the event at once, and use the group. */
static void a_group_is_there_before_its_event(void **state)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct fid_mc *none = mc;
	struct world w;

	assert_int_equal(inet_pton(AF_INET, "239.255.72.69", &group.sin_addr), 1);
	world_open(&w, FI_MSG | FI_MULTICAST, 0);
	refusal = -ENOMEM;
	assert_int_equal(fi_join(w.ep[0], &group, 0, &mc, NULL), -FI_ENOMEM);
	assert_ptr_equal(mc, none);
	assert_int_equal(fi_join(w.ep[0], &group, 0, &mc, NULL), 0);
	assert_non_null(mc);
	assert_ptr_equal(when_told, mc);
	assert_int_equal(fi_close(&mc->fid), 0);
	world_close(&w);
}

/* A region whose fi_close has been refused has its endpoint still. */
static void a_region_that_is_not_closed_is_whole(void **state)
{
	static char memory[64];
	struct fid_mr *mr;
	struct world w;

	world_open(&w, FI_MSG | FI_RMA, FI_MR_ENDPOINT);
	assert_int_equal(fi_mr_reg(w.domain, memory, sizeof(memory), FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &w.ep[0]->fid, 0), 0);
	region_is_busy = true;
	assert_int_equal(fi_close(&mr->fid), -FI_EBUSY);
	assert_int_equal(fi_mr_bind(mr, &w.ep[1]->fid, 0), -FI_EINVAL);
	region_is_busy = false;
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_there_before_its_event),
		cmocka_unit_test(a_region_that_is_not_closed_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
