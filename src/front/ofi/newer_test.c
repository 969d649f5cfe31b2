/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A stand-in for libraries of other versions: it says which one it is, and makes
 * structures of that one's size, with nothing behind them. What the provider reads or
 * writes beyond them ends the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/auth.h"
#include "front/ofi/offer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t core = FI_VERSION(1, 17);

static const uint32_t cores[] = { FI_VERSION(1, 17), FI_VERSION(1, 20), FI_VERSION(1, 21),
				  FI_VERSION(2, 0),  FI_VERSION(2, 5),	FI_VERSION(2, 6) };
#define CORES (sizeof(cores) / sizeof(cores[0]))

/* ---- the library ----------------------------------------------------------------------------- */

uint32_t fi_version(void)
{
	return core;
}

static size_t domain_size(void)
{
	if (FI_VERSION_GE(core, FI_VERSION(2, 5)))
		return HD_FI_DOMAIN_TAIL + 40;
	if (FI_VERSION_GE(core, FI_VERSION(2, 0)))
		return HD_FI_DOMAIN_TAIL + 24;
	return HD_FI_DOMAIN_TAIL + (FI_VERSION_GE(core, FI_VERSION(1, 20)) ? 16 : 8);
}

/* Memory at whose end nothing more can be read. */
static void *guarded(size_t size)
{
	size_t page = (size_t)getpagesize();
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED && size <= page);
	assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
	return at + page - size;
}

static void unguard(void *p)
{
	uintptr_t page = (uintptr_t)getpagesize();

	if (p)
		munmap((void *)((uintptr_t)p & ~(page - 1)), 2 * page);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	struct fi_info *made = guarded(sizeof(*made));

	assert_null(info);
	made->tx_attr = guarded(sizeof(struct fi_tx_attr));
	made->rx_attr = guarded(sizeof(struct fi_rx_attr));
	made->ep_attr = guarded(sizeof(struct fi_ep_attr));
	made->domain_attr = guarded(domain_size());
	made->fabric_attr = guarded(sizeof(struct fi_fabric_attr));
	return made;
}

void fi_freeinfo(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		free(info->src_addr);
		free(info->dest_addr);
		free(info->domain_attr->name);
		free(info->fabric_attr->name);
		unguard(info->tx_attr);
		unguard(info->rx_attr);
		unguard(info->ep_attr);
		unguard(info->domain_attr);
		unguard(info->fabric_attr);
		unguard(info);
	}
}

/* ---- programs -------------------------------------------------------------------------------- */

static int ask(uint32_t version, const struct fi_info *hints, struct fi_info **out)
{
	return hd_fi_getinfo(version, "127.0.0.1", NULL, FI_SOURCE, hints, out);
}

/* What is answered to these capabilities: 0 or an error. */
static int wants(uint32_t version, enum fi_ep_type type, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int rc;

	hints->caps = caps;
	hints->ep_attr->type = type;
	rc = ask(version, hints, &info);
	if (!rc)
		assert_true((info->caps & caps) == caps);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc;
}

static void structures_are_those_of_the_library(void **state)
{
	for (size_t i = 0; i < CORES; i++) {
		struct hd_fi_domain_tail *tail;
		struct fi_info *hints, *info;

		core = cores[i];
		hints = fi_allocinfo();
		assert_int_equal(ask(core, hints, &info), 0);
		tail = hd_fi_domain_tail(info->domain_attr);
		if (i >= 1)
			assert_int_equal(tail->max_ep_auth_key, HD_FI_AUTH_KEYS);
		if (i >= 3)
			assert_int_equal(tail->max_group_id, 0);
		if (i >= 4)
			assert_true(tail->max_cntr_value == UINT64_MAX &&
				    tail->max_err_cntr_value == UINT64_MAX);
		fi_freeinfo(info);
		fi_freeinfo(hints);
		/* an older program on this library */
		assert_int_equal(wants(FI_VERSION(1, 17), FI_EP_RDM, FI_MSG), 0);
	}
}

static void nothing_newer_than_the_library_is_spoken(void **state)
{
	struct fi_info *info;

	for (size_t i = 0; i < CORES; i++) {
		core = cores[i];
		assert_int_equal(hd_fi_api(), core);
		assert_int_equal(ask(core + 1, NULL, &info), -FI_ENODATA);
	}
	core = FI_VERSION(3, 0); /* whose bits nobody knows */
	assert_true(FI_MAJOR(hd_fi_api()) == 2);
}

