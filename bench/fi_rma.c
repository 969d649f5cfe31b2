/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * hd-rma: one-sided operations of a libfabric provider between two processes of this host, beside
 * the bare system call that the kernel has for the same thing, in turn with it. The target is
 * asleep (in read(2) on the control channel) or polls its completion queue. It forks its second
 * process before it touches libfabric.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fi_rma.h>

#include "ctl.h"
#include "fi_side.h"
#include "sample.h"

#define BUFFER (16u << 20)
#define WINDOW 16
#define SIZES_MAX 32

/* What the target tells about itself. */
struct target {
	struct hd_side_name name;
	uint64_t addr, key;
	/*
	 * what one-sided operations call it: the same where addresses are virtual, else an offset
	 */
	uint64_t at;
	pid_t pid;
};

enum word {
	WORD_SLEEP, /* the target sleeps until the next word */
	WORD_POLL,  /* it makes progress until the next word */
	WORD_FLAGS, /* it answers each write of a number with one of its own, `count` times */
	WORD_MSGS,  /* the same with messages */
	WORD_END
};

struct order {
	enum word word;
	uint64_t count;
};

struct rma {
	struct hd_side side;
	struct fid_mr *mr;
	struct target other;
	int ctl, cpus[2];
	long reps, rep_ms;
	size_t sizes[SIZES_MAX];
	int nsizes;
	const char *prov;
};

/* ---- operations ------------------------------------------------------------------------------ */

static bool try_op(struct rma *r, bool out, size_t size, void *from)
{
	struct hd_side *s = &r->side;
	ssize_t ret;
	void *ctx;

	if (!s->tx_nfree)
		return false;
	ctx = s->tx_free[s->tx_nfree - 1];
	ret = out ? fi_write(s->ep, from, size, s->tx_desc, s->peer, r->other.at, r->other.key, ctx)
		  : fi_read(s->ep, from, size, s->tx_desc, s->peer, r->other.at, r->other.key, ctx);
	if (ret == -FI_EAGAIN)
		return false;
	if (ret)
		hd_side_failed(out ? "fi_write" : "fi_read", ret);
	s->tx_nfree--;
	return true;
}

static void op(struct rma *r, bool out, size_t size, void *from)
{
	while (!try_op(r, out, size, from))
		hd_side_reap(&r->side);
}

static void finish(struct rma *r, unsigned left)
{
	while (HD_SIDE_TX - r->side.tx_nfree > left)
		hd_side_reap_one(&r->side);
}

struct what {
	bool out, bare;
	size_t size;
	unsigned window; /* operations under way */
};

static void bare_op(struct rma *r, const struct what *w)
{
	struct iovec near = { r->side.tx_buf, w->size }, far = { (void *)(uintptr_t)r->other.addr, w->size };
	ssize_t n = w->out ? process_vm_writev(r->other.pid, &near, 1, &far, 1, 0)
			   : process_vm_readv(r->other.pid, &near, 1, &far, 1, 0);

	if (n != (ssize_t)w->size)
		hd_give_up("the kernel does not let one process copy from and to another here");
}

/* Nanoseconds of n operations. */
static double run(struct rma *r, const struct what *w, uint64_t n)
{
	uint64_t start = hd_now_ns();

	for (uint64_t i = 0; i < n; i++)
		if (w->bare) {
			bare_op(r, w);
		} else {
			op(r, w->out, w->size, r->side.tx_buf);
			finish(r, w->window - 1);
		}
	finish(r, 0);
	return (double)(hd_now_ns() - start);
}

static uint64_t calibrate(struct rma *r, const struct what *w)
{
	double want = (double)r->rep_ms * 1e6, t;
	uint64_t n = 4;

	while ((t = run(r, w, n)) < want / 8)
		n *= 4;
	n = (uint64_t)((double)n * want / t) + 1;
	return n < 4 ? 4 : n;
}

/* ---- what is measured ------------------------------------------------------------------------ */

static void say(struct rma *r, enum word word, uint64_t count)
{
	struct order o = { word, count };
	char ready;

	hd_ctl_put(r->ctl, &o, sizeof(o));
	hd_ctl_get(r->ctl, &ready, 1, hd_side_turn, &r->side);
	usleep(2000); /* until it sleeps */
}

