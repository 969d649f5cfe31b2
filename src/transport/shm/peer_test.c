/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Peers that are not what they should be: at the door, and in the ring. And peers that are idle. */
#include "base/clock.h"
#include "base/config.h"
#include "transport/shm_duo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- a hand-made peer ---- */

static int door_socket(const struct hd_shm_advert *advert, struct sockaddr_un *sa, socklen_t *len)
{
	char name[64];
	int n = snprintf(name, sizeof(name), "heddle.");

	for (int i = 0; i < 16; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", advert->door[i]);
	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(sa->sun_path + 1, name, (size_t)n);
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static int door_knock(const struct hd_shm_advert *advert)
{
	struct sockaddr_un sa;
	socklen_t len;
	int fd = door_socket(advert, &sa, &len);

	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	return fd;
}

/* A record and what comes with it; each test spoils one thing of it. */
struct record {
	struct hd_shm_hello hello;
	size_t len;
	int fd[8];
	int fds;
	uint8_t more[64];
};

static void record_send(int sock, const struct record *r)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)r, r->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	uint8_t wire[sizeof(*r)];

	memcpy(wire, &r->hello, sizeof(r->hello));
	memset(wire + sizeof(r->hello), 0, sizeof(wire) - sizeof(r->hello));
	iov.iov_base = wire;
	if (r->fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)r->fds * sizeof(int));
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN((size_t)r->fds * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), r->fd, (size_t)r->fds * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), r->len);
}

