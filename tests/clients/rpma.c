/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * rpma server|client ADDRESS PORT: what librpma, for remote persistent memory, has of verbs: reads,
 * writes, atomic writes, flushes and messages with their completions waited for. Each end prints
 * "rpma: ok" when it has found all data that it should.
 */
#include <arpa/inet.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)4 << 20)
#define BLOCK ((size_t)1 << 20)
#define AT_ATOMIC 4096
#define IMM 99
#define ALL \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | \
	 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)

#define OK(call) check((call), #call, __LINE__)
#define IS(what) ((what) ? (void)0 : fail(#what, "is not so", __LINE__))

struct end {
	bool server;
	struct rpma_peer *peer;
	struct rpma_ep *listener;
	struct rpma_conn *conn;
	struct rpma_cq *cq, *rcq;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	char *buf;
};

static void fail(const char *what, const char *why, int line)
{
	fprintf(stderr, "rpma.c:%d: %s: %s\n", line, what, why);
	exit(1);
}

static void check(int rc, const char *what, int line)
{
	if (rc)
		fail(what, rpma_err_2str(rc), line);
}

static struct ibv_wc wait_one(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int n = 0, rc;

	do {
		OK(rpma_cq_wait(cq));
		rc = rpma_cq_get_wc(cq, 1, &wc, &n);
		IS(!rc || rc == RPMA_E_NO_COMPLETION);
	} while (!n);
	IS(wc.status == IBV_WC_SUCCESS);
	return wc;
}

/* Up to a connection, each end with the other's region. */
static void begin(struct end *e, const char *address, const char *port)
{
	char words[128];
	struct rpma_conn_private_data mine = { words, 0 }, theirs;
	struct rpma_peer_cfg *pmem;
	struct ibv_context *context;
	struct rpma_conn_req *req;
	struct rpma_conn_cfg *cfg;
	enum rpma_conn_event event;
	size_t n;

	OK(rpma_utils_get_ibv_context(
		address, e->server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
	OK(rpma_peer_new(context, &e->peer));
	e->buf = aligned_alloc(4096, SIZE);
	memset(e->buf, 0, SIZE);
	OK(rpma_mr_reg(e->peer, e->buf, SIZE, ALL, &e->mr));
	OK(rpma_mr_get_descriptor_size(e->mr, &n));
	IS(n <= sizeof(words));
	mine.len = (uint8_t)n;
	OK(rpma_mr_get_descriptor(e->mr, words));
	OK(rpma_conn_cfg_new(&cfg));
	OK(rpma_conn_cfg_set_rcq_size(cfg, 10)); /* receives have a queue of their own */
	if (e->server) {
		OK(rpma_ep_listen(e->peer, address, port, &e->listener));
		OK(rpma_ep_next_conn_req(e->listener, cfg, &req));
	} else {
		OK(rpma_conn_req_new(e->peer, address, port, cfg, &req));
	}
	OK(rpma_conn_cfg_delete(&cfg));
	OK(rpma_conn_req_recv(req, e->mr, 0, 64, NULL));
	OK(rpma_conn_req_connect(&req, &mine, &e->conn));
	OK(rpma_conn_next_event(e->conn, &event));
	IS(event == RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_private_data(e->conn, &theirs));
	OK(rpma_mr_remote_from_descriptor(theirs.ptr, n, &e->remote));
	OK(rpma_conn_get_cq(e->conn, &e->cq));
	OK(rpma_conn_get_rcq(e->conn, &e->rcq));
	OK(rpma_peer_cfg_new(&pmem));
	OK(rpma_peer_cfg_set_direct_write_to_pmem(pmem, true));
	OK(rpma_conn_apply_remote_peer_cfg(e->conn, pmem));
	OK(rpma_peer_cfg_delete(&pmem));
}

static void serve(struct end *e)
{
	struct ibv_wc wc = wait_one(e->rcq);
	enum rpma_conn_event event;

	IS(wc.byte_len == 32 && wc.wc_flags & IBV_WC_WITH_IMM && ntohl(wc.imm_data) == IMM);
	IS(!memcmp(e->buf, "sent", 4) && !memcmp(e->buf + AT_ATOMIC, "atomic!!", 8));
	for (size_t i = 0; i < BLOCK; i++)
		IS(e->buf[BLOCK + i] == (char)(i * 7));
	memset(e->buf + 64, 'z', 64);
	OK(rpma_send(e->conn, e->mr, 64, 64, RPMA_F_COMPLETION_ALWAYS, NULL));
	wait_one(e->cq);
	OK(rpma_conn_next_event(e->conn, &event));
	IS(event == RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect(e->conn));
}

static void call(struct end *e)
{
	char *source = e->buf + 2 * BLOCK;
	enum rpma_conn_event event;

	for (size_t i = 0; i < BLOCK; i++)
		source[i] = (char)(i * 7);
	OK(rpma_write(e->conn, e->remote, BLOCK, e->mr, 2 * BLOCK, BLOCK, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(e->conn, e->remote, BLOCK, BLOCK, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
		      (void *)1));
	IS(wait_one(e->cq).wr_id == 1);
	OK(rpma_atomic_write(e->conn, e->remote, AT_ATOMIC, "atomic!!", RPMA_F_COMPLETION_ALWAYS, (void *)2));
	IS(wait_one(e->cq).wr_id == 2);
	OK(rpma_flush(e->conn, e->remote, AT_ATOMIC, 8, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS,
		      (void *)3));
	IS(wait_one(e->cq).wr_id == 3);
	OK(rpma_read(e->conn, e->mr, 3 * BLOCK, e->remote, BLOCK, BLOCK, RPMA_F_COMPLETION_ALWAYS,
		     (void *)4));
	IS(wait_one(e->cq).wr_id == 4);
	IS(!memcmp(e->buf + 3 * BLOCK, source, BLOCK));
	memcpy(e->buf + 128, "sent", 4);
	OK(rpma_send_with_imm(e->conn, e->mr, 128, 32, RPMA_F_COMPLETION_ALWAYS, IMM, (void *)5));
	IS(wait_one(e->cq).wr_id == 5);
	IS(wait_one(e->rcq).byte_len == 64 && e->buf[0] == 'z' && e->buf[63] == 'z');
	OK(rpma_conn_disconnect(e->conn));
	OK(rpma_conn_next_event(e->conn, &event));
	IS(event == RPMA_CONN_CLOSED);
}

int main(int argc, char **argv)
{
	struct end e = { .server = argc == 4 && !strcmp(argv[1], "server") };

	IS(argc == 4);
	begin(&e, argv[2], argv[3]);
	(e.server ? serve : call)(&e);
	OK(rpma_mr_remote_delete(&e.remote));
	OK(rpma_mr_dereg(&e.mr));
	OK(rpma_conn_delete(&e.conn));
	if (e.listener)
		OK(rpma_ep_shutdown(&e.listener));
	OK(rpma_peer_delete(&e.peer));
	free(e.buf);
	printf("rpma: ok\n");
	return 0;
}