/* One kind of operation of one size, in turn with the bare call. */
static void beside(struct rma *r, const char *test, const char *state, struct what w)
{
	struct hd_samples ours = { .n = 0 }, bare = { .n = 0 }, ratio = { .n = 0 };
	struct what b = w;
	uint64_t n, m;

	b.bare = true;
	n = calibrate(r, &w);
	m = calibrate(r, &b);
	for (long i = 0; i < r->reps; i++) {
		double x = run(r, &w, n) / (double)n, y = run(r, &b, m) / (double)m;

		hd_samples_add(&ours, x);
		hd_samples_add(&bare, y);
		hd_samples_add(&ratio, x / y);
	}
	printf("test=%s provider=%s target=%s size=%zu", test, r->prov, state, w.size);
	if (w.window > 1)
		printf(" median_gb_s=%.3f bare_gb_s=%.3f\n", (double)w.size / hd_samples_median(&ours),
		       (double)w.size / hd_samples_median(&bare));
	else
		printf(" median_us=%.4f bare_us=%.4f\n", hd_samples_median(&ours) / 1e3,
		       hd_samples_median(&bare) / 1e3);
	fflush(stdout);
}

static void beside_all(struct rma *r, const char *state)
{
	for (int i = 0; i < r->nsizes; i++) {
		size_t size = r->sizes[i];

		beside(r, "rma-write-lat", state, (struct what){ .out = true, .size = size, .window = 1 });
		beside(r, "rma-read-lat", state, (struct what){ .out = false, .size = size, .window = 1 });
		if (size < 65536)
			continue;
		beside(r, "rma-write-bw", state,
		       (struct what){ .out = true, .size = size, .window = WINDOW });
		beside(r, "rma-read-bw", state,
		       (struct what){ .out = false, .size = size, .window = WINDOW });
	}
}

/* ---- ping-pong: numbers written to each other's memory, and messages ------------------------- */

/* Where the other writes its numbers to; ours are taken from the start of the sending buffer. */
static _Atomic uint64_t *flag_of(struct rma *r)
{
	return (_Atomic uint64_t *)(void *)r->side.rx_buf;
}

static void await_flag(struct rma *r, uint64_t number)
{
	while (__atomic_load_n((uint64_t *)flag_of(r), __ATOMIC_ACQUIRE) != number)
		hd_side_reap_one(&r->side);
}

static void put_flag(struct rma *r, uint64_t number)
{
	finish(r, 0); /* the buffer is ours again */
	memcpy(r->side.tx_buf, &number, sizeof(number));
	op(r, true, sizeof(number), r->side.tx_buf);
}

static void flags(struct rma *r, uint64_t n, bool first)
{
	for (uint64_t i = 1; i <= n; i++) {
		if (first)
			put_flag(r, i);
		await_flag(r, i);
		if (!first)
			put_flag(r, i);
	}
	finish(r, 0);
	memset(r->side.rx_buf, 0, 8);
}

static void messages(struct rma *r, uint64_t n, bool first)
{
	uint64_t target = r->side.rx_done;

	for (uint64_t i = 0; i < n; i++) {
		hd_side_recv(&r->side, 8, HD_TAG_DATA, i & 1);
		if (first)
			hd_side_send(&r->side, r->side.peer, 8, HD_TAG_DATA);
		target++;
		while (r->side.rx_done < target)
			hd_side_reap_one(&r->side);
		if (!first)
			hd_side_send(&r->side, r->side.peer, 8, HD_TAG_DATA);
	}
	finish(r, 0);
}

static double pingpong(struct rma *r, enum word word, uint64_t n)
{
	uint64_t start;

	say(r, word, n);
	start = hd_now_ns();
	if (word == WORD_FLAGS)
		flags(r, n, true);
	else
		messages(r, n, true);
	return (double)(hd_now_ns() - start) / 2e3 / (double)n;
}

static void pingpongs(struct rma *r)
{
	struct hd_samples written = { .n = 0 }, sent = { .n = 0 };
	uint64_t n = 2000;

	n = (uint64_t)((double)r->rep_ms * 1e3 / 2 / pingpong(r, WORD_MSGS, n)) + 1;
	pingpong(r, WORD_FLAGS, 1000);
	for (long i = 0; i < r->reps; i++) {
		hd_samples_add(&sent, pingpong(r, WORD_MSGS, n));
		hd_samples_add(&written, pingpong(r, WORD_FLAGS, n));
	}
	printf("test=rma-pingpong provider=%s size=8 median_us=%.4f message_us=%.4f\n", r->prov,
	       hd_samples_median(&written), hd_samples_median(&sent));
}