static int memfd(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_not_equal(fd, -1);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

struct page_head {
	uint32_t magic;
	uint16_t version, size_kib;
	int32_t pid;
	uint32_t rows;
	struct hd_node_id id;
};

static int page_fd(size_t size, int seals, uint32_t magic, const struct hd_node_id *id)
{
	struct page_head head = { .magic = magic, .version = HD_PAGE_VERSION, .pid = getpid(), .id = *id };
	int fd = memfd(size, 0);

	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int link_fd(size_t size, int seals, uint32_t magic)
{
	struct {
		uint32_t magic, version;
		uint64_t size;
	} head = { magic, HD_SHM_VERSION, sizeof(struct hd_shm_mem) };
	int fd = memfd(size, 0);

	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

enum {
	PAGE,
	WAKE,
	MEM
};

static struct record good_record(const struct hd_shm_advert *advert, enum hd_shm_hello_step step)
{
	struct record r = {
		.hello = { .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION, .step = (uint8_t)step }
	};

	r.len = sizeof(r.hello);
	memcpy(r.hello.nonce, advert->nonce, sizeof(r.hello.nonce));
	r.hello.id.word[0] = 4711;
	if (step == HD_SHM_READY)
		return r;
	r.fd[r.fds++] = page_fd(sizeof(struct hd_page_file), SIZE_SEALS | F_SEAL_FUTURE_WRITE, HD_PAGE_MAGIC,
				&r.hello.id);
	r.fd[r.fds++] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (step == HD_SHM_JOIN)
		r.fd[r.fds++] = link_fd(sizeof(struct hd_shm_mem), SIZE_SEALS, HD_SHM_MAGIC);
	return r;
}

static void record_close(struct record *r)
{
	for (int i = 0; i < r->fds; i++)
		close(r->fd[i]);
}

static void replace(struct record *r, int which, int fd)
{
	close(r->fd[which]);
	r->fd[which] = fd;
}

static int a_pipe(void)
{
	int end[2];

	assert_int_equal(pipe2(end, O_NONBLOCK | O_CLOEXEC), 0);
	close(end[0]);
	return end[1];
}

enum lie {
	NOTHING, /* the truth */
	MAGIC,
	VERSION,
	STEP,
	NONCE,
	TOO_SHORT,
	TOO_LONG,
	NO_DESCRIPTORS,
	ONE_LESS,
	ONE_MORE,
	FAR_TOO_MANY,
	PAGE_UNSEALED,
	PAGE_WRITABLE,
	PAGE_SHORT,
	PAGE_MAGIC,
	PAGE_OF_ANOTHER,
	WAKE_BLOCKS,
	WAKE_IS_A_PIPE,
	WAKE_IS_A_FILE,
	LIES_OF_ALL,
	MEM_UNSEALED = LIES_OF_ALL,
	MEM_SHORT,
	MEM_LONG,
	MEM_MAGIC,
	MEM_IS_NO_MEMFD,
	LIES,
};

static void spoil_page(struct record *r, enum lie lie)
{
	const int seals = SIZE_SEALS | F_SEAL_FUTURE_WRITE;
	const struct hd_node_id other = { { 1, 2 } };
	const size_t size = sizeof(struct hd_page_file);

	switch (lie) {
	case PAGE_UNSEALED:
		replace(r, PAGE, page_fd(size, 0, HD_PAGE_MAGIC, &r->hello.id));
		break;
	case PAGE_WRITABLE:
		replace(r, PAGE, page_fd(size, SIZE_SEALS, HD_PAGE_MAGIC, &r->hello.id));
		break;
	case PAGE_SHORT:
		replace(r, PAGE, page_fd(4096, seals, HD_PAGE_MAGIC, &r->hello.id));
		break;
	case PAGE_MAGIC:
		replace(r, PAGE, page_fd(size, seals, 1, &r->hello.id));
		break;
	case PAGE_OF_ANOTHER:
		replace(r, PAGE, page_fd(size, seals, HD_PAGE_MAGIC, &other));
		break;
	case WAKE_BLOCKS:
		replace(r, WAKE, eventfd(0, EFD_CLOEXEC));
		break;
	case WAKE_IS_A_PIPE:
		replace(r, WAKE, a_pipe());
		break;
	case WAKE_IS_A_FILE:
		replace(r, WAKE, memfd(4096, 0));
		break;
	default:
		break;
	}
}

static void spoil_mem(struct record *r, enum lie lie)
{
	const size_t size = sizeof(struct hd_shm_mem);

	switch (lie) {
	case MEM_UNSEALED:
		replace(r, MEM, link_fd(size, 0, HD_SHM_MAGIC));
		break;
	case MEM_SHORT:
		replace(r, MEM, link_fd(size - 4096, SIZE_SEALS, HD_SHM_MAGIC));
		break;
	case MEM_LONG:
		replace(r, MEM, link_fd(size + 4096, SIZE_SEALS, HD_SHM_MAGIC));
		break;
	case MEM_MAGIC:
		replace(r, MEM, link_fd(size, SIZE_SEALS, 7));
		break;
	case MEM_IS_NO_MEMFD:
		replace(r, MEM, open("/dev/zero", O_RDWR | O_CLOEXEC));
		break;
	default:
		break;
	}
}

static void spoil(struct record *r, enum lie lie)
{
	switch (lie) {
	case MAGIC:
		r->hello.magic++;
		break;
	case VERSION:
		r->hello.version++;
		break;
	case STEP:
		r->hello.step++;
		break;
	case NONCE:
		r->hello.nonce[15] ^= 1;
		break;
	case TOO_SHORT:
		r->len--;
		break;
	case TOO_LONG:
		r->len++;
		break;
	case NO_DESCRIPTORS:
		record_close(r);
		r->fds = 0;
		break;
	case ONE_LESS:
		close(r->fd[--r->fds]);
		break;
	case ONE_MORE:
		r->fd[r->fds++] = eventfd(0, EFD_CLOEXEC);
		break;
	case FAR_TOO_MANY:
		while (r->fds < 8)
			r->fd[r->fds++] = eventfd(0, EFD_CLOEXEC);
		break;
	default:
		spoil_page(r, lie);
		spoil_mem(r, lie);
	}
}

/* What the other side does about it: a record comes, or the end. -1: neither within two seconds. */
static int answer(struct duo *d, int sock)
{
	struct hd_shm_hello hello;

	for (int i = 0; i < 2000; i++) {
		struct pollfd p = { .fd = sock, .events = POLLIN };

		duo_turns(d, 10);
		if (poll(&p, 1, 1) > 0)
			return recv(sock, &hello, sizeof(hello), 0) > 0;
	}
	return -1;
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* ---- at the door ---- */

static void who_lies_is_sent_away(void **state)
{
	struct duo d;
	int before;

	duo_nodes(&d);
	before = open_descriptors();
	for (enum lie lie = NOTHING; lie < LIES; lie++) {
		struct record r = good_record(&d.advert, HD_SHM_JOIN);
		int sock = door_knock(&d.advert);

		spoil(&r, lie);
		record_send(sock, &r);
		record_close(&r);
		if (answer(&d, sock) != (lie == NOTHING))
			fail_msg("lie %d", lie);
		close(sock);
		duo_turns(&d, 20);
		assert_int_equal(d.port[1]->guest_count, 0);
		assert_int_equal(open_descriptors(), before);
	}
	duo_join(&d);
	duo_close(&d);
}

static void who_is_not_known_is_sent_away(void **state)
{
	struct duo d;
	struct record r;
	int sock;

	duo_nodes(&d);
	d.node[1]->knows = false;
	r = good_record(&d.advert, HD_SHM_JOIN);
	sock = door_knock(&d.advert);
	record_send(sock, &r);
	record_close(&r);
	assert_int_equal(answer(&d, sock), 0);
	close(sock);
	duo_close(&d);
}

static int false_door(struct hd_shm_advert *advert, int backlog)
{
	struct sockaddr_un sa;
	socklen_t len;
	int fd;

	*advert = (struct hd_shm_advert){ .magic = HD_SHM_MAGIC, .version = HD_SHM_VERSION };
	rig_fill(advert->door, 0, sizeof(advert->door), hd_now_ns());
	fd = door_socket(advert, &sa, &len);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

/* Needs to be root, to be somebody else for a moment: who connects is known by what it was then. */
static void another_user_is_sent_away(void **state)
{
	struct duo d;
	struct record r;
	int sock;

	if (geteuid() != 0)
		skip();
	duo_nodes(&d);
	r = good_record(&d.advert, HD_SHM_JOIN);
	assert_int_equal(seteuid(65534), 0);
	sock = door_knock(&d.advert);
	assert_int_equal(seteuid(0), 0);
	duo_turns(&d, 20);
	(void)send(sock, &r.hello, r.len, MSG_NOSIGNAL);
	record_close(&r);
	assert_int_equal(answer(&d, sock), 0);
	assert_int_equal(d.port[1]->guest_count, 0);
	close(sock);
	duo_close(&d);
}

static void another_users_door_is_not_entered(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end;
	struct duo d;
	int door;

	if (geteuid() != 0)
		skip();
	duo_nodes(&d);
	assert_int_equal(seteuid(65534), 0);
	door = false_door(&advert, 5);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), -EACCES);
	close(door);
	duo_close(&d);
}

/* It begins well, but then goes on with something else, or with nothing. */
static void who_does_not_go_on_is_sent_away(void **state)
{
	struct duo d;

	duo_nodes(&d);
	for (int how = 0; how < 3; how++) {
		struct record r = good_record(&d.advert, HD_SHM_JOIN),
			      next = good_record(&d.advert, HD_SHM_READY);
		int sock = door_knock(&d.advert);

		record_send(sock, &r);
		assert_int_equal(answer(&d, sock), 1);
		if (how == 0)
			record_send(sock, &r);
		if (how == 1) {
			next.hello.nonce[0]++;
			record_send(sock, &next);
		}
		if (how == 2)
			shutdown(sock, SHUT_WR);
		record_close(&r);
		assert_int_equal(answer(&d, sock), 0);
		assert_int_equal(d.port[1]->guest_count, 0);
		close(sock);
	}
	duo_join(&d);
	duo_close(&d);
}

#define CROWD 60 /* more than are let in at the same time */

static void a_silent_crowd_keeps_nobody_out_for_long(void **state)
{
	int sock[CROWD];
	uint64_t begin;
	struct duo d;

	setenv("HEDDLE_CONNECT_TIMEOUT", "300", 1);
	hd_config_load();
	duo_nodes(&d);
	for (int i = 0; i < CROWD; i++)
		sock[i] = door_knock(&d.advert);
	begin = hd_now_ns();
	duo_turns(&d, 20);
	assert_in_range(d.port[1]->guest_count, 1, CROWD - 1);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(answer(&d, sock[i]), 0);
	assert_in_range((hd_now_ns() - begin) / HD_NS_PER_MS, 200, 30000);
	for (int i = 0; i < CROWD; i++)
		close(sock[i]);
	duo_join(&d);
	duo_close(&d);
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
	hd_config_load();
}

/* ---- at a door that is not what it should be ---- */

static int door_error(enum lie lie)
{
	switch (lie) {
	case NOTHING:
		return -ECONNABORTED;
	case NONCE:
		return -EACCES;
	case FAR_TOO_MANY:
		return -EMFILE;
	default:
		return -EPROTO;
	}
}

static void a_door_that_lies_ends_the_link(void **state)
{
	struct hd_shm_advert advert;
	struct duo d;
	int door, before;

	duo_nodes(&d);
	door = false_door(&advert, 5);
	before = open_descriptors();
	for (enum lie lie = NOTHING; lie < LIES_OF_ALL; lie++) {
		struct record r = good_record(&advert, HD_SHM_WELCOME);
		struct rig_end *end;
		int sock;

		assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
		sock = accept(door, NULL, NULL);
		assert_int_equal(answer(&d, sock), 1); /* JOIN */
		spoil(&r, lie);
		record_send(sock, &r);
		record_close(&r);
		if (answer(&d, sock) != (lie == NOTHING) || end->up != (lie == NOTHING))
			fail_msg("lie %d", lie);
		rig_end_close(end, -ECONNABORTED);
		duo_turns(&d, 5);
		assert_true(end->closed);
		assert_int_equal(end->err, door_error(lie));
		close(sock);
		assert_int_equal(open_descriptors(), before);
	}
	close(door);
	duo_close(&d);
}

static bool ends_with(struct duo *d, struct rig_end *end, int err, uint64_t least_ms, uint64_t most_ms)
{
	uint64_t begin = hd_now_ns(), ms;

	while (!end->closed && hd_now_ns() - begin < 60 * HD_NS_PER_S) {
		duo_turns(d, 10);
		usleep(1000);
	}
	ms = (hd_now_ns() - begin) / HD_NS_PER_MS;
	return end->closed && end->err == err && ms + 1 >= least_ms && ms <= most_ms;
}

static void a_door_that_does_not_open_ends_the_link_in_time(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end, *first;
	struct duo d;
	int door;

	setenv("HEDDLE_CONNECT_TIMEOUT", "200", 1);
	hd_config_load();
	duo_nodes(&d);
	door = false_door(&advert, 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &first),
			 0); /* fills the queue */
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
	assert_true(ends_with(&d, end, -ETIMEDOUT, 200, 30000));
	assert_true(ends_with(&d, first, -ETIMEDOUT, 0, 30000));
	close(door);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), -ECONNREFUSED);
	duo_close(&d);
	unsetenv("HEDDLE_CONNECT_TIMEOUT");
	hd_config_load();
}

