/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * An endpoint that the program has inserted by two addresses of its host; it is the program's own.
 * fi_av(3), FI_DIRECTED_RECV and FI_SOURCE.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/ofi/ofi.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t name[2]; /* 127.0.0.1 and 127.0.0.2 */
};

static void open_objects(struct world *w)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	hints->addr_format = FI_SOCKADDR_IN;
	assert_int_equal(hd_fi_getinfo(HD_FI_OLDEST, NULL, NULL, 0, hints, &w->info), 0);
	fi_freeinfo(hints);
	assert_int_equal(hd_fi_fabric_open(w->info->fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
	assert_int_equal(fi_av_open(w->domain, &av, &w->av, NULL), 0);
	assert_int_equal(fi_cq_open(w->domain, &cq, &w->cq, NULL), 0);
	assert_int_equal(fi_endpoint(w->domain, w->info, &w->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(w->ep, &w->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(w->ep, &w->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(w->ep), 0);
}

static void insert_names(struct world *w)
{
	struct sockaddr_in sin;
	size_t len = sizeof(sin);

	assert_int_equal(fi_getname(&w->ep->fid, &sin, &len), 0);
	for (uint32_t i = 0; i < 2; i++) {
		sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
		assert_int_equal(fi_av_insert(w->av, &sin, 1, &w->name[i], 0, NULL), 1);
	}
}

static void close_objects(struct world *w)
{
	struct fid *fids[] = { &w->ep->fid, &w->cq->fid, &w->av->fid, &w->domain->fid, &w->fabric->fid };

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		assert_int_equal(fi_close(fids[i]), 0);
	fi_freeinfo(w->info);
}

static void say(struct world *w, fi_addr_t to)
{
	static const char what[8];
	ssize_t rc;

	do {
		rc = fi_tsend(w->ep, what, sizeof(what), NULL, to, 1, NULL);
	} while (rc == -FI_EAGAIN);
	assert_int_equal(rc, 0);
}

static void hear(struct world *w, fi_addr_t from, char in[8])
{
	assert_int_equal(fi_trecv(w->ep, in, 8, NULL, from, 1, 0, in), 0);
}

/* So many sends complete, and this receive (NULL: none), in any order. From whom that is. */
static fi_addr_t done(struct world *w, int sends, char *in)
{
	fi_addr_t from, of_in = FI_ADDR_NOTAVAIL;
	time_t end = time(NULL) + 30;

	for (int left = sends + (in != NULL); left;) {
		struct fi_cq_tagged_entry e;
		ssize_t n = fi_cq_readfrom(w->cq, &e, 1, &from);

		assert_true(n == 1 || n == -FI_EAGAIN);
		assert_true(time(NULL) < end);
		if (n != 1)
			continue;
		left--;
		if (!e.op_context)
			continue;
		assert_ptr_equal(e.op_context, in);
		of_in = from;
	}
	return of_in;
}

/*
 * The receive names the second, which nobody has called yet when the message comes under the first.
 */
static void two_names_are_one_sender(void **state)
{
	char in[8];
	struct world w;

	open_objects(&w);
	insert_names(&w);
	hear(&w, w.name[1], in);
	say(&w, w.name[0]);
	done(&w, 1, NULL);
	say(&w, w.name[1]);
	assert_true(done(&w, 1, in) != FI_ADDR_NOTAVAIL);
	hear(&w, w.name[0], in);
	assert_true(done(&w, 0, in) != FI_ADDR_NOTAVAIL);
	close_objects(&w);
}

/* Whichever of them is removed. */
static void who_is_in_the_vector_is_named(void **state)
{
	for (int gone = 0; gone < 2; gone++) {
		char in[8];
		struct world w;

		open_objects(&w);
		insert_names(&w);
		for (int i = 0; i < 2; i++) {
			hear(&w, FI_ADDR_UNSPEC, in);
			say(&w, w.name[i]);
			assert_true(done(&w, 1, in) != FI_ADDR_NOTAVAIL);
		}
		assert_int_equal(fi_av_remove(w.av, &w.name[gone], 1, 0), 0);
		hear(&w, FI_ADDR_UNSPEC, in);
		say(&w, w.name[!gone]);
		assert_int_equal(done(&w, 1, in), w.name[!gone]);
		close_objects(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_names_are_one_sender),
		cmocka_unit_test(who_is_in_the_vector_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
