/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * In a user namespace that has numbers for few users, all others look like one: the kernel says of
 * each that he is the overflow uid. What it says alike of two of them does not make the one the
 * other, nor us, where we have no number ourselves.
 */
#include "attack/attack.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define VICTIM 54322

/* Made before the namespace is entered, since nobody can become another user in it. */
static struct {
	int calls[2];  /* the stranger's */
	int listening; /* the victim's */
	struct sockaddr_storage name;
	bool is_there; /* the namespace */
} made;

static int strangers_socket(void)
{
	int fd;

	if (!attack_as(STRANGER))
		return -1;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	attack_as(0);
	return fd;
}

static bool write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* A namespace in which we have our number and nobody else has any. */
static bool enter_namespace(void)
{
	return !unshare(CLONE_NEWUSER) && write_to("/proc/self/uid_map", "0 0 1") &&
	       write_to("/proc/self/setgroups", "deny") && write_to("/proc/self/gid_map", "0 0 1");
}

static int make(void **state)
{
	if (geteuid() != 0)
		return 0;
	made.calls[0] = strangers_socket();
	made.calls[1] = strangers_socket();
	made.listening = attack_listen(VICTIM, &made.name);
	made.is_there = enter_namespace();
	return 0;
}

static int make_nobody(void **state)
{
	made.is_there = made.is_there && !unshare(CLONE_NEWUSER);
	return attack_setup(state);
}

static void needs_namespace(void)
{
	skip_unless(made.is_there, "run as root, where user namespaces can be made");
}

/* A stranger calls, and says that this name is his. */
static void claim_name(struct attack_scene *s, int fd, const struct sockaddr_storage *name)
{
	const struct hd_pkt hello = { .kind = HD_PKT_HELLO }, use = { .kind = HD_PKT_USE };
	struct sockaddr_storage a;
	struct hd_hello h;

	*s->w = (struct wire){ .node = s->a.node, .fd = fd, .id.word = { 1, 2 } };
	assert_int_equal(hd_ep_name(s->a.ep, AF_INET, &a), 0);
	assert_true(!connect(fd, (struct sockaddr *)&a, sizeof(struct sockaddr_in)) || errno == EINPROGRESS);
	wire_hello(s->w, &h);
	wire_say(s->w, &hello, &h, sizeof(h));
	wire_hear_kind(s->w, HD_PKT_HELLO);
	wire_say(s->w, &use, NULL, 0);
	wire_hear_kind(s->w, HD_PKT_ANNOUNCE);
	attack_announce(s->w, 3, name);
	wire_settle(s->w);
}

static void is_not_taken(struct attack_scene *s, int fd, const struct sockaddr_storage *name)
{
	struct hd_dest *dest;

	assert_int_equal(hd_dest_get(s->a.node, (const struct sockaddr *)name, &dest), 0);
	claim_name(s, fd, name);
	assert_int_not_equal(dest->state, HD_DEST_BOUND);
	hd_dest_put(dest);
}

static void one_unknown_user_is_not_another(void **state)
{
	needs_namespace();
	is_not_taken(*state, made.calls[0], &made.name);
}

static void nor_are_we(void **state)
{
	struct sockaddr_storage name;
	struct side b;

	needs_namespace();
	side_open(&b);
	assert_int_equal(hd_ep_name(b.ep, AF_INET, &name), 0);
	is_not_taken(*state, made.calls[1], &name);
	side_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_unknown_user_is_not_another, attack_setup,
						attack_teardown),
		cmocka_unit_test_setup_teardown(nor_are_we, make_nobody, attack_teardown),
	};

	return cmocka_run_group_tests_name("nobody", tests, make, NULL);
}
