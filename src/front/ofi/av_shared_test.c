/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* The table of shared address vectors, and what others may write into it. */
#include "front/ofi/av_shared.h"
#include "said.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Where things lie: av_shared.c. */
#define AT_CAPACITY 12
#define AT_USED 288
#define AT_LOWEST 292
#define AT_KEYED 296
#define AT_KEYS 4096
#define KEY_SIZE 320
#define AT_ENTRY (6 * 4096)

static char name[64];

static int fresh_name(void **state)
{
	static int n;

	snprintf(name, sizeof(name), "test-%d-%d", (int)getpid(), n++);
	return 0;
}

static struct hd_fi_table *open_as(bool read_only)
{
	struct hd_fi_table *t;

	assert_int_equal(
		hd_fi_table_open(&(struct hd_fi_table_attr){ .name = name, .read_only = read_only }, &t), 0);
	return t;
}

static union hd_fi_addr addr_of(uint16_t port)
{
	union hd_fi_addr a = { .in = { .sin_family = AF_INET, .sin_port = htons(port) } };

	return a;
}

static void put(struct hd_fi_table *t, uint16_t port, int64_t at)
{
	union hd_fi_addr a = addr_of(port);

	assert_int_equal(hd_fi_table_insert(t, &a, 0), at);
}

static uint16_t port_at(const struct hd_fi_table *t, size_t index)
{
	union hd_fi_addr a = { 0 };
	uint32_t key;

	return hd_fi_table_get(t, index, &a, &key) & 1 ? ntohs(a.in.sin_port) : 0;
}

/* The table as its other users see it: they may write anything. */
static unsigned char *as_another(void)
{
	unsigned char *at = MAP_FAILED;
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)) && at == MAP_FAILED) {
		char target[64] = "";

		if (readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1) > 0 &&
		    strstr(target, "memfd:heddle-av"))
			at = mmap(NULL, 2 * AT_ENTRY, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(e->d_name), 0);
	}
	closedir(d);
	assert_true(at != MAP_FAILED);
	return at;
}

static void write32(unsigned char *at, size_t where, uint32_t value)
{
	memcpy(at + where, &value, sizeof(value));
}

