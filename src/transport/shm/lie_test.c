/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Records that are not what they should be: from who asks at our join socket, and from a
 * join socket at which we ask.
 */
#include "base/config.h"
#include "skip.h"
#include "transport/shm_duo.h"
#include "transport/shm_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* ---- a hand-made peer ---- */

enum {
	PAGE,
	WAKE,
	MEM
};

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
		replace(r, PAGE, record_page(size, 0, HD_PAGE_MAGIC, &r->hello.id));
		break;
	case PAGE_WRITABLE:
		replace(r, PAGE, record_page(size, SIZE_SEALS, HD_PAGE_MAGIC, &r->hello.id));
		break;
	case PAGE_SHORT:
		replace(r, PAGE, record_page(4096, seals, HD_PAGE_MAGIC, &r->hello.id));
		break;
	case PAGE_MAGIC:
		replace(r, PAGE, record_page(size, seals, 1, &r->hello.id));
		break;
	case PAGE_OF_ANOTHER:
		replace(r, PAGE, record_page(size, seals, HD_PAGE_MAGIC, &other));
		break;
	case WAKE_BLOCKS:
		replace(r, WAKE, eventfd(0, EFD_CLOEXEC));
		break;
	case WAKE_IS_A_PIPE:
		replace(r, WAKE, a_pipe());
		break;
	case WAKE_IS_A_FILE:
		replace(r, WAKE, record_memfd(4096, 0));
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
		replace(r, MEM, record_memory(size, 0, HD_SHM_MAGIC));
		break;
	case MEM_SHORT:
		replace(r, MEM, record_memory(size - 4096, SIZE_SEALS, HD_SHM_MAGIC));
		break;
	case MEM_LONG:
		replace(r, MEM, record_memory(size + 4096, SIZE_SEALS, HD_SHM_MAGIC));
		break;
	case MEM_MAGIC:
		replace(r, MEM, record_memory(size, SIZE_SEALS, 7));
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

/* ---- at the join socket ---- */

static void who_lies_is_sent_away(void **state)
{
	struct duo d;
	int before;

	duo_nodes(&d);
	before = open_descriptors();
	for (enum lie lie = NOTHING; lie < LIES; lie++) {
		struct record r = record_good(&d.advert, HD_SHM_JOIN);
		int sock = join_request(&d.advert);

		spoil(&r, lie);
		record_send(sock, &r);
		record_close(&r);
		if (join_answer(&d, sock) != (lie == NOTHING))
			fail_msg("lie %d", lie);
		close(sock);
		duo_turns(&d, 20);
		assert_int_equal(d.port[1]->pending_join_count, 0);
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
	r = record_good(&d.advert, HD_SHM_JOIN);
	sock = join_request(&d.advert);
	record_send(sock, &r);
	record_close(&r);
	assert_int_equal(join_answer(&d, sock), 0);
	close(sock);
	duo_close(&d);
}

/* Needs to be root, to be somebody else for a moment: who connects is known by what it was then. */
static void another_user_is_sent_away(void **state)
{
	struct duo d;
	struct record r;
	int sock;

	skip_unless(geteuid() == 0, "run as root: only root can be another user");
	duo_nodes(&d);
	r = record_good(&d.advert, HD_SHM_JOIN);
	assert_int_equal(seteuid(65534), 0);
	sock = join_request(&d.advert);
	assert_int_equal(seteuid(0), 0);
	duo_turns(&d, 20);
	(void)send(sock, &r.hello, r.len, MSG_NOSIGNAL);
	record_close(&r);
	assert_int_equal(join_answer(&d, sock), 0);
	assert_int_equal(d.port[1]->pending_join_count, 0);
	close(sock);
	duo_close(&d);
}

static void another_users_join_socket_is_not_used(void **state)
{
	struct hd_shm_advert advert;
	struct rig_end *end;
	struct duo d;
	int door;

	skip_unless(geteuid() == 0, "run as root: only root can be another user");
	duo_nodes(&d);
	assert_int_equal(seteuid(65534), 0);
	door = join_false(&advert, 5);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), -EACCES);
	close(door);
	duo_close(&d);
}

/* ---- at a join socket that is not what it should be ---- */

static int join_error(enum lie lie)
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

static void a_join_socket_that_lies_ends_the_link(void **state)
{
	struct hd_shm_advert advert;
	struct duo d;
	int door, before;

	duo_nodes(&d);
	door = join_false(&advert, 5);
	before = open_descriptors();
	for (enum lie lie = NOTHING; lie < LIES_OF_ALL; lie++) {
		struct record r = record_good(&advert, HD_SHM_WELCOME);
		struct rig_end *end;
		int sock;

		assert_int_equal(rig_connect(&d.port[0]->base, &advert, sizeof(advert), &end), 0);
		sock = accept(door, NULL, NULL);
		assert_int_equal(join_answer(&d, sock), 1); /* JOIN */
		spoil(&r, lie);
		record_send(sock, &r);
		record_close(&r);
		if (join_answer(&d, sock) != (lie == NOTHING) || end->up != (lie == NOTHING))
			fail_msg("lie %d", lie);
		rig_end_close(end, -ECONNABORTED);
		duo_turns(&d, 5);
		assert_true(end->closed);
		assert_int_equal(end->err, join_error(lie));
		close(sock);
		assert_int_equal(open_descriptors(), before);
	}
	close(door);
	duo_close(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_lies_is_sent_away),
		cmocka_unit_test(who_is_not_known_is_sent_away),
		cmocka_unit_test(another_user_is_sent_away),
		cmocka_unit_test(another_users_join_socket_is_not_used),
		cmocka_unit_test(a_join_socket_that_lies_ends_the_link),
	};

	setenv("HEDDLE_LOG", "error", 0);
	return cmocka_run_group_tests_name("shm_lie", tests, NULL, NULL);
}
