/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What a stranger's packet or hang-up makes the node look for costs no more where there is much
 * that is not his. Measured is the processor's time of what the engine does then, with a few
 * bystanders and with many. `--figures` prints that for 10, 1,000 and 100,000 (bench/strangers).
 */
#include "attack/attack.h"
#include "cpu.h"
#include "engine/cm/ask.h"
#include "engine/cm/conn.h"
#include "engine/qp/qp.h"
#include "engine/qp/respq.h"
#include "engine/rdm/backlog.h"
#include "engine/rma/response.h"
#include "engine/rq/recv.h"
#include "engine/xfer/fence.h"
#include "engine/xfer/op.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW 10
#define MANY 10000
/* times what it costs with few bystanders; a look at each of them is more than 200 times as much */
#define AT_MOST 40
#define ROUNDS 20

struct scene {
	struct attack_scene *s;
	struct hd_peer *peer; /* the stranger's */
	struct hd_ep **eps;
	uint32_t count;
	struct hd_ep *busy, *mine; /* has much under way with the stranger; has nothing */
	/* of the stranger's endpoints: where that goes, and another */
	struct hd_dest *theirs, *ended;
	struct hd_service *service; /* the stranger has asked much of it */
	struct hd_evq *evq;
	struct hd_ep *pair; /* a queue pair that is not ready for what the stranger sends it */
	struct hd_mr *mr;   /* what the stranger reads, and does not take in */
	char *read;
};

#define BUSY 7 /* the stranger's endpoints */
#define ENDED 5
#define ASKS 6
#define READ_BYTES 8192 /* more than what is answered at once */

/* Endpoints of ours that have accepted, each a caller of a node that is not the stranger's. */
static void bystanders_come(struct scene *sc, uint32_t count)
{
	const struct hd_ep_attr attr = { .type = HD_EP_MSG };

	sc->eps = calloc(count, sizeof(struct hd_ep *));
	sc->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct hd_request r = { .node.word = { 1, i / 100 }, .from = { .index = i % 100, .gen = 1 } };
		struct hd_accept answer;

		assert_int_equal(hd_ep_open(sc->s->a.node, &attr, &sc->eps[i]), 0);
		assert_int_equal(hd_conn_expect(sc->eps[i], &r, &answer), 0);
	}
}

/* Processes of our own user call, and have not said over which link. */
static struct hd_node_id caller_id(uint32_t i)
{
	return (struct hd_node_id){ .word = { 2, i } };
}

static void callers_come(struct scene *sc)
{
	static struct hd_link by_which; /* they call */

	for (uint32_t i = 0; i < sc->count; i++) {
		const struct hd_node_id id = caller_id(i);
		struct hd_peer *peer = hd_peer_make(sc->s->a.node, &id, NULL);

		assert_non_null(peer);
		peer->shaking = &by_which;
	}
}

static void callers_go(struct scene *sc)
{
	for (uint32_t i = 0; i < sc->count; i++) {
		const struct hd_node_id id = caller_id(i);

		hd_peer_drop(hd_peer_of_ours(sc->s->a.node, &id), -ECONNRESET);
	}
}

static void bystanders_go(struct scene *sc)
{
	for (uint32_t i = 0; i < sc->count; i++)
		hd_ep_close(sc->eps[i]);
	free(sc->eps);
}

/* One is under way to the stranger, another waits for room in the link. */
static void send_two(struct scene *sc)
{
	const struct iovec none = { 0 };
	const struct hd_send_args a = { .iov = &none, .count = 1, .flags = HD_SEND_SILENT };
	struct hd_op *op = hd_op_make(sc->busy, sc->theirs, &a);

	assert_non_null(op);
	hd_op_under(op, HD_OP_ACK);
	op = hd_op_make(sc->busy, sc->theirs, &a);
	assert_non_null(op);
	hd_op_enqueue(sc->peer, op);
}

/* Another of his endpoints asks for a connection. */
static void ask_one(struct scene *sc, uint32_t i)
{
	const struct hd_connect body = { .type = HD_EP_MSG, .from = { .index = ASKS, .gen = 1 } };
	const struct hd_pkt pkt = { .kind = HD_PKT_CONNECT,
				    .dst = sc->service->ep->index,
				    .gen = sc->service->ep->gen,
				    .src = ASKS,
				    .op = i + 1 };

	assert_int_equal(hd_conn_called(sc->peer->link, &pkt, &body, offsetof(struct hd_connect, data)), 0);
}