static void two_see_the_same(void **state)
{
	struct hd_fi_table *a = open_as(false), *b = open_as(false), *r = open_as(true);
	uint64_t version = hd_fi_table_version(b);
	union hd_fi_addr addr = addr_of(1);

	put(a, 1000, 0);
	put(b, 1001, 1);
	put(a, 1002, 2);
	assert_true(hd_fi_table_version(b) != version);
	assert_int_equal(hd_fi_table_used(b), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(port_at(r, i), 1000 + i);
	assert_int_equal(hd_fi_table_remove(b, 1), 0);
	assert_int_equal(hd_fi_table_remove(a, 1), -FI_EINVAL);
	assert_int_equal(port_at(a, 1), 0);
	put(a, 1003, 1);
	assert_int_equal(hd_fi_table_insert(r, &addr, 0), -FI_EACCES);
	assert_int_equal(hd_fi_table_remove(r, 0), -FI_EACCES);
	for (size_t i = 0; i < 3; i++) { /* programs read it */
		assert_true(((fi_addr_t *)hd_fi_table_map_addr(b))[i] == i);
		assert_true(((fi_addr_t *)hd_fi_table_map_addr(r))[i] == i);
	}
	hd_fi_table_close(a); /* who made it */
	assert_int_equal(port_at(b, 1), 1003);
	hd_fi_table_close(b);
	hd_fi_table_close(r);
}

static void the_last_one_takes_it_along(void **state)
{
	const struct hd_fi_table_attr reader = { .name = name, .read_only = true };
	struct hd_fi_table *t = open_as(false), *none;

	put(t, 1000, 0);
	hd_fi_table_close(t);
	said_begin();
	assert_int_equal(hd_fi_table_open(&reader, &none), -FI_ENOENT);
	said_end();
	assert_true(said("cannot open the shared address vector", "opened without FI_READ first"));
	t = open_as(false);
	assert_int_equal(hd_fi_table_used(t), 0);
	hd_fi_table_close(t);
}

/*
 * Counts and hints beyond the table, generations that never stand still: nothing is
 * read or written outside.
 */
static void nonsense_is_survived(void **state)
{
	struct hd_fi_table *t = open_as(false);
	unsigned char *other = as_another();
	union hd_fi_addr addr = addr_of(7);
	size_t used;

	put(t, 1000, 0);
	write32(other, AT_USED, UINT32_MAX);
	used = hd_fi_table_used(t);
	assert_true(used >= 1 && used <= 1u << 24);
	assert_int_equal(port_at(t, used - 1), 0);
	write32(other, AT_LOWEST, UINT32_MAX);
	assert_int_equal(hd_fi_table_insert(t, &addr, 0), -FI_ENOSPC);
	assert_int_equal(hd_fi_table_remove(t, UINT64_MAX), -FI_EINVAL);
	write32(other, AT_LOWEST, 0);
	write32(other, AT_ENTRY, UINT32_MAX); /* odd: the next change wraps */
	assert_int_equal(hd_fi_table_remove(t, 0), 0);
	write32(other, AT_USED, 0);
	put(t, 1001, 0);
	assert_int_equal(port_at(t, 0), 1001);
	munmap(other, 2 * AT_ENTRY);
	hd_fi_table_close(t);
}

/* One whose size and head disagree is not believed: the newcomer makes another. */
static void a_broken_table_is_not_joined(void **state)
{
	struct hd_fi_table *t = open_as(false), *other;
	unsigned char *raw = as_another();

	put(t, 1000, 0);
	write32(raw, AT_CAPACITY, 1u << 23);
	other = open_as(false);
	assert_int_equal(hd_fi_table_used(other), 0);
	munmap(raw, 2 * AT_ENTRY);
	hd_fi_table_close(other);
	hd_fi_table_close(t);
}

/* Insertions of several processes at once: every address once, none lost. */
static void writers_take_turns(void **state)
{
	enum {
		EACH = 200,
		WRITERS = 4
	};
	struct hd_fi_table *t = open_as(false);
	bool seen[EACH * WRITERS] = { false };

	for (int w = 0; w < WRITERS; w++)
		if (!fork()) {
			struct hd_fi_table *mine;
			bool good = !hd_fi_table_open(&(struct hd_fi_table_attr){ .name = name }, &mine);

			for (int i = 0; i < EACH && good; i++) {
				union hd_fi_addr a = addr_of((uint16_t)(1000 + w * EACH + i));

				good = hd_fi_table_insert(mine, &a, 0) >= 0;
			}
			_exit(good ? 0 : 1);
		}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		wait(&status);
		assert_int_equal(status, 0);
	}
	assert_int_equal(hd_fi_table_used(t), EACH * WRITERS);
	for (size_t i = 0; i < EACH * WRITERS; i++) {
		assert_in_range(port_at(t, i), 1000, 1000 + EACH * WRITERS - 1);
		assert_false(seen[port_at(t, i) - 1000]);
		seen[port_at(t, i) - 1000] = true;
	}
	hd_fi_table_close(t);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static struct hd_fi_table *open_keyed(bool read_only)
{
	const struct hd_fi_table_attr attr = { .name = name, .read_only = read_only, .keyed = true };
	struct hd_fi_table *t;

	assert_int_equal(hd_fi_table_open(&attr, &t), 0);
	return t;
}

static int key_put(struct hd_fi_table *t, const char *text)
{
	return hd_fi_table_key_insert(t, text, strlen(text));
}

/* "", where there is none; with a '-' before it when it has been removed. */
static const char *key_at(const struct hd_fi_table *t, uint32_t slot)
{
	static char text[HD_FI_AUTH_MAX + 2];
	struct hd_fi_table_key k;

	if (!(hd_fi_table_key_get(t, slot, &k) & 1))
		return "";
	snprintf(text, sizeof(text), "%s%.*s", k.live ? "" : "-", (int)k.size, (const char *)k.bytes);
	return text;
}

static uint32_t key_gen(const struct hd_fi_table *t, uint32_t slot)
{
	struct hd_fi_table_key k;

	return hd_fi_table_key_get(t, slot, &k);
}

/*
 * All see the same; one that an address was inserted with stays when it is removed, until that is
 * gone and its slot is needed.
 */
static void keys_are_shared(void **state)
{
	struct hd_fi_table *a = open_keyed(false), *b = open_keyed(false), *r = open_keyed(true), *none;
	uint64_t version = hd_fi_table_version(b);
	union hd_fi_addr addr = addr_of(9), got;
	char text[16];
	uint32_t key;

	assert_int_equal(hd_fi_table_open(&(struct hd_fi_table_attr){ .name = name }, &none), -FI_EINVAL);
	assert_int_equal(key_put(a, "one"), 0);
	assert_int_equal(key_put(b, "two"), 1);
	assert_int_equal(key_put(b, "one"), 0);
	assert_int_equal(key_put(r, "three"), -FI_EACCES);
	assert_int_equal(hd_fi_table_key_remove(r, 0), -FI_EACCES);
	assert_true(hd_fi_table_version(b) != version);
	assert_string_equal(key_at(r, 0), "one");
	assert_string_equal(key_at(r, 1), "two");
	assert_string_equal(key_at(r, 2), "");
	assert_int_equal(hd_fi_table_insert(a, &addr, 2), 0);
	assert_int_equal(hd_fi_table_get(b, 0, &got, &key) & 1, 1);
	assert_int_equal(key, 2);
	assert_int_equal(hd_fi_table_key_remove(b, 0), 0);
	assert_int_equal(hd_fi_table_key_remove(b, 0), -FI_EINVAL);
	assert_int_equal(hd_fi_table_key_remove(b, 1), 0);
	assert_string_equal(key_at(a, 0), "");
	assert_string_equal(key_at(a, 1), "-two");
	for (int i = 0; i < HD_FI_AUTH_KEYS - 1; i++) {
		snprintf(text, sizeof(text), "k%d", i);
		assert_int_equal(key_put(a, text), i ? i + 1 : 0);
	}
	assert_int_equal(key_put(a, "more"), -FI_ENOSPC);
	assert_int_equal(key_put(a, "two"), 1); /* it comes back */
	assert_int_equal(hd_fi_table_key_remove(a, 1), 0);
	assert_int_equal(hd_fi_table_remove(a, 0), 0);
	assert_int_equal(key_put(a, "more"), 1);
	hd_fi_table_close(a);
	hd_fi_table_close(b);
	hd_fi_table_close(r);
}

/* Nobody removes what another holds; one who dies holds nothing. */
static void held_keys_stay(void **state)
{
	struct hd_fi_table *a = open_keyed(false), *b = open_keyed(false), *r = open_keyed(true);
	int ready[2];
	pid_t child;
	char byte;

	assert_int_equal(key_put(a, "one"), 0);
	assert_int_equal(hd_fi_table_key_hold(b, 0, key_gen(b, 0) + 2, true), -FI_EINVAL);
	assert_int_equal(hd_fi_table_key_hold(b, 0, key_gen(b, 0), true), 0);
	assert_int_equal(hd_fi_table_key_hold(r, 0, key_gen(r, 0), true), 0);
	assert_int_equal(hd_fi_table_key_remove(a, 0), -FI_EBUSY);
	assert_int_equal(hd_fi_table_key_hold(b, 0, 0, false), 0);
	assert_int_equal(hd_fi_table_key_remove(a, 0), -FI_EBUSY);
	hd_fi_table_close(r);
	assert_int_equal(hd_fi_table_key_remove(a, 0), 0);
	assert_int_equal(hd_fi_table_key_hold(b, 0, key_gen(b, 0), true), -FI_EINVAL);
	assert_int_equal(key_put(a, "two"), 0);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		struct hd_fi_table *mine = open_keyed(false);

		if (!hd_fi_table_key_hold(mine, 0, key_gen(mine, 0), true) && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(hd_fi_table_key_remove(a, 0), -FI_EBUSY);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(hd_fi_table_key_remove(a, 0), 0);
	close(ready[0]);
	close(ready[1]);
	hd_fi_table_close(a);
	hd_fi_table_close(b);
}

/* Sizes that no key has, and one that never stands still: there is no key. */
static void nonsense_is_no_key(void **state)
{
	struct hd_fi_table *t = open_keyed(false);
	unsigned char *other = as_another();
	const size_t at_size = AT_KEYS + 8;

	assert_int_equal(key_put(t, "one"), 0);
	write32(other, at_size, 0);
	assert_string_equal(key_at(t, 0), "");
	write32(other, at_size, HD_FI_AUTH_MAX + 1);
	assert_string_equal(key_at(t, 0), "");
	assert_int_equal(key_put(t, "two"), 1); /* such a one is not read where keys are compared */
	write32(other, at_size, 3);
	assert_string_equal(key_at(t, 0), "one");
	write32(other, AT_KEYS + KEY_SIZE, 2); /* even */
	assert_string_equal(key_at(t, 1), "");
	munmap(other, 2 * AT_ENTRY);
	hd_fi_table_close(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(two_see_the_same, fresh_name),
		cmocka_unit_test_setup(the_last_one_takes_it_along, fresh_name),
		cmocka_unit_test_setup(nonsense_is_survived, fresh_name),
		cmocka_unit_test_setup(a_broken_table_is_not_joined, fresh_name),
		cmocka_unit_test_setup(writers_take_turns, fresh_name),
		cmocka_unit_test_setup(keys_are_shared, fresh_name),
		cmocka_unit_test_setup(held_keys_stay, fresh_name),
		cmocka_unit_test_setup(nonsense_is_no_key, fresh_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