/* A process that stands still once it has knocked with this socket, or stands at this door; the test has the socket as well. */
static pid_t process_with(int sock, const struct hd_shm_advert *knocks)
{
	struct sockaddr_un sa;
	socklen_t len;
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (knocks) {
			close(door_socket(knocks, &sa, &len));
			if (connect(sock, (struct sockaddr *)&sa, len))
				_exit(1);
		} else if (listen(sock, 5)) {
			_exit(1);
		}
		raise(SIGSTOP);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void kill_it(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void who_dies_at_the_door_is_not_waited_for(void **state)
{
	uint64_t end;
	struct duo d;

	duo_nodes(&d);
	for (int reaped = 0; reaped < 2; reaped++) {
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		pid_t pid = process_with(sock, &d.advert);

		if (reaped)
			kill_it(pid);
		duo_turns(&d, 20);
		assert_int_equal(d.port[1]->guest_count, !reaped);
		if (!reaped)
			kill_it(pid);
		end = hd_now_ns() + 3 * HD_NS_PER_S;
		while (d.port[1]->guest_count && hd_now_ns() < end)
			duo_turns(&d, 10);
		assert_int_equal(d.port[1]->guest_count, 0);
		close(sock);
	}
	duo_join(&d);
	duo_close(&d);
}

static void a_door_whose_process_dies_is_not_waited_for(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end;
	struct duo d;
	int door;
	pid_t pid;

	duo_nodes(&d);
	door = false_door(&advert, 5);
	pid = process_with(door, NULL);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
	duo_turns(&d, 20);
	assert_false(end->closed);
	kill_it(pid);
	assert_true(ends_with(&d, end, -ESRCH, 0, 30000));
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), -ESRCH);
	close(door);
	duo_close(&d);
}

