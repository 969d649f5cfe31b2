/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What programs for interfaces from 1.20 on are told of authorization keys: those of this
 * libfabric cannot ask for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "front/ofi/auth.h"

#include <rdma/fi_endpoint.h>
#include <stdlib.h>
#include <string.h>

#if HD_FI_HEADERS_OLD
#define ENTRY(e) ((e).old)
#else
#define ENTRY(e) (e)
#define hd_fi_cq_err_entry fi_cq_err_entry
#endif

#define KEYS 2
#define PATIENCE (30 * HD_NS_PER_S)

static const char *const keys[KEYS] = { "first", "second" };

struct end {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t key[KEYS];
	char name[64];
	size_t name_len;
};

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct end a, b;
};

static void end_open(struct world *w, struct end *e)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	assert_int_equal(fi_av_open(w->domain, &av, &e->av, NULL), 0);
	for (int k = 0; k < KEYS; k++)
		assert_int_equal(hd_fi_auth_insert(e->av, keys[k], strlen(keys[k]), &e->key[k], 0), 0);
	assert_int_equal(fi_cq_open(w->domain, &cq, &e->cq, NULL), 0);
	assert_int_equal(fi_endpoint(w->domain, w->info, &e->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(e->ep), 0);
	e->name_len = sizeof(e->name);
	assert_int_equal(fi_getname(&e->ep->fid, e->name, &e->name_len), 0);
}

static void end_close(struct end *e)
{
	assert_int_equal(fi_close(&e->ep->fid), 0);
	assert_int_equal(fi_close(&e->cq->fid), 0);
	assert_int_equal(fi_close(&e->av->fid), 0);
}

static void open_world(struct world *w, uint32_t version)
{
	struct fi_info *hints = fi_allocinfo();

	memset(w, 0, sizeof(*w));
	hints->caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR;
	hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	assert_int_equal(hd_fi_getinfo(HD_FI_OLDEST, "127.0.0.1", NULL, FI_SOURCE, hints, &w->info), 0);
	fi_freeinfo(hints);
	w->info->fabric_attr->api_version = version;
	assert_int_equal(hd_fi_fabric_open(w->info->fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
	end_open(w, &w->a);
	end_open(w, &w->b);
}

static void close_world(struct world *w)
{
	end_close(&w->a);
	end_close(&w->b);
	assert_int_equal(fi_close(&w->domain->fid), 0);
	assert_int_equal(fi_close(&w->fabric->fid), 0);
	fi_freeinfo(w->info);
}

static fi_addr_t named(struct end *e, const struct end *other, int key)
{
	fi_addr_t addr = e->key[key];

	assert_int_equal(fi_av_insert(e->av, other->name, 1, &addr, FI_AUTH_KEY, NULL), 1);
	return addr;
}

/* Until the CQ has an error. */
static void wait_for_error(struct world *w, struct end *e)
{
	uint64_t until = hd_now_ns() + PATIENCE;
	struct fi_cq_tagged_entry entry;

	while (fi_cq_read(e->cq, &entry, 1) != -FI_EAVAIL) {
		fi_cq_read(e == &w->a ? w->b.cq : w->a.cq, NULL, 0);
		assert_true(hd_now_ns() < until);
	}
}

/*
 * A stranger's key is told by its address, beside his; nothing is written that the
 * interface has no room for.
 */
static void strangers_are_told_with_their_key(void **state)
{
	static const struct {
		uint32_t version;
		bool told;
	} cases[] = { { FI_VERSION(1, 20), true }, { FI_VERSION(2, 1), true }, { FI_VERSION(1, 17), false } };
	char in[8], address[64];
	struct world w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int k = 0; k < KEYS; k++) {
			struct hd_fi_cq_err_entry err = { .src_addr = 4711 };
			fi_addr_t to;

			open_world(&w, cases[i].version);
			to = named(&w.a, &w.b, k);
			assert_int_equal(fi_recv(w.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
			assert_int_equal(fi_send(w.a.ep, "who", 4, NULL, to, NULL), 0);
			wait_for_error(&w, &w.b);
			ENTRY(err).err_data = address;
			ENTRY(err).err_data_size = sizeof(address);
			/* past the header, whose call of newer ones fills in src_addr */
			assert_int_equal(w.b.cq->ops->readerr(w.b.cq, &ENTRY(err), 0), 1);
			assert_int_equal(ENTRY(err).err, FI_EADDRNOTAVAIL);
			assert_int_equal(ENTRY(err).err_data_size, w.a.name_len);
			assert_memory_equal(address, w.a.name, w.a.name_len);
			assert_int_equal(err.src_addr, cases[i].told ? w.b.key[k] : 4711);
			close_world(&w);
		}
}

/* What else goes wrong has no such source. */
static void other_errors_tell_no_key(void **state)
{
	struct hd_fi_cq_err_entry err = { .src_addr = 4711 };
	char in[8];
	struct world w;

	open_world(&w, FI_VERSION(1, 20));
	assert_int_equal(fi_recv(w.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	assert_int_equal(fi_cancel(&w.b.ep->fid, in), 0);
	wait_for_error(&w, &w.b);
	assert_int_equal(fi_cq_readerr(w.b.cq, &ENTRY(err), 0), 1);
	assert_int_equal(ENTRY(err).err, FI_ECANCELED);
	assert_true(err.src_addr == FI_ADDR_NOTAVAIL);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_are_told_with_their_key),
		cmocka_unit_test(other_errors_tell_no_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
