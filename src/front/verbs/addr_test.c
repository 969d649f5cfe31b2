/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Ports, LIDs, GIDs and numbers, and the socket addresses that they stand for;
 * the files that show them.
 */
#include "front/verbs/addr.h"
#include "front/verbs/tree.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *text_of(const struct sockaddr_storage *name)
{
	static char text[80];
	const struct sockaddr_in *in = (const void *)name;

	if (name->ss_family == AF_INET)
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)name)->sin6_addr, text,
			  sizeof(text));
	return text;
}

static struct hv_context context_at(enum hv_device_index index, const char *subnet)
{
	struct hv_context ctx = { .device = &hv_devices[index] };

	setenv("HEDDLE_LID_SUBNET", subnet, 1);
	assert_int_equal(hv_port_load(ctx.device, &ctx.port), 0);
	return ctx;
}

static void lids_are_host_parts(void **state)
{
	struct hv_context ctx = context_at(HV_INFINIBAND, "127.0.0.0/16");
	struct ibv_ah_attr av = { .dlid = 0x0102 };
	struct sockaddr_storage to;

	assert_int_equal(ctx.port.state, IBV_PORT_ACTIVE);
	assert_int_equal(ctx.port.lid, 1);
	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123407, &to), 0);
	assert_string_equal(text_of(&to), "127.0.1.2");
	assert_int_equal(ntohs(((struct sockaddr_in *)(void *)&to)->sin_port), 0x1234);
	assert_int_equal(hd_name_slot((void *)&to), 7);
	assert_int_equal(hv_addr_lid(&ctx, (void *)&to), 0x0102);
	av.dlid = 0;
	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123407, &to), -EINVAL);
	av.dlid = 0xc000; /* multicast */
	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123407, &to), -EINVAL);
}

static void lids_stay_in_their_subnet(void **state)
{
	struct hv_context ctx = context_at(HV_INFINIBAND, "127.0.0.0/24");
	struct ibv_ah_attr av = { .dlid = 0x0102 };
	struct sockaddr_in other = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000105) };
	struct sockaddr_storage to;

	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123407, &to), -EINVAL);
	assert_int_equal(hv_addr_lid(&ctx, (void *)&other), 0);
}

static void a_host_outside_is_down(void **state)
{
	struct hv_context ctx = context_at(HV_INFINIBAND, "203.0.113.0/24");
	struct ibv_ah_attr av = { .dlid = 1 };
	struct sockaddr_storage to;

	assert_int_equal(ctx.port.state, IBV_PORT_DOWN);
	assert_int_equal(ctx.port.lid, 0);
	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123407, &to), -EINVAL);
	ctx = context_at(HV_INFINIBAND, "nonsense"); /* warned of, and the usual taken */
	assert_int_equal(ctx.port.state, IBV_PORT_ACTIVE);
}

static void numbers_that_nobody_has(void **state)
{
	static const uint32_t none[] = { 0, 1, 255, 0xffffff, 0x1000000 };
	struct hv_context ctx = context_at(HV_INFINIBAND, "127.0.0.0/16");
	struct ibv_ah_attr av = { .dlid = 1 };
	struct sockaddr_storage to;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(hv_addr_resolve(&ctx, &av, none[i], &to), -EINVAL);
}

static void gids_hold_addresses(void **state)
{
	static const char *const names[] = { "127.0.0.1", "10.1.2.3", "fd00::7" };

	for (int d = 0; d < HV_DEVICES; d++) {
		struct hv_context ctx = context_at((enum hv_device_index)d, "127.0.0.0/16");

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct ibv_ah_attr av = { .is_global = 1 };
			struct sockaddr_storage to, from = { 0 };
			struct sockaddr_in6 *in6 = (void *)&from;
			struct sockaddr_in *in = (void *)&from;

			if (inet_pton(AF_INET, names[i], &in->sin_addr) == 1)
				in->sin_family = AF_INET;
			else if (inet_pton(AF_INET6, names[i], &in6->sin6_addr) == 1)
				in6->sin6_family = AF_INET6;
			hv_addr_gid(&ctx, (void *)&from, &av.grh.dgid);
			assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123400, &to), 0);
			assert_string_equal(text_of(&to), names[i]);
		}
	}
}

static void ethernet_wants_a_gid(void **state)
{
	struct hv_context ctx = context_at(HV_ETHERNET, "");
	struct ibv_ah_attr av = { .dlid = 1 };
	struct sockaddr_storage to;

	assert_true(ctx.port.gid_count > 0);
	assert_int_equal(ctx.port.lid, 0);
	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123400, &to), -EINVAL);
	av.is_global = 1; /* the zero GID, and a multicast one */
	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123400, &to), -EINVAL);
	av.grh.dgid.raw[0] = 0xff;
	assert_int_equal(hv_addr_resolve(&ctx, &av, 0x123400, &to), -EINVAL);
}

static const char *group_of(const char *gid_text, int family, uint64_t *word)
{
	struct sockaddr_storage to;
	union ibv_gid gid;

	assert_int_equal(inet_pton(AF_INET6, gid_text, gid.raw), 1);
	if (!hv_addr_group(&gid, family, &to, word))
		return "none";
	assert_int_equal(to.ss_family, family);
	assert_int_equal(((struct sockaddr_in *)(void *)&to)->sin_port, htons(30791));
	return text_of(&to);
}

/*
 * Groups of IP stand for themselves, others for one that is free for private use, and
 * their word tells them apart.
 */