/* The queue is full for a while: the link comes about all the same. */
static void a_door_that_opens_late_is_waited_for(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end, *first;
	struct duo d;
	int door, sock;

	duo_nodes(&d);
	door = false_door(&advert, 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &first), 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
	duo_turns(&d, 10);
	assert_int_equal(hd_shm_link_of(end->link)->state, HD_SHM_KNOCKING);
	close(accept(door, NULL, NULL));
	for (int i = 0; i < 500 && hd_shm_link_of(end->link)->state == HD_SHM_KNOCKING; i++) {
		duo_turns(&d, 10);
		usleep(1000);
	}
	sock = accept(door, NULL, NULL);
	assert_int_equal(answer(&d, sock), 1);
	assert_int_equal(first->err, -ECONNRESET);
	close(sock);
	close(door);
	assert_true(ends_with(&d, end, -ECONNRESET, 0, 30000));
	duo_close(&d);
}

/* Let `more` descriptors be opened, or as many as at first. */
static void limit_descriptors(int more)
{
	static struct rlimit first;
	struct rlimit now;

	if (!first.rlim_cur)
		getrlimit(RLIMIT_NOFILE, &first);
	now = first;
	if (more >= 0)
		for (now.rlim_cur = 0; fcntl((int)now.rlim_cur, F_GETFD) >= 0 || more-- > 0;)
			now.rlim_cur++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

/*
 * With each number of descriptors that is too small no link comes about, nothing stays open, and later it
 * works.
 */
static void a_lack_of_descriptors_is_survived(void **state)
{
	struct duo d;
	int before, failed = 0;

	duo_nodes(&d);
	before = open_descriptors();
	for (int more = 0; more < 12; more++) {
		struct rig_end *end;
		int rc;

		limit_descriptors(more);
		rc = rig_connect(&d.port[0]->base, &d.advert, sizeof(d.advert), &end);
		for (int i = 0; !rc && i < 50 && !end->was_down && !end->greeted; i++) {
			duo_turns(&d, 10);
			usleep(1000);
		}
		limit_descriptors(-1);
		if (rc)
			assert_int_equal(rc, -EMFILE);
		failed += rc || !end->greeted;
		if (!rc)
			rig_end_close(end, -ECONNABORTED);
		for (int i = 0; i < 200 && open_descriptors() != before; i++) {
			duo_turns(&d, 10);
			usleep(1000);
		}
		assert_int_equal(open_descriptors(), before);
	}
	assert_in_range(failed, 2, 11);
	duo_join(&d);
	duo_close(&d);
}

/* ---- in the ring ---- */

/* Node 1 has been hit by what node 0 has written, and goes on living. */
static void hit(struct duo *d, struct rig_end *victim)
{
	duo_turns(d, 3);
	assert_true(victim->was_down);
	assert_int_equal(victim->err, -EPROTO);
	duo_turns(d, 10);
	assert_true(d->end[0]->closed && d->end[1]->closed);
	d->node[0]->complaint[0] = d->node[1]->complaint[0] = '\0';
	duo_join(d);
	duo_close(d);
}

static void publish(struct hd_shm_link *l, uint32_t len, uint8_t kind)
{
	struct hd_shm_slot *slot = hd_shm_tx_slot(&l->tx);

	slot->len = len;
	slot->pkt = (struct hd_pkt){ .kind = kind };
	hd_shm_tx_publish(&l->tx, slot);
}

static void impossible_lengths_end_the_link(void **state)
{
	static const uint32_t lengths[] = { HD_FRAME_MAX + 1, INT32_MAX, UINT32_MAX, HD_SHM_MORE,
					    HD_SHM_MORE | 30 };

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct duo d;

		duo_open(&d);
		publish(d.link[0], lengths[i], HD_PKT_EAGER);
		hit(&d, d.end[1]);
	}
}

