/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * A process is killed at a random moment of heavy traffic in both directions, with or without a
 * forked child that lives on. The survivor's operations end within a second, its other peer notices
 * nothing, everything is given back, and a successor at the same address reaches it and is reached.
 *
 * The victim is this program, executed anew with the arguments "victim", what
 * it does, and its TCP port.
 */
#include "engine/test/test_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 8
#define LONGEST (2u << 20)
#define RECEIVES 6
#define SENDS 12
#define SLACK_MS 1500 /* beyond the second that is promised: the machine may be busy elsewhere */
#define FROM_TEST 10  /* descriptors of the victim */
#define TO_TEST 11

/* ---- traffic, the same on both ends ---------------------------------------------------------- */

struct load {
	struct side s;
	uint64_t random;
	bool stopped; /* sends no more */
	int sending;  /* sends under way */
	uint64_t sent, received, failed, wrong;
	unsigned char *out;
	unsigned char *in[RECEIVES];
};

static uint64_t draw(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static void load_init(struct load *l, uint64_t seed)
{
	l->random = seed * 2654435761u + 1;
	l->stopped = true;
	l->out = malloc(LONGEST);
	test_fill(l->out, LONGEST, 9);
	for (int i = 0; i < RECEIVES; i++)
		l->in[i] = malloc(LONGEST);
}

static void load_fini(struct load *l)
{
	free(l->out);
	for (int i = 0; i < RECEIVES; i++)
		free(l->in[i]);
}

static void load_post(struct load *l, unsigned char *in)
{
	struct iovec iov = { in, LONGEST };

	if (hd_recv(l->s.ep, &(struct hd_recv_args){ .iov = &iov,
						     .count = 1,
						     .flags = HD_RECV_TAGGED | HD_RECV_COMPLETE,
						     .tag = 1,
						     .ctx = in }) < 0)
		l->wrong++;
}

static void load_send(struct load *l)
{
	uint64_t r = draw(&l->random);
	size_t len = r % 8 == 0 ? r % LONGEST : r % 4 == 0 ? 16000 + r % 60000 : r % 2000;
	uint32_t flags = HD_SEND_COMPLETE | (r >> 20) % 4 / 3 * HD_SEND_ACKED;

	if (hd_send(l->s.ep, l->s.to, l->out, len, 1, 0, NULL, TAGGED(flags)) == 0)
		l->sending++;
}

static bool arrived_whole(const struct hd_cqe *e)
{
	const unsigned char *in = e->ctx;

	for (uint64_t i = 0; i < e->len; i += 61)
		if (in[i] != (unsigned char)(9 + i * 31 + (i >> 8)))
			return false;
	return true;
}

static void load_turn(struct load *l)
{
	const struct hd_cqe *e;

	for (int i = 0; !l->stopped && l->sending < SENDS && i < 4; i++)
		load_send(l);
	hd_node_poll(l->s.node);
	while ((e = hd_cq_peek(l->s.cq))) {
		struct hd_cqe copy = *e;

		hd_cq_pop(l->s.cq);
		l->failed += copy.err != 0;
		if (copy.flags & HD_C_SEND) {
			l->sending--;
			l->sent++;
			continue;
		}
		l->received++;
		if (!copy.err && !arrived_whole(&copy))
			l->wrong++;
		load_post(l, copy.ctx);
	}
}

/* ---- the victim ------------------------------------------------------------------------------ */

static void must(bool right)
{
	if (!right)
		abort();
}

static void victim_opens(struct side *s, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	must(!hd_node_open(&(struct hd_node_attr){ .front = "victim" }, &s->node));
	must(!hd_cq_open(s->node, &(struct hd_cq_attr){ .size = 256 }, &s->cq));
	must(!hd_ep_open(
		s->node,
		&(struct hd_ep_attr){
			.type = HD_EP_RDM, .tx_cq = s->cq, .rx_cq = s->cq, .bind = (struct sockaddr *)&at },
		&s->ep));
}

/* One message each way, then an orderly end. */
static void victim_is_polite(struct load *l)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	l->stopped = true;
	while (hd_send(l->s.ep, l->s.to, l->out, 100, 1, 0, NULL, TAGGED(HD_SEND_COMPLETE | HD_SEND_ACKED)) ==
	       -EAGAIN)
		hd_node_poll(l->s.node);
	l->sending = 1;
	while (l->sending || !l->received) {
		load_turn(l);
		must(hd_now_ns() < end);
	}
	must(!l->failed && !l->wrong);
	for (int i = 0; i < RECEIVES; i++)
		must(!hd_cancel(l->s.ep, l->in[i]));
	hd_dest_put(l->s.to);
	hd_ep_close(l->s.ep);
	must(!hd_cq_close(l->s.cq));
	must(!hd_node_close(l->s.node));
}