/* ---- the two processes ----------------------------------------------------------------------- */

static void meet(struct rma *r)
{
	struct target mine = { .addr = (uintptr_t)r->side.rx_buf, .pid = getpid() };
	bool virtual = r->side.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	int ret = fi_mr_reg(r->side.domain, r->side.rx_buf, r->side.buf_size,
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &r->mr, NULL);

	if (ret)
		hd_side_failed("fi_mr_reg", ret);
	mine.key = fi_mr_key(r->mr);
	mine.at = virtual ? mine.addr : 0;
	hd_side_name(&r->side, &mine.name);
	hd_ctl_put(r->ctl, &mine, sizeof(mine));
	hd_ctl_get(r->ctl, &r->other, sizeof(r->other), NULL, NULL);
	r->side.peer = hd_side_insert(&r->side, &r->other.name);
}

static void open_side(struct rma *r)
{
	const struct hd_side_opts o = {
		.prov = r->prov, .tagged = true, .rma = true, .buf_size = BUFFER, .rx_depth = 2
	};

	hd_side_open(&r->side, &o);
	meet(r);
}

static void serve(struct rma *r)
{
	struct order o = { .word = WORD_POLL };
	char ready = 1;

	hd_pin(r->cpus[1]);
	open_side(r);
	while (o.word != WORD_END) {
		bool sleeps = o.word == WORD_SLEEP;

		hd_ctl_get(r->ctl, &o, sizeof(o), sleeps ? NULL : hd_side_turn, &r->side);
		hd_ctl_put(r->ctl, &ready, 1);
		if (o.word == WORD_FLAGS)
			flags(r, o.count, false);
		else if (o.word == WORD_MSGS)
			messages(r, o.count, false);
	}
}

static void measure(struct rma *r)
{
	hd_pin(r->cpus[0]);
	open_side(r);
	pingpong(r, WORD_MSGS, 10); /* a link stands */
	say(r, WORD_SLEEP, 0);
	beside_all(r, "asleep");
	say(r, WORD_POLL, 0);
	beside_all(r, "polling");
	pingpongs(r);
	say(r, WORD_END, 0);
}

static void finish_side(struct rma *r)
{
	fi_close(&r->mr->fid);
	hd_side_close(&r->side);
}

static void parse(struct rma *r, int argc, char **argv)
{
	static char few[] = "8,4096,262144,1048576,4194304";
	char *sizes = few;
	int c;

	*r = (struct rma){ .cpus = { 0, 1 }, .reps = 5, .rep_ms = 40, .prov = "heddle" };
	while ((c = getopt(argc, argv, "p:c:r:T:s:")) >= 0)
		switch (c) {
		case 'p':
			r->prov = optarg;
			break;
		case 'c':
			hd_parse_pair(optarg, r->cpus);
			break;
		case 'r':
			r->reps = hd_parse_long(optarg, 1, HD_SAMPLES_MAX, "repetitions");
			break;
		case 'T':
			r->rep_ms = hd_parse_long(optarg, 1, 60000, "milliseconds");
			break;
		case 's':
			sizes = optarg;
			break;
		default:
			hd_give_up(
				"usage: hd-rma [-p PROVIDER] [-c CPU,CPU] [-r REPETITIONS] [-T MILLISECONDS] [-s SIZES]");
		}
	r->nsizes = hd_parse_sizes(sizes, 1, BUFFER, r->sizes, SIZES_MAX);
}

int main(int argc, char **argv)
{
	static struct rma r;
	pid_t child;
	int fd[2];

	parse(&r, argc, argv);
	hd_ctl_pair(fd);
	child = hd_ctl_fork();
	r.ctl = fd[child == 0];
	close(fd[child != 0]);
	if (child == 0)
		serve(&r);
	else
		measure(&r);
	finish_side(&r);
	if (child)
		hd_ctl_reap(child, "target");
	return 0;
}