/*
 * Bit 48 is FI_VARIABLE_MSG, and FI_EXACT_DIRECTED_RECV since 2.0; 45 came then. The program's
 * version decides, not the library's.
 */
static void bits_mean_what_the_program_asked_for(void **state)
{
	const uint64_t bit45 = UINT64_C(1) << 45, bit48 = UINT64_C(1) << 48;

	core = FI_VERSION(2, 6);
	for (int minor = 17; minor <= 22; minor++) {
		assert_int_equal(wants(FI_VERSION(1, minor), FI_EP_MSG, FI_MSG | bit48), 0);
		assert_int_equal(wants(FI_VERSION(1, minor), FI_EP_RDM, bit48), -FI_ENODATA);
		assert_int_equal(wants(FI_VERSION(1, minor), FI_EP_DGRAM, FI_MSG | bit48), -FI_ENODATA);
		assert_int_equal(wants(FI_VERSION(1, minor), FI_EP_RDM, FI_TAGGED | bit45), -FI_ENODATA);
	}
	for (int minor = 0; minor <= 6; minor++) {
		assert_int_equal(wants(FI_VERSION(2, minor), FI_EP_MSG, FI_MSG | bit48), -FI_ENODATA);
		assert_int_equal(wants(FI_VERSION(2, minor), FI_EP_RDM, FI_MSG | bit48 | FI_MULTI_RECV), 0);
		assert_int_equal(wants(FI_VERSION(2, minor), FI_EP_DGRAM, FI_MSG | bit48), 0);
		assert_int_equal(wants(FI_VERSION(2, minor), FI_EP_RDM, FI_TAGGED | bit45), 0);
	}
}

/* How many infos have a mode. */
static int modes(uint32_t version, uint64_t mode)
{
	struct fi_info *info, *i;
	int n = 0;

	assert_int_equal(ask(version, NULL, &info), 0);
	for (i = info; i; i = i->next)
		n += (i->mode & mode) != 0;
	fi_freeinfo(info);
	return n;
}

static void buffered_receives_are_of_the_first_series(void **state)
{
	core = FI_VERSION(2, 6);
	assert_int_equal(modes(FI_VERSION(1, 21), FI_BUFFERED_RECV), 2);
	assert_int_equal(modes(FI_VERSION(2, 0), FI_BUFFERED_RECV), 0);
	assert_int_equal(modes(FI_VERSION(2, 0), FI_MSG_PREFIX), 3);
}

static int progresses(uint32_t version, int how)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int rc;

	hints->domain_attr->control_progress = hints->domain_attr->data_progress = (enum fi_progress)how;
	rc = ask(version, hints, &info);
	if (!rc)
		assert_int_equal(info->domain_attr->data_progress, how);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc;
}

static void progress_of_all_at_once_is_granted(void **state)
{
	core = FI_VERSION(2, 6);
	assert_int_equal(progresses(FI_VERSION(1, 20), 3), -FI_ENODATA);
	assert_int_equal(progresses(FI_VERSION(1, 21), 3), 0);
	assert_int_equal(progresses(FI_VERSION(2, 6), 3), 0);
	assert_int_equal(progresses(FI_VERSION(2, 6), 4), -FI_ENODATA);
}

static int asks_of_domain(uint32_t version, struct hd_fi_domain_tail wanted)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int rc;

	*hd_fi_domain_tail(hints->domain_attr) = wanted;
	rc = ask(version, hints, &info);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc;
}

/* What a member asks for counts for programs that can know it. */
static void newer_members_are_kept_or_refused(void **state)
{
	const struct hd_fi_domain_tail kept = { .max_ep_auth_key = HD_FI_AUTH_KEYS,
						.max_cntr_value = UINT64_MAX,
						.max_err_cntr_value = 1 };
	const struct hd_fi_domain_tail keys = { .max_ep_auth_key = HD_FI_AUTH_KEYS + 1 };
	const struct hd_fi_domain_tail groups = { .max_group_id = 1 };

	core = FI_VERSION(2, 6);
	assert_int_equal(asks_of_domain(core, kept), 0);
	assert_int_equal(asks_of_domain(core, keys), -FI_ENODATA);
	assert_int_equal(asks_of_domain(FI_VERSION(1, 20), keys), -FI_ENODATA);
	assert_int_equal(asks_of_domain(FI_VERSION(1, 19), keys), 0);
	assert_int_equal(asks_of_domain(FI_VERSION(2, 0), groups), -FI_ENODATA);
	assert_int_equal(asks_of_domain(FI_VERSION(1, 22), groups), 0);
}

