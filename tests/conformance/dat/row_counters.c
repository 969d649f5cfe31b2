/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* D8: the counters of dat_ib_extensions.h, and looking at an adapter that is not open. */
#include "dt.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dat2/dat_ib_extensions.h> /* wants in.h before it */

static uint64_t counter(struct dt *d, DAT_HANDLE handle, int which)
{
	DAT_UINT64 value[2] = { 0, 0x5555 };

	DT_OK(d->ct, dat_ib_query_counters(handle, which, value, 0));
	CT_EQ(d->ct, value[1], 0x5555); /* one, and no more */
	return value[0];
}

static const char *attribute(const DAT_NAMED_ATTR *attr, DAT_COUNT count, const char *name)
{
	for (DAT_COUNT i = 0; i < count; i++)
		if (!strcmp(attr[i].name, name))
			return attr[i].value;
	return NULL;
}

/* ---- endpoints and event dispatchers --------------------------------------------------------- */

static void traffic(struct dt_pair *p)
{
	DAT_RMR_TRIPLET there = { (uintptr_t)p->b.buf, 300, p->b.remote };
	DAT_LMR_TRIPLET seg = dt_seg(&p->a, 0, 300), word = dt_seg(&p->a, 0, 8);

	for (uint64_t i = 0; i < 4; i++)
		dt_recv(&p->b, p->b.ep, 0, 500, i);
	for (uint64_t i = 0; i < 3; i++)
		dt_send(&p->a, p->a.ep, 0, 100, i, DAT_COMPLETION_DEFAULT_FLAG);
	dt_write(&p->a, 0, &there, 3);
	dt_read(&p->a, 0, &there, 4);
	DT_OK(p->a.ct, dat_ib_post_rdma_write_immed(p->a.ep, 1, &seg, dt_cookie(5), &there, 7, 0));
	for (int i = 0; i < 6; i++)
		dt_any(&p->a, p->a.request);
	for (int i = 0; i < 4; i++)
		dt_any(&p->b, p->b.recv);
	/* refused: not counted */
	word.lmr_context ^= 0x5555;
	DT_TYPE(p->a.ct, dat_ep_post_send(p->a.ep, 1, &word, dt_cookie(9), 0), DAT_PRIVILEGES_VIOLATION);
}

static void of_endpoints(struct ct *ct)
{
	DAT_UINT64 all[DCNT_EP_ALL_COUNTERS];
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	traffic(&p);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_CONNECT), 1);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_SEND), 3);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_SEND_DATA), 300);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_WRITE), 1);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_WRITE_DATA), 300);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_READ), 1);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_READ_DATA), 300);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_WRITE_IMM), 1);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_WRITE_IMM_DATA), 300);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_RECV), 0);
	CT_EQ(ct, counter(&p.b, p.b.ep, DCNT_EP_POST_RECV), 4);
	CT_EQ(ct, counter(&p.b, p.b.ep, DCNT_EP_POST_RECV_DATA), 2000);
	CT_EQ(ct, counter(&p.b, p.b.ep, DCNT_EP_RECV), 3);
	CT_EQ(ct, counter(&p.b, p.b.ep, DCNT_EP_RECV_DATA), 300);
	CT_EQ(ct, counter(&p.b, p.b.ep, DCNT_EP_RECV_RDMA_IMM), 1);
	CT_EQ(ct, counter(&p.b, p.b.ep, DCNT_EP_RECV_RDMA_IMM_DATA), 300);
	/* all, and set to nothing; only this endpoint's */
	DT_OK(ct, dat_ib_query_counters(p.b.ep, DCNT_EP_ALL_COUNTERS, all, 1));
	CT_EQ(ct, all[DCNT_EP_RECV_DATA], 300);
	CT_EQ(ct, all[DCNT_EP_POST_RECV], 4);
	DT_OK(ct, dat_ib_query_counters(p.b.ep, DCNT_EP_ALL_COUNTERS, all, 0));
	for (int i = 0; i < DCNT_EP_ALL_COUNTERS; i++)
		CT_EQ(ct, all[i], 0);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_SEND), 3);
	DT_OK(ct, dat_ib_query_counters(p.a.ep, DCNT_EP_POST_SEND, all, 1));
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_SEND), 0);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_POST_SEND_DATA), 300);
	dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
	CT_EQ(ct, counter(&p.a, p.a.ep, DCNT_EP_DISCONNECT), 1);
	dt_pair_close(&p);
}