static int victim(const char *what, const char *port)
{
	struct sockaddr_storage name;
	struct load l = { 0 };
	pid_t child = 0;

	alarm(60);
	load_init(&l, (uint64_t)getpid());
	victim_opens(&l.s, (uint16_t)atoi(port));
	must(!hd_ep_name(l.s.ep, AF_UNSPEC, &name));
	must(write(TO_TEST, &name, sizeof(name)) == sizeof(name));
	must(read(FROM_TEST, &name, sizeof(name)) == sizeof(name));
	must(!hd_dest_get(l.s.node, (void *)&name, &l.s.to));
	for (int i = 0; i < RECEIVES; i++)
		load_post(&l, l.in[i]);
	l.stopped = false;
	if (!strcmp(what, "polite")) {
		victim_is_polite(&l);
		load_fini(&l);
		return 0;
	}
	for (int turn = 0;; turn++) {
		load_turn(&l);
		if (turn != 50)
			continue;
		if (!strcmp(what, "parent"))
			child = fork();
		if (!strcmp(what, "parent") && !child)
			for (alarm(60);;)
				pause();
		must(write(TO_TEST, &child, sizeof(child)) == sizeof(child));
	}
}

/* ---- the test's side of it ------------------------------------------------------------------- */

struct process {
	pid_t pid, child;
	int from, to;
	struct sockaddr_storage name;
};

/*
 * A port that nobody has, from below those that the kernel gives to whoever names none: it is to be
 * free between a victim and the next.
 */
static uint16_t quiet_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd, taken;

	do {
		at.sin_port = htons((uint16_t)(10000 + (unsigned)hd_now_ns() / 64 % 10000));
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd >= 0);
		taken = bind(fd, (struct sockaddr *)&at, sizeof(at));
		close(fd);
	} while (taken);
	return ntohs(at.sin_port);
}