/* One of the stranger's messages is held. */
static void hold_one(struct scene *sc)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER, .flags = HD_PKT_F_ACK, .src = BUSY };
	const struct hd_arrival a = { .peer = sc->peer, .ep = sc->pair, .pkt = &pkt };

	assert_int_equal(hd_respq_put(sc->pair->qp, &a), 0);
}

/* The stranger reads, and his answer waits for its turn. */
static void read_one(struct scene *sc, uint32_t i)
{
	static const struct hd_rma_server server;
	struct {
		struct hd_rma head;
		struct hd_rma_seg seg;
	} body = { .head.count = 1, .seg = { (uintptr_t)sc->read, READ_BYTES, hd_mr_key(sc->mr) } };
	const struct hd_pkt pkt = { .kind = HD_PKT_READ, .src = BUSY, .op = i + 1 };
	const struct hd_arrival a = {
		.peer = sc->peer, .ep = sc->busy, .pkt = &pkt, .payload = &body, .len = sizeof(body)
	};
	struct hd_of_peer *of;

	assert_int_equal(hd_rma_request(&a, &server), 0);
	of = hd_of_peer_first(sc->peer, HD_OF_PEER_READ, i + 1);
	assert_non_null(of);
	/* his window would not have held so many */
	hd_container(of, struct hd_response, of_peer)->units = 0;
}

/* A message of another endpoint of the stranger's waits. */
static void keep_one(struct scene *sc)
{
	const struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	struct hd_msg *m = hd_msg_keep(sc->mine, sc->peer, &pkt, hd_dest_id(sc->theirs), "", 0);

	assert_non_null(m);
	hd_credit_unhold(sc->peer, m->units);
	m->units = 0; /* his window would not have held so many */
}

static void memory_comes(struct scene *sc)
{
	struct iovec iov = { NULL, READ_BYTES };
	const struct hd_mr_attr attr = {
		.iov = &iov, .count = 1, .access = HD_ACCESS_REMOTE_READ, .flags = HD_MR_VIRTUAL
	};

	iov.iov_base = sc->read = calloc(1, READ_BYTES);
	assert_int_equal(hd_mr_open(sc->s->a.node, &attr, &sc->mr), 0);
}

static void work_comes(struct scene *sc)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct hd_service_attr service = { .bind = (const void *)&any };
	const struct hd_ep_attr attr = { .type = HD_EP_RDM, .policy = HD_EP_REMOTE_READ | HD_EP_DIRECTED };
	const struct hd_ep_attr pair = { .type = HD_EP_RDM,
					 .policy = HD_EP_NUMBERED | HD_EP_PAIRED,
					 .tx_size = 64 };
	struct hd_node *node = sc->s->a.node;

	assert_int_equal(hd_ep_open(node, &attr, &sc->busy), 0);
	assert_int_equal(hd_ep_open(node, &attr, &sc->mine), 0);
	assert_int_equal(hd_ep_open(node, &pair, &sc->pair), 0);
	sc->theirs = hd_dest_at(sc->peer, BUSY, 1);
	sc->ended = hd_dest_at(sc->peer, ENDED, 1);
	assert_true(sc->theirs && sc->ended);
	assert_int_equal(hd_evq_open(sc->count, &sc->evq), 0);
	assert_int_equal(hd_service_open(node, &service, &sc->service), 0);
	assert_int_equal(hd_service_listen(sc->service,
					   &(struct hd_listen_args){ .evq = sc->evq, .backlog = UINT32_MAX }),
			 0);
	memory_comes(sc);
	for (uint32_t i = 0; i < sc->count; i++) {
		send_two(sc);
		ask_one(sc, i);
		hold_one(sc);
		read_one(sc, i);
		keep_one(sc);
	}
	assert_int_equal(sc->service->pending, sc->count);
	assert_int_equal(hd_respq_count(sc->pair->qp), sc->count);
}

static void work_goes(struct scene *sc)
{
	hd_service_close(sc->service);
	hd_evq_close(sc->evq);
	hd_dest_put(sc->theirs);
	hd_dest_put(sc->ended);
	hd_ep_close(sc->busy);
	hd_ep_close(sc->mine);
	hd_ep_close(sc->pair);
	hd_mr_close(sc->mr);
	free(sc->read);
}