static void multicast_gids_are_groups(void **state)
{
	uint64_t a = 0, b = 0, four = 0, six = 0;

	assert_string_equal(group_of("::ffff:239.1.2.3", AF_INET, &four), "239.1.2.3");
	assert_int_equal(strncmp(group_of("::ffff:239.1.2.3", AF_INET6, &six), "ff18::4844:", 11), 0);
	assert_true(four == six && four);
	assert_string_equal(group_of("ff15::7", AF_INET6, &a), "ff15::7");
	assert_int_equal(strncmp(group_of("ff02::7", AF_INET6, &b), "ff18::4844:", 11), 0);
	assert_true(a != b);
	assert_int_equal(strncmp(group_of("ff12:401b:ffff::ffff:ffff", AF_INET, &b), "239.19", 6), 0);
	assert_string_equal(group_of("fe80::1", AF_INET, &b), "none");
	assert_string_equal(group_of("::ffff:10.0.0.1", AF_INET, &b), "none");
	assert_string_equal(group_of("::", AF_INET6, &b), "none");
}

static void files_show_the_port(void **state)
{
	struct hv_context ctx = context_at(HV_INFINIBAND, "127.0.0.0/16");
	char text[256] = "";

	assert_int_equal(hv_file_read("/sys/class/infiniband/heddle0/ports/1/lid", text, sizeof(text)), 4);
	assert_memory_equal(text, "0x1\n", 4);
	assert_int_equal(hv_file_read("/sys/class/infiniband/heddle0/ports/1/lid", text, 2), 2);
	assert_int_equal(hv_file_read("/sys/class/infiniband/heddle1/ports/1/gids/0", text, sizeof(text)),
			 40);
	assert_int_equal(hv_file_read("/sys/class/infiniband/heddle0/ports/1", text, sizeof(text)), -EISDIR);
	assert_int_equal(hv_file_read("/sys/class/infiniband/heddle0/ports/2/lid", text, sizeof(text)),
			 -ENOENT);
	assert_int_equal(hv_file_read("/sys/class/infiniband/mlx5_0/node_guid", text, sizeof(text)), -ENOENT);
	assert_int_equal(ctx.port.lid, 1);
}

static void files_have_their_kinds(void **state)
{
	static const struct {
		const char *path;
		enum hv_file_kind kind;
	} files[] = {
		{ "/dev/infiniband/heddle0", HV_FILE_DEVICE },
		{ "/dev/infiniband/heddle2", HV_FILE_NONE },
		{ "/dev/infiniband/heddle0/x", HV_FILE_NONE },
		{ "/dev/infiniband", HV_FILE_SHARED_DIR },
		{ "/sys/class/infiniband/", HV_FILE_SHARED_DIR },
		{ "/sys/class/infiniband/heddle1", HV_FILE_DIR },
		{ "/sys/class/infiniband/heddle1/", HV_FILE_DIR },
		{ "/sys/class/infiniband/heddle10", HV_FILE_NONE },
		{ "/sys/class/infiniband/heddle1/node_guid", HV_FILE_PLAIN },
		{ "/sys/class/infiniband/heddle1/ports/1/gids/0", HV_FILE_PLAIN },
		{ "/sys/class/infiniband/heddle1/ports/1/gids/63", HV_FILE_NONE },
		{ "/sys/class/infiniband/heddle1/ports/1/gids/99999999999999999999", HV_FILE_NONE },
		{ "/sys/class/infiniband/heddle1/ports/1/gids/-1", HV_FILE_NONE },
		{ "/sys/class/infiniband/heddle1/ports/1/pkeys/0", HV_FILE_PLAIN },
		{ "/sys/class/infiniband/heddle1/ports/1/pkeys/1", HV_FILE_NONE },
		{ "/sys/class/infiniband_verbs/heddle1/ibdev", HV_FILE_PLAIN },
		{ "/sys/class/infinibandx", HV_FILE_NONE },
		{ "/etc/passwd", HV_FILE_NONE },
		{ "", HV_FILE_NONE },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_int_equal(hv_file_kind(files[i].path), files[i].kind);
}

struct seen {
	int folders, files, wrong;
};

static int look(const char *path, enum hv_file_kind kind, const char *text, void *arg)
{
	struct seen *seen = arg;
	char again[HV_FILE_SIZE];

	seen->wrong += hv_file_kind(path) != kind;
	if (kind == HV_FILE_PLAIN) {
		ssize_t len = hv_file_read(path, again, sizeof(again));

		seen->wrong += len != (ssize_t)strlen(text) || memcmp(again, text, (size_t)len) != 0;
		seen->files++;
	} else {
		seen->folders++;
	}
	return 0;
}

static int stop(const char *path, enum hv_file_kind kind, const char *text, void *arg)
{
	return !strcmp(path, "/sys/class/infiniband/heddle0/ports/1/lid") ? 7 : 0;
}

static void a_walk_finds_all(void **state)
{
	struct seen seen = { 0 };

	assert_int_equal(hv_tree_walk(look, &seen), 0);
	assert_int_equal(seen.wrong, 0);
	assert_true(seen.folders > 20 && seen.files > 40);
	assert_int_equal(hv_tree_walk(stop, NULL), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lids_are_host_parts),	  cmocka_unit_test(lids_stay_in_their_subnet),
		cmocka_unit_test(a_host_outside_is_down), cmocka_unit_test(numbers_that_nobody_has),
		cmocka_unit_test(gids_hold_addresses),	  cmocka_unit_test(ethernet_wants_a_gid),
		cmocka_unit_test(files_show_the_port),	  cmocka_unit_test(files_have_their_kinds),
		cmocka_unit_test(a_walk_finds_all),	  cmocka_unit_test(multicast_gids_are_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