static void kinds_that_nobody_sends_end_the_link(void **state)
{
	static const uint8_t kinds[] = { HD_SHM_PKT_MARK + 1, 0xff };

	for (unsigned i = 0; i < sizeof(kinds); i++)
		for (uint32_t len = 0; len < 20000; len = len * 19 + 1) {
			struct duo d;

			duo_open(&d);
			publish(d.link[0], len, kinds[i]);
			hit(&d, d.end[1]);
		}
}

static void impossible_read_positions_end_the_link(void **state)
{
	struct hd_pkt pkt = { .kind = HD_PKT_EAGER };
	struct duo d;

	for (int bulk = 0; bulk < 2; bulk++) {
		static uint8_t payload[100000];
		int rc = 0;

		duo_open(&d);
		atomic_store(&d.link[1]->own->read, bulk ? UINT64_C(1) << 63 : 7000);
		for (int i = 0; i < 2000 && !rc; i++)
			rc = d.link[0]->base.ops->send(&d.link[0]->base, &pkt, payload,
						       bulk ? sizeof(payload) : 8);
		assert_int_equal(rc, -ENOTCONN);
		assert_true(d.end[0]->was_down);
		hit(&d, d.end[0]);
	}
}

static void garbage_on_the_socket_ends_the_link(void **state)
{
	struct duo d;

	duo_open(&d);
	assert_int_equal(send(d.link[0]->sock.fd, "hello", 5, 0), 5);
	hit(&d, d.end[1]);
}