/* ---- what the stranger does ------------------------------------------------------------------ */

static void closes_for_callers(struct scene *sc)
{
	hd_conns_orphan(sc->peer, &(struct hd_announce){ .index = 5, .gen = 1 });
}

static void goes_for_callers(struct scene *sc)
{
	hd_conns_orphan(sc->peer, NULL);
}

static void begins_anew(struct scene *sc)
{
	hd_epoch_renewed(sc->peer, 5);
}

static void goes_for_pairs(struct scene *sc)
{
	hd_respqs_ended(sc->peer, HD_S_LOST);
}

static void goes_for_fences(struct scene *sc)
{
	hd_fence_fail(sc->peer, NULL, HD_S_LOST);
}

/* Of two that are connected, with nothing under way. */
static void closes_a_connection(struct scene *sc)
{
	hd_ep_ops_end(sc->mine, sc->peer, HD_S_CANCELLED);
}

static void closes_for_senders(struct scene *sc)
{
	hd_backlog_unreached(sc->ended, HD_S_REFUSED);
}

static void closes_for_services(struct scene *sc)
{
	hd_requests_gone(sc->peer, ENDED, 1);
}

/* Another one of the number of one that has asked much, which it was before. */
static void closes_another_of_its_number(struct scene *sc)
{
	hd_requests_gone(sc->peer, ASKS, 2);
}

static void goes_for_questions(struct scene *sc)
{
	hd_asks_orphan(sc->peer);
}

/* It asks no longer, which it has not: another endpoint, and one that has asked much. */
static void withdraw(struct scene *sc, uint32_t from)
{
	const struct hd_pkt pkt = {
		.kind = HD_PKT_LEAVE, .dst = sc->service->ep->index, .gen = sc->service->ep->gen, .src = from
	};

	hd_conn_left(sc->peer->link, &pkt, NULL, 0);
}

static void takes_back(struct scene *sc)
{
	withdraw(sc, ENDED);
}

static void takes_back_one_of_many(struct scene *sc)
{
	withdraw(sc, ASKS);
}

/* A read that he has not asked for. */
static void reads_no_more(struct scene *sc)
{
	hd_rma_taken_back(sc->peer, 0);
}

/* An endpoint of his turns out to be one that is known by another name. */
static void turns_out_to_be_known(struct scene *sc)
{
	struct hd_dest *also = hd_dest_make(sc->s->a.node);

	assert_non_null(also);
	also->refs++;
	hd_dest_bind(also, sc->peer, ENDED, 1);
	hd_dest_unbind(also);
	hd_dest_put(also);
}

/* One of our own user does, before he has greeted over the better link. */
static void hangs_up_early(struct scene *sc)
{
	const struct hd_node_id id = caller_id(0);

	hd_link_missed(sc->s->a.node, &id);
}

/* Later than those of all others. */
static void calls_and_hangs_up(struct scene *sc)
{
	struct hd_timer timer = { 0 };

	hd_timer_set(sc->s->a.node, &timer, 3600 * HD_NS_PER_S);
	hd_timer_stop(sc->s->a.node, &timer);
}

static const struct {
	const char *what;
	void (*does)(struct scene *sc);
} rows[] = {
	{ "an endpoint is closed: who waits for it", closes_for_callers },
	{ "a hang-up: who waits for the caller", goes_for_callers },
	{ "an endpoint begins anew: pairs", begins_anew },
	{ "a hang-up: pairs", goes_for_pairs },
	{ "a hang-up: fences", goes_for_fences },
	{ "a call and a hang-up: its timer", calls_and_hangs_up },
	{ "a hang-up in the greeting: callers", hangs_up_early },
	{ "a connection ends: what is under way", closes_a_connection },
	{ "an endpoint is closed: what is queued", closes_for_senders },
	{ "an endpoint is closed: who asks", closes_for_services },
	{ "another of its number is closed: who asks", closes_another_of_its_number },
	{ "a hang-up: questions", goes_for_questions },
	{ "a request is taken back", takes_back },
	{ "one of an endpoint's many requests is", takes_back_one_of_many },
	{ "a read is taken back", reads_no_more },
	{ "another name of an endpoint: what waits", turns_out_to_be_known },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* ---- what it costs --------------------------------------------------------------------------- */

/* The least of three, in ns for each. */
static double cost_of(struct scene *sc, size_t row)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t from = cpu_ns();

		for (int n = 0; n < ROUNDS; n++)
			rows[row].does(sc);
		from = cpu_ns() - from;
		least = from < least ? from : least;
	}
	return (double)least / ROUNDS;
}

