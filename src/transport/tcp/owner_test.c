/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Whose a listening socket is, on a kernel that has tcp_diag and on one that has not. Each case in
 * a child, which has not asked yet.
 */
#include "base/proc.h"
#include "base/realm.h"
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool lacking; /* the kernel is to answer as one without tcp_diag */
static int asked;

static bool is_netlink(int fd)
{
	int domain = 0;
	socklen_t size = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK;
}

/* In the place of the C library's. */
ssize_t recv(int fd, void *to, size_t size, int flags)
{
	const struct {
		struct nlmsghdr head;
		struct nlmsgerr why;
	} none = { { .nlmsg_len = sizeof(none), .nlmsg_type = NLMSG_ERROR }, { .error = -ENOENT } };
	ssize_t n = recvfrom(fd, to, size, flags, NULL, NULL);

	if (!is_netlink(fd))
		return n;
	asked++;
	if (!lacking)
		return n;
	memcpy(to, &none, sizeof(none));
	return sizeof(none);
}

static struct sockaddr_in listener(int *fd)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(*fd >= 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(*fd, 1), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &size), 0);
	return at;
}

static uint64_t realm_at(const struct sockaddr_in *at)
{
	return hd_tcp_realm_at(NULL, (const struct sockaddr *)at);
}

/* Mine is mine, nobody's is told as nobody's, and it is asked so often. */
static void ask(bool lacks, int often)
{
	struct sockaddr_in mine, nobodys;
	int fd, gone;

	lacking = lacks;
	nobodys = listener(&gone);
	close(gone);
	mine = listener(&fd);
	for (int i = 0; i < 3; i++)
		if (realm_at(&mine) != hd_realm_of_user(getuid()) || realm_at(&nobodys) != HD_REALM_GONE)
			_exit(1);
	_exit(asked == often || (!lacks && asked == 1) ? 0 : 2); /* this one may be such a kernel */
}

static int in_a_child(bool lacks, int often)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		ask(lacks, often);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Of what is not there in either family. */
static void the_kernel_tells(void **state)
{
	assert_int_equal(in_a_child(false, 9), 0);
}

static void a_kernel_that_cannot_is_asked_once(void **state)
{
	assert_int_equal(in_a_child(true, 1), 0);
}

/*
 * Who has it read again and again gets no answer in the end: the name is nobody's then, and not
 * that of whoever is told as little of.
 */
static void ask_without_end(void)
{
	struct sockaddr_in mine;
	uint64_t realm;
	int fd;

	lacking = true;
	mine = listener(&fd);
	for (int i = 0; i < 100000; i++) {
		realm = realm_at(&mine);
		if (realm != hd_realm_of_user(getuid()))
			_exit(realm == HD_REALM_GONE && i > 2 ? 0 : 1);
	}
	_exit(2);
}

static void the_table_is_not_read_without_end(void **state)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		ask_without_end();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_tells),
		cmocka_unit_test(a_kernel_that_cannot_is_asked_once),
		cmocka_unit_test(the_table_is_not_read_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