/* Whatever a peer writes into the memory: the victim lives on, and its other links too. */
static void random_memory_does_no_harm(void **state)
{
	uint64_t random = hd_now_ns();

	print_message("# seed %#llx\n", (unsigned long long)random);
	for (int round = 0; round < 60; round++) {
		struct rig_plan plan = { .packets = 200, .most = 3000, .how = RIG_SEND | RIG_PUT };
		struct duo d;
		uint8_t *mem;

		duo_open(&d);
		mem = (uint8_t *)d.link[0]->mem;
		d.end[0]->plan = plan;
		for (int i = 0; i < 30; i++) {
			size_t at =
				rig_between(&random, 0, round % 3 ? sizeof(struct hd_shm_mem) - 9 : 0x1000);

			if (round % 3 == 1)
				at = offsetof(struct hd_shm_mem, slot) +
				     at % sizeof(d.link[0]->mem->slot[0]) / 64 * 64 + at % 8;
			rig_fill(mem + at, 0, rig_between(&random, 1, 8), random);
			duo_turns(&d, 1);
			if (d.end[0]->closed || d.end[1]->closed)
				break;
		}
		d.node[0]->complaint[0] = d.node[1]->complaint[0] = '\0';
		rig_end_close(d.end[0], -ECONNABORTED);
		duo_turns(&d, 300);
		assert_true(d.end[0]->closed && d.end[1]->closed);
		d.node[0]->complaint[0] = d.node[1]->complaint[0] = '\0';
		duo_join(&d);
		duo_close(&d);
	}
}

/* ---- idle peers ---- */

#define IDLE 40