static void of_dispatchers(struct ct *ct)
{
	struct dt_waiter w;
	struct dt_pair p;
	DAT_EVENT event;

	dt_pair_open(ct, &p, NULL);
	CT_EQ(ct, counter(&p.a, p.a.connect, DCNT_EVD_CONN_CALLBACK), 1);
	CT_EQ(ct, counter(&p.b, p.b.cr, DCNT_EVD_CONN_CALLBACK), 1);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_WAIT), 0);
	DT_TYPE(ct, dat_evd_dequeue(p.b.recv, &event), DAT_QUEUE_EMPTY);
	dt_recv(&p.b, p.b.ep, 0, 8, 1);
	dt_waiter_start(&p.b, &w, p.b.recv, 1);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_WAIT), 1);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_WAIT_BLOCKED), 1);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_WAIT_NOTIFY), 0);
	dt_send(&p.a, p.a.ep, 0, 8, 1, DAT_COMPLETION_SUPPRESS_FLAG);
	dt_waiter_ok(&p.b, &w);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_WAIT_NOTIFY), 1);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_DTO_CALLBACK), 1);
	CT_TRUE(ct, counter(&p.b, p.b.recv, DCNT_EVD_DEQUEUE_NOT_FOUND) >= 1);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_DEQUEUE_FOUND), 0);
	CT_EQ(ct, counter(&p.b, p.b.recv, DCNT_EVD_DEQUEUE_POLL_FOUND), 1);
	dt_pair_close(&p);
}

/* ---- adapters -------------------------------------------------------------------------------- */

static void of_adapters(struct ct *ct)
{
	DAT_CONN_QUAL q = dt_qualifier(), any;
	DAT_PSP_HANDLE psp, psp2;
	DAT_PZ_HANDLE pz;
	struct dt_pair p;

	dt_pair_open(ct, &p, NULL);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_EP_CREATE), 1);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_PZ_CREATE), 1);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_LMR_CREATE), 1);
	CT_TRUE(ct, counter(&p.a, p.a.ia, DCNT_IA_EVD_CREATE) >= 4);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_CM_REQ_TX), 1);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_CM_REP_RX), 1);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_CM_ACTIVE_EST), 1);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_CM_LISTEN), 1);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_CM_REQ_RX), 1);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_SP_CR), 1);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_SP_CR_ACCEPTED), 1);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_CM_PASSIVE_EST), 1);
	DT_OK(ct, dat_pz_create(p.a.ia, &pz));
	DT_OK(ct, dat_pz_free(pz));
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_PZ_CREATE), 2);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_PZ_FREE), 1);
	dt_part(&p.a, p.a.ep, &p.b, p.b.ep);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_CM_DREQ_TX), 1);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_CM_DREQ_RX), 1);
	/* rejected; and what is refused has not been made */
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_PSP_CREATE), 1);
	DT_OK(ct, dat_psp_create(p.b.ia, q, p.b.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	DT_TYPE(ct, dat_psp_create(p.b.ia, q, p.b.cr, DAT_PSP_CONSUMER_FLAG, &psp2), DAT_CONN_QUAL_IN_USE);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_PSP_CREATE), 2);
	DT_OK(ct, dat_psp_create_any(p.b.ia, &any, p.b.cr, DAT_PSP_CONSUMER_FLAG, &psp2));
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_PSP_CREATE), 2);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_PSP_CREATE_ANY), 1);
	DT_OK(ct, dat_psp_free(psp2));
	DT_OK(ct, dat_ep_reset(p.a.ep));
	dt_call(&p.a, p.a.ep, &p.b, q);
	DT_OK(ct, dat_cr_reject(dt_request(&p.b), 0, NULL));
	dt_conn(&p.a, p.a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_SP_CR_REJECTED), 1);
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_CM_USER_REJ_TX), 1);
	CT_EQ(ct, counter(&p.a, p.a.ia, DCNT_IA_CM_USER_REJ_RX), 1);
	DT_OK(ct, dat_psp_free(psp));
	CT_EQ(ct, counter(&p.b, p.b.ia, DCNT_IA_PSP_FREE), 3);
	dt_pair_close(&p);
}