static void spawn(struct process *p, const char *what, uint16_t port, struct side *survivor)
{
	struct sockaddr_storage name;
	int down[2], up[2];
	char text[8];

	assert_int_equal(pipe2(down, O_CLOEXEC), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	snprintf(text, sizeof(text), "%u", port);
	p->child = 0;
	p->pid = fork();
	if (!p->pid) {
		dup2(down[0], FROM_TEST);
		dup2(up[1], TO_TEST);
		execl("/proc/self/exe", "death_test", "victim", what, text, NULL);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	p->to = down[1];
	p->from = up[0];
	assert_int_equal(read(p->from, &p->name, sizeof(p->name)), sizeof(p->name));
	assert_int_equal(hd_ep_name(survivor->ep, AF_UNSPEC, &name), 0);
	assert_int_equal(write(p->to, &name, sizeof(name)), sizeof(name));
}

static void reap(struct process *p, int status_wanted)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	assert_int_equal(status, status_wanted);
	if (p->child > 0) { /* ours now: main() */
		kill(p->child, SIGKILL);
		assert_int_equal(waitpid(p->child, &status, 0), p->child);
	}
	close(p->from);
	close(p->to);
}

/* The other peer of the survivor, in this process: a message there and back now and then. */
struct bystander {
	struct side s;
	struct side *survivor;
	struct hd_ep *own; /* an endpoint of the survivor's for it alone */
	struct hd_cq *cq;
	uint64_t messages;
	bool waiting;
	char in[8];
};

static void bystander_open(struct bystander *b, struct side *survivor)
{
	struct sockaddr_storage name;

	b->survivor = survivor;
	side_open(&b->s);
	assert_int_equal(hd_cq_open(survivor->node, &(struct hd_cq_attr){ .size = 64 }, &b->cq), 0);
	assert_int_equal(hd_ep_open(survivor->node,
				    &(struct hd_ep_attr){ .type = HD_EP_RDM, .rx_cq = b->cq, .tx_cq = b->cq },
				    &b->own),
			 0);
	assert_int_equal(hd_ep_name(b->own, AF_UNSPEC, &name), 0);
	assert_int_equal(hd_dest_get(b->s.node, (void *)&name, &b->s.to), 0);
}

static void bystander_turn(struct bystander *b)
{
	struct iovec iov = { b->in, sizeof(b->in) };

	if (!b->waiting) {
		assert_int_equal(
			hd_recv(b->own, &(struct hd_recv_args){ .iov = &iov,
								.count = 1,
								.flags = HD_RECV_TAGGED | HD_RECV_COMPLETE }),
			0);
		assert_int_equal(hd_send(b->s.ep, b->s.to, "message", 8, 0, 0, NULL,
					 TAGGED(HD_SEND_ACKED | HD_SEND_COMPLETE)),
				 0);
		b->waiting = true;
	}
	hd_node_poll(b->s.node);
	if (!hd_cq_peek(b->cq) || !hd_cq_peek(b->s.cq))
		return;
	assert_int_equal(hd_cq_peek(b->cq)->err, 0);
	assert_int_equal(hd_cq_peek(b->s.cq)->err, 0);
	hd_cq_pop(b->cq);
	hd_cq_pop(b->s.cq);
	b->waiting = false;
	b->messages++;
}

static void bystander_close(struct bystander *b)
{
	hd_ep_close(b->own);
	assert_int_equal(hd_cq_close(b->cq), 0);
	side_close(&b->s);
}

static void both_for(struct load *l, struct bystander *b, uint64_t us)
{
	uint64_t end = hd_now_ns() + us * HD_NS_PER_US;

	do {
		load_turn(l);
		bystander_turn(b);
	} while (hd_now_ns() < end);
}

/* What the dead peer has left here is received, so that nothing is held any more. */
static void drain(struct load *l)
{
	const struct hd_cqe *e;

	for (int turn = 0; turn < 1000; turn++)
		load_turn(l);
	for (int i = 0; i < RECEIVES; i++)
		assert_int_equal(hd_cancel(l->s.ep, l->in[i]), 0);
	while ((e = hd_cq_peek(l->s.cq))) {
		assert_int_equal(e->err, HD_S_CANCELLED);
		hd_cq_pop(l->s.cq);
	}
}

static void one_death(struct load *l, struct bystander *b, const char *what, uint64_t us, uint16_t port)
{
	struct hd_node *node = l->s.node;
	uint64_t killed, messages;
	struct process p;

	for (int i = 0; i < RECEIVES; i++)
		load_post(l, l->in[i]);
	spawn(&p, what, port, &l->s);
	if (!l->s.to)
		assert_int_equal(hd_dest_get(node, (void *)&p.name, &l->s.to), 0);
	l->stopped = false;
	if (!strcmp(what, "parent") || us > 2000) /* else it may be killed while it greets */
		assert_int_equal(fcntl(p.from, F_SETFL, O_NONBLOCK), 0);
	while ((!strcmp(what, "parent") || us > 2000) &&
	       read(p.from, &p.child, sizeof(p.child)) != sizeof(p.child))
		both_for(l, b, 100);
	both_for(l, b, us);
	kill(p.pid, SIGKILL);
	killed = hd_now_ns();
	messages = b->messages;
	l->stopped = true;
	while (l->sending || hd_links_inspect(node).peers > 1) {
		both_for(l, b, 0);
		assert_true(hd_now_ns() - killed < (1000 + SLACK_MS) * HD_NS_PER_MS);
	}
	reap(&p, SIGKILL);
	drain(l);
	both_for(l, b, 2000);
	assert_true(b->messages > messages);
	assert_int_equal(l->wrong, 0);
	assert_int_equal(hd_links_inspect(node).pending, 0);
}

static void successor_is_reached(struct load *l, struct bystander *b, uint16_t port)
{
	uint64_t end = hd_now_ns() + PATIENCE, failed = l->failed, received = l->received;
	struct process p;

	for (int i = 0; i < RECEIVES; i++)
		load_post(l, l->in[i]);
	spawn(&p, "polite", port, &l->s);
	assert_int_equal(hd_send(l->s.ep, l->s.to, l->out, 100, 1, 0, NULL,
				 TAGGED(HD_SEND_COMPLETE | HD_SEND_ACKED)),
			 0);
	l->sending = 1;
	while (l->sending || l->received == received || hd_links_inspect(l->s.node).peers > 1) {
		both_for(l, b, 0);
		assert_true(hd_now_ns() < end);
	}
	assert_int_equal(l->failed, failed);
	reap(&p, 0);
	drain(l);
}

/*
 * Nothing of the dead stays; what closes a little later than the last operation, as a call
 * that was under way, may.
 */
static void nothing_stays(struct load *l, struct bystander *b, int fds, uint32_t units)
{
	uint64_t end = hd_now_ns() + PATIENCE;

	while (test_fds() != fds && hd_now_ns() < end)
		both_for(l, b, 1000);
	assert_int_equal(test_fds(), fds);
	assert_int_equal(hd_links_inspect(l->s.node).units, units);
}

static void deaths(const char *transport, const char *what)
{
	struct bystander b = { 0 };
	struct load l = { 0 };
	uint32_t units = 0;
	uint16_t port = quiet_port();
	int fds = 0;

	setenv("HEDDLE_TRANSPORT", transport, 1);
	load_init(&l, 77);
	side_open(&l.s);
	bystander_open(&b, &l.s);
	while (b.messages < 3)
		both_for(&l, &b, 0);
	for (int i = 0; i < ROUNDS; i++) {
		one_death(&l, &b, what, i % 3 ? draw(&l.random) % 30000 : draw(&l.random) % 3000, port);
		if (i % 4 == 3)
			successor_is_reached(&l, &b, port);
		if (!i) {
			fds = test_fds();
			units = hd_links_inspect(l.s.node).units;
		}
		nothing_stays(&l, &b, fds, units);
	}
	assert_true(l.received > 0);
	bystander_close(&b);
	side_close(&l.s);
	load_fini(&l);
	unsetenv("HEDDLE_TRANSPORT");
}

static void killed_over_shared_memory(void **state)
{
	deaths("shm", "load");
}

static void killed_over_tcp(void **state)
{
	deaths("tcp", "load");
}

static void killed_with_a_living_child_over_shared_memory(void **state)
{
	deaths("shm", "parent");
}

static void killed_with_a_living_child_over_tcp(void **state)
{
	deaths("tcp", "parent");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_over_shared_memory),
		cmocka_unit_test(killed_over_tcp),
		cmocka_unit_test(killed_with_a_living_child_over_shared_memory),
		cmocka_unit_test(killed_with_a_living_child_over_tcp),
	};

	if (argc == 4 && !strcmp(argv[1], "victim"))
		return victim(argv[2], argv[3]);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* of the children that victims leave */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