static void idle_links_cool_down_and_are_still_heard(void **state)
{
	const struct rig_plan plan = { .packets = 1, .least = 8, .most = 8, .how = RIG_SEND };
	struct rig_end *end[IDLE];
	struct duo d;

	duo_nodes(&d);
	for (int i = 0; i < IDLE; i++) {
		duo_join(&d);
		end[i] = d.end[0];
	}
	duo_turns(&d, 10000);
	assert_int_equal(d.port[1]->hot_count, 0);
	assert_int_equal(d.port[1]->cold_count, IDLE);
	for (int i = 0; i < IDLE; i++) {
		uint64_t before = end[i]->other->rx;

		end[i]->plan = plan;
		rig_poll(d.node[0]);
		for (int turns = 0; turns < IDLE && end[i]->other->rx == before; turns++)
			rig_poll(d.node[1]);
		assert_int_equal(end[i]->other->rx, before + 1);
		assert_true(hd_shm_link_of(end[i]->link)->hot);
	}
	assert_in_range(d.port[1]->hot_count, 1, IDLE);
	duo_turns(&d, 10000);
	assert_int_equal(d.port[0]->hot_count + d.port[1]->hot_count, 0);
	for (int i = 0; i < IDLE; i += 2)
		rig_end_close(end[i], -ECONNABORTED);
	duo_turns(&d, 100);
	assert_int_equal(d.port[1]->live, IDLE / 2);
	duo_close(&d);
}

static bool was_woken(struct hd_node *node)
{
	uint64_t n;

	return read(node->wake_fd, &n, sizeof(n)) == sizeof(n);
}

/* A sender that sleeps because the ring is full is woken when there is room again, and not before. */
static void room_wakes_a_sender(void **state)
{
	for (uint32_t len = 8; len <= 60008; len += 60000) {
		struct duo d;

		duo_open(&d);
		d.end[0]->plan = (struct rig_plan){
			.packets = UINT64_MAX, .least = len, .most = len, .how = RIG_SEND
		};
		while (!d.end[0]->again)
			rig_poll(d.node[0]);
		assert_false(rig_arm(d.node[0]));
		assert_false(was_woken(d.node[0]));
		for (int i = 0; i < 40; i++)
			hd_shm_link_poll(d.link[1]);
		assert_true(was_woken(d.node[0]));
		rig_disarm(d.node[0]);
		d.end[0]->plan.packets = 10;
		duo_turns(&d, 100);
		assert_int_equal(d.end[1]->rx, d.end[0]->tx);
		duo_close(&d);
	}
}

/* It has found the ring full and then thought better of it: that must not keep its node awake. */
static void who_gave_up_sending_can_sleep(void **state)
{
	struct duo d;
	int there = 0;

	duo_open(&d);
	d.end[0]->plan =
		(struct rig_plan){ .packets = UINT64_MAX, .least = 60000, .most = 60000, .how = RIG_SEND };
	while (!d.end[0]->again)
		rig_poll(d.node[0]);
	d.end[0]->plan.packets = 0;
	duo_turns(&d, 100);
	for (int i = 0; i < 10; i++) {
		there += rig_arm(d.node[0]);
		rig_disarm(d.node[0]);
	}
	assert_in_range(there, 0, 1);
	duo_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_lies_is_sent_away),
		cmocka_unit_test(who_is_not_known_is_sent_away),
		cmocka_unit_test(another_user_is_sent_away),
		cmocka_unit_test(another_users_door_is_not_entered),
		cmocka_unit_test(who_does_not_go_on_is_sent_away),
		cmocka_unit_test(a_silent_crowd_keeps_nobody_out_for_long),
		cmocka_unit_test(a_door_that_lies_ends_the_link),
		cmocka_unit_test(a_door_that_does_not_open_ends_the_link_in_time),
		cmocka_unit_test(who_dies_at_the_door_is_not_waited_for),
		cmocka_unit_test(a_door_whose_process_dies_is_not_waited_for),
		cmocka_unit_test(a_door_that_opens_late_is_waited_for),
		cmocka_unit_test(a_lack_of_descriptors_is_survived),
		cmocka_unit_test(impossible_lengths_end_the_link),
		cmocka_unit_test(kinds_that_nobody_sends_end_the_link),
		cmocka_unit_test(impossible_read_positions_end_the_link),
		cmocka_unit_test(garbage_on_the_socket_ends_the_link),
		cmocka_unit_test(random_memory_does_no_harm),
		cmocka_unit_test(idle_links_cool_down_and_are_still_heard),
		cmocka_unit_test(room_wakes_a_sender),
		cmocka_unit_test(who_gave_up_sending_can_sleep),
	};

	setenv("HEDDLE_LOG", "error", 0);
	return cmocka_run_group_tests_name("shm_peer", tests, NULL, NULL);
}