/* What is printed goes to standard output: here to a file, meanwhile. */
static void print(struct ct *ct)
{
	FILE *file = tmpfile();
	char text[4096] = "";
	struct dt_pair p;
	int out;

	dt_pair_open(ct, &p, NULL);
	traffic(&p);
	CT_TRUE(ct, file);
	fflush(stdout);
	out = dup(STDOUT_FILENO);
	dup2(fileno(file), STDOUT_FILENO);
	DT_OK(ct, dat_ib_print_counters(p.a.ep, DCNT_EP_POST_SEND_DATA, 0));
	DT_OK(ct, dat_ib_print_counters(p.b.ep, DCNT_EP_ALL_COUNTERS, 1));
	DT_OK(ct, dat_ib_print_counters(p.b.ep, DCNT_EP_RECV, 0));
	DT_OK(ct, dat_ib_print_counters(p.b.recv, DCNT_EVD_DTO_CALLBACK, 0));
	DT_OK(ct, dat_ib_print_counters(p.b.ia, DCNT_IA_SP_CR, 0));
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	rewind(file);
	CT_TRUE(ct, fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	CT_TRUE(ct, strstr(text, "DCNT_EP_POST_SEND_DATA = 300\n") == text);
	CT_TRUE(ct, strstr(text, "DCNT_EP_POST_RECV_DATA = 2000\n"));
	CT_TRUE(ct, strstr(text, "DCNT_EP_RECV = 3\n"));
	CT_TRUE(ct, strstr(text, "DCNT_EP_RECV = 0\n"));
	CT_TRUE(ct, strstr(text, "DCNT_EVD_DTO_CALLBACK = 4\n"));
	CT_TRUE(ct, strstr(text, "DCNT_IA_SP_CR = 1\n"));
	dt_pair_close(&p);
}

static void errors(struct ct *ct)
{
	DAT_IA_ATTR attr;
	DAT_UINT64 value;
	struct dt d;

	dt_open(ct, &d, NULL);
	DT_TYPE(ct, dat_ib_query_counters(d.pz, 0, &value, 0), DAT_INVALID_HANDLE);
	DT_TYPE(ct, dat_ib_query_counters(d.ep, -1, &value, 0), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ib_query_counters(d.ep, DCNT_EP_ALL_COUNTERS + 1, &value, 0), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ib_query_counters(d.recv, DCNT_EVD_ALL_COUNTERS + 1, &value, 0),
		DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ib_query_counters(d.ep, 0, NULL, 0), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_ib_print_counters(d.lmr, 0, 0), DAT_INVALID_HANDLE);
	/* connections are counted anyway; an adapter that does not exist counts nothing */
	DT_OK(ct, dat_extension_op(d.ia, DAT_IB_START_COUNTERS_OP, DCNT_IA_CM));
	DT_OK(ct, dat_extension_op(d.ia, DAT_IB_STOP_COUNTERS_OP, DCNT_IA_CM));
	DT_TYPE(ct, dat_extension_op(d.ia, DAT_IB_START_COUNTERS_OP, DCNT_IA_LNK), DAT_NOT_IMPLEMENTED);
	DT_TYPE(ct, dat_extension_op(d.ia, DAT_IB_START_COUNTERS_OP, 99), DAT_INVALID_PARAMETER);
	DT_TYPE(ct, dat_extension_op(d.ep, DAT_IB_START_COUNTERS_OP, DCNT_IA_CM), DAT_INVALID_HANDLE);
	/* collectives are not there, and not among the attributes */
	DT_TYPE(ct, dat_extension_op(d.ia, DAT_IB_COLLECTIVE_BARRIER_OP), DAT_NOT_IMPLEMENTED);
	DT_OK(ct, dat_ia_query(d.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	CT_TRUE(ct, attribute(attr.vendor_attr, attr.num_vendor_attr, DAT_IB_ATTR_COUNTERS));
	CT_TRUE(ct, !attribute(attr.vendor_attr, attr.num_vendor_attr, DAT_IB_COLL_BARRIER));
	dt_close(&d);
}

/* ---- without opening it ---------------------------------------------------------------------- */

static void open_query(struct ct *ct)
{
	DAT_NAME_PTR name = (DAT_NAME_PTR)ct->conf->provider;
	DAT_PROVIDER_ATTR provider;
	DAT_HANDLE ia = NULL;
	DAT_IA_ATTR attr;
	struct dt d;

	DT_OK(ct, dat_ib_open_query(name, &ia, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
	CT_TRUE(ct, ia && attr.max_eps > 0 && attr.ia_address_ptr && provider.max_private_data_size >= 64);
	CT_TRUE(ct, attr.extension_version >= 208);
	dt_open(ct, &d, NULL); /* beside it */
	dt_close(&d);
	DT_OK(ct, dat_ib_close_query(ia));
	DT_TYPE(ct, dat_ib_open_query("no such adapter", &ia, 0, NULL, 0, NULL), DAT_PROVIDER_NOT_FOUND);
}

const struct ct_case dt_counters[] = {
	{ "D8", "counters of endpoints", { of_endpoints } },
	{ "D8", "counters of event dispatchers", { of_dispatchers } },
	{ "D8", "counters of adapters", { of_adapters } },
	{ "D8", "printed counters", { print } },
	{ "D8", "counters' errors", { errors } },
	{ "D8", "open query", { open_query } },
	{ NULL },
};