static void costs_of(struct attack_scene *s, uint32_t count, double *ns)
{
	struct scene sc = { .s = s };

	wire_greet(s->w, &s->a);
	sc.peer = hd_links(s->a.node)->peers;
	hd_node_lock(s->a.node); /* over all, so that nobody sends what is queued */
	bystanders_come(&sc, count);
	callers_come(&sc);
	work_comes(&sc);
	for (size_t row = 0; row < ROWS; row++)
		ns[row] = cost_of(&sc, row);
	assert_int_equal(hd_events(s->a.node)->answered, count);
	work_goes(&sc);
	callers_go(&sc);
	bystanders_go(&sc);
	hd_node_unlock(s->a.node);
	wire_hang_up(s->w);
	until_alone(&s->a);
}

static void bystanders_are_not_looked_at(void **state)
{
	double few[ROWS], many[ROWS];
	int slow = 0;

	costs_of(*state, FEW, few);
	costs_of(*state, MANY, many);
	for (size_t row = 0; row < ROWS; row++) {
		/* the clock itself has a share of them */
		if (many[row] <= (few[row] + 50) * AT_MOST)
			continue;
		print_message("%s: %.0f ns with %d bystanders, %.0f ns with %d\n", rows[row].what, few[row],
			      FEW, many[row], MANY);
		slow++;
	}
	assert_int_equal(slow, 0);
}

#ifdef NDEBUG /* assertions look at all peers wherever one goes */

/* In ns for each caller of ROUNDS that go, while others call. */
static double cost_of_hang_ups(struct hd_node *node)
{
	const unsigned others = hd_links_inspect(node).peers;
	uint64_t from;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		const struct hd_node_id id = { .word = { 3, i } };

		assert_non_null(hd_peer_make(node, &id, NULL));
		hd_link_missed(node, &id);
	}
	from = cpu_ns();
	while (hd_links_inspect(node).peers > others)
		hd_node_poll(node);
	return (double)(cpu_ns() - from) / ROUNDS;
}

static double cost_of_hang_ups_beside(struct attack_scene *s, uint32_t count)
{
	struct scene sc = { .s = s, .count = count };
	double least = 0;

	hd_node_lock(s->a.node);
	callers_come(&sc);
	for (int i = 0; i < 3; i++) {
		double ns = cost_of_hang_ups(s->a.node);

		least = !i || ns < least ? ns : least;
	}
	callers_go(&sc);
	hd_node_unlock(s->a.node);
	return least;
}

/* Each is dropped by itself: whoever else calls is not gone through again for him. */
static void callers_who_go_cost_the_same_among_many(void **state)
{
	double few = cost_of_hang_ups_beside(*state, FEW), many = cost_of_hang_ups_beside(*state, MANY);

	print_message("%.0f ns with %d callers, %.0f ns with %d\n", few, FEW, many, MANY);
	assert_true(many <= (few + 50) * AT_MOST);
}

#endif

static int figures(void)
{
	static const uint32_t counts[] = { 10, 1000, 100000 };
	double ns[3][ROWS];
	void *state;

	attack_setup(&state);
	for (size_t i = 0; i < 3; i++)
		costs_of(state, counts[i], ns[i]);
	printf("%-44s%10s%10s%10s   ns\n", "bystanders", "10", "1,000", "100,000");
	for (size_t row = 0; row < ROWS; row++)
		printf("%-44s%10.0f%10.0f%10.0f\n", rows[row].what, ns[0][row], ns[1][row], ns[2][row]);
	return attack_teardown(&state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bystanders_are_not_looked_at, attack_setup, attack_teardown),
#ifdef NDEBUG
		cmocka_unit_test_setup_teardown(callers_who_go_cost_the_same_among_many, attack_setup,
						attack_teardown),
#endif
	};

	setenv("HEDDLE_UNEXPECTED_MAX", "128G", 1); /* a first window for each caller */
	if (argc > 1 && !strcmp(argv[1], "--figures"))
		return figures();
	return cmocka_run_group_tests_name("walks", tests, NULL, NULL);
}