/* ---- objects --------------------------------------------------------------------------------- */

struct opened {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void open_all(struct opened *o, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	hints->caps = caps;
	assert_int_equal(ask(core, hints, &o->info), 0);
	fi_freeinfo(hints);
	o->info->fabric_attr->api_version = core;
	assert_int_equal(hd_fi_fabric_open(o->info->fabric_attr, &o->fabric, NULL), 0);
	assert_int_equal(fi_domain(o->fabric, o->info, &o->domain, NULL), 0);
	assert_int_equal(fi_av_open(o->domain, &av_attr, &o->av, NULL), 0);
	assert_int_equal(fi_cq_open(o->domain, &cq_attr, &o->cq, NULL), 0);
	assert_int_equal(fi_endpoint(o->domain, o->info, &o->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(o->ep, &o->cq->fid, FI_SEND | FI_RECV), 0);
	assert_int_equal(fi_enable(o->ep), 0);
}

static void close_all(struct opened *o)
{
	assert_int_equal(fi_close(&o->ep->fid), 0);
	assert_int_equal(fi_close(&o->cq->fid), 0);
	assert_int_equal(fi_close(&o->av->fid), 0);
	assert_int_equal(fi_close(&o->domain->fid), 0);
	assert_int_equal(fi_close(&o->fabric->fid), 0);
	fi_freeinfo(o->info);
}

/* Is the source that a receive names looked at? There is none of that address. */
static void sources_count(uint64_t caps, int untagged, int tagged)
{
	struct opened o;
	char buf[8];

	open_all(&o, caps);
	assert_int_equal(fi_recv(o.ep, buf, sizeof(buf), NULL, 5, NULL), untagged);
	assert_int_equal(fi_trecv(o.ep, buf, sizeof(buf), NULL, 5, 1, 0, NULL), tagged);
	close_all(&o);
}

static void sources_are_named_in_the_receives_asked_for(void **state)
{
	const uint64_t both = FI_MSG | FI_TAGGED;

	core = FI_VERSION(2, 6);
	sources_count(both, 0, 0);
	sources_count(both | FI_DIRECTED_RECV, -FI_EINVAL, -FI_EINVAL);
	sources_count(both | FI_TAGGED_DIRECTED_RECV, 0, -FI_EINVAL);
	sources_count(both | FI_EXACT_DIRECTED_RECV, -FI_EINVAL, -FI_EINVAL);
	sources_count(both | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV, 0, -FI_EINVAL);
}

/* May receives be from anybody? */
static void anybody_counts(uint64_t caps, int untagged, int tagged)
{
	const struct fi_msg_tagged looked = { .addr = FI_ADDR_UNSPEC };
	struct opened o;
	char buf[8];

	open_all(&o, caps);
	assert_int_equal(fi_recv(o.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), untagged);
	assert_int_equal(fi_trecv(o.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 1, 0, NULL), tagged);
	assert_int_equal(fi_trecvmsg(o.ep, &looked, FI_PEEK), tagged);
	close_all(&o);
}

static void sources_are_exact_where_that_is_asked_for(void **state)
{
	const uint64_t both = FI_MSG | FI_TAGGED;

	core = FI_VERSION(2, 6);
	anybody_counts(both | FI_DIRECTED_RECV, 0, 0);
	anybody_counts(both | FI_EXACT_DIRECTED_RECV, -FI_EINVAL, -FI_EINVAL);
	anybody_counts(both | FI_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV, -FI_EINVAL, -FI_EINVAL);
	anybody_counts(both | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV, 0, -FI_EINVAL);
}

static void objects_open_on_every_library(void **state)
{
	struct opened o;

	for (size_t i = 0; i < CORES; i++) {
		core = cores[i];
		open_all(&o, 0);
		close_all(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structures_are_those_of_the_library),
		cmocka_unit_test(nothing_newer_than_the_library_is_spoken),
		cmocka_unit_test(bits_mean_what_the_program_asked_for),
		cmocka_unit_test(buffered_receives_are_of_the_first_series),
		cmocka_unit_test(progress_of_all_at_once_is_granted),
		cmocka_unit_test(newer_members_are_kept_or_refused),
		cmocka_unit_test(sources_are_named_in_the_receives_asked_for),
		cmocka_unit_test(sources_are_exact_where_that_is_asked_for),
		cmocka_unit_test(objects_open_on_every_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
