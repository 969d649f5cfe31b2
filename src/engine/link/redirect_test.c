/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Somebody on this host who has not the key stands between a node and whom it calls, and gives the
 * node its own words back (RFC 9257, 4.1): it does not take itself for the other one.
 */
#include "base/config.h"
#include "base/key_file.h"
#include "base/seal.h"
#include "engine/test/test_pair.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct relay {
	int door, near, far;
	struct sockaddr_in name, to;
};

static struct relay relay_open(struct side *s)
{
	struct relay r = { .near = -1, .far = -1, .name.sin_family = AF_INET };
	socklen_t size = sizeof(r.name);
	struct sockaddr_storage name;

	assert_int_equal(hd_ep_name(s->ep, AF_INET, &name), 0);
	memcpy(&r.to, &name, sizeof(r.to));
	r.name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r.door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(r.door >= 0);
	assert_int_equal(bind(r.door, (struct sockaddr *)&r.name, size), 0);
	assert_int_equal(listen(r.door, 8), 0);
	assert_int_equal(getsockname(r.door, (struct sockaddr *)&r.name, &size), 0);
	return r;
}

static void pass(int from, int to)
{
	char buf[4096];
	ssize_t n = recv(from, buf, sizeof(buf), MSG_DONTWAIT);

	if (n > 0)
		assert_int_equal(send(to, buf, (size_t)n, MSG_NOSIGNAL), n);
}

static void relay_run(struct relay *r)
{
	if (r->near < 0) {
		r->near = accept4(r->door, NULL, NULL, SOCK_CLOEXEC);
		if (r->near < 0)
			return;
		r->far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(r->far, (struct sockaddr *)&r->to, sizeof(r->to)), 0);
	}
	pass(r->near, r->far);
	pass(r->far, r->near);
}

static void relay_close(struct relay *r)
{
	close(r->door);
	close(r->near);
	close(r->far);
}

/* A message to this name, and the next completion, which is taken. */
static struct hd_cqe say_to(struct side *s, const void *name, char *what, struct relay *r)
{
	uint64_t end = hd_now_ns() + PATIENCE;
	struct hd_dest *to;
	struct hd_cqe e;

	assert_int_equal(hd_dest_get(s->node, name, &to), 0);
	assert_int_equal(hd_send(s->ep, to, what, 8, 1, 0, what, TAGGED(HD_SEND_COMPLETE)), 0);
	while (!hd_cq_peek(s->cq)) {
		hd_node_poll(s->node);
		relay_run(r);
		assert_true(hd_now_ns() < end);
	}
	e = *hd_cq_peek(s->cq);
	hd_cq_pop(s->cq);
	hd_dest_put(to);
	return e;
}

static void what_comes_back_is_not_from_another(void **state)
{
	char out[8] = "for B", in[8] = "";
	struct side s;
	struct relay r;
	struct hd_cqe e;

	side_open(&s);
	r = relay_open(&s);
	side_post(&s, in, sizeof(in), 1, 0, NULL, in);
	e = say_to(&s, &r.name, out, &r);
	assert_ptr_equal(e.ctx, out);
	assert_int_not_equal(e.err, HD_S_OK);
	assert_string_equal(in, "");
	assert_int_equal(say_to(&s, &r.to, out, &r).err, HD_S_OK); /* we may call ourselves */
	while (!*in)
		hd_node_poll(s.node);
	relay_close(&r);
	side_close(&s);
}

/* Skips all where what seals was not built. */
static bool there_is_a_key(const char *path)
{
	const uint8_t id[HD_SEAL_ID] = { 0 };
	const struct hd_seal_module *module;
	struct hd_sealer *sealer;

	setenv("HEDDLE_KEY_FILE", path, 1);
	hd_config_load();
	if (hd_key_file_make(path) < 0 || hd_sealer_open(id, &module, &sealer) < 0)
		return false;
	module->close(sealer);
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_back_is_not_from_another),
	};
	char folder[] = "/tmp/heddle-redirect.XXXXXX", path[64];
	int rc = 0;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/key", folder);
	if (there_is_a_key(path))
		rc = cmocka_run_group_tests(tests, NULL, NULL);
	else
		print_message("1..0 # SKIP build with OpenSSL 3 and its headers (libssl-dev)\n");
	unlink(path);
	rmdir(folder);
	return rc;
}
