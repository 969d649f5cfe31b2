/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/key_file.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/heddle-key-XXXXXX";
static char path[64];

static int setup(void **state)
{
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static void what_is_made_is_read(void **state)
{
	uint8_t key[HD_KEY_SIZE], again[HD_KEY_SIZE], zero[HD_KEY_SIZE] = { 0 };
	struct stat st;

	assert_int_equal(hd_key_file_make(path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(hd_key_file_read(path, key, NULL), 0);
	assert_int_equal(hd_key_file_read(path, again, NULL), 0);
	assert_memory_equal(key, again, sizeof(key));
	assert_memory_not_equal(key, zero, sizeof(key));
}

static void two_files_have_two_keys(void **state)
{
	uint8_t one[HD_KEY_SIZE], other[HD_KEY_SIZE];

	assert_int_equal(hd_key_file_make(path), 0);
	assert_int_equal(hd_key_file_read(path, one, NULL), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(hd_key_file_make(path), 0);
	assert_int_equal(hd_key_file_read(path, other, NULL), 0);
	assert_memory_not_equal(one, other, sizeof(one));
}

static void a_key_is_never_written_over(void **state)
{
	uint8_t key[HD_KEY_SIZE], after[HD_KEY_SIZE];

	assert_int_equal(hd_key_file_make(path), 0);
	assert_int_equal(hd_key_file_read(path, key, NULL), 0);
	assert_int_equal(hd_key_file_make(path), -EEXIST);
	assert_int_equal(hd_key_file_read(path, after, NULL), 0);
	assert_memory_equal(key, after, sizeof(key));
}

static void what_others_may_open_is_refused(void **state)
{
	static const mode_t modes[] = { 0640, 0604, 0620, 0601, 0644, 0666 };
	uint8_t key[HD_KEY_SIZE];
	const char *why;

	assert_int_equal(hd_key_file_make(path), 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_int_equal(hd_key_file_read(path, key, &why), -EACCES);
		assert_non_null(strstr(why, "chmod 600"));
	}
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(hd_key_file_read(path, key, NULL), 0);
}

static void another_users_is_refused(void **state)
{
	uint8_t key[HD_KEY_SIZE];

	assert_int_equal(hd_key_file_make(path), 0);
	skip_unless(geteuid() == 0, "run as root: it gives the file to somebody else");
	assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
	assert_int_equal(hd_key_file_read(path, key, NULL), -EACCES);
}

static void no_file_and_no_key(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"heddle-key 1 0123\n",
		"heddle-key 2 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n",
		"heddle-key 1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g\n",
		"heddle-key 1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\n",
		"heddle-key 1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\nx",
	};
	uint8_t key[HD_KEY_SIZE];

	assert_int_equal(hd_key_file_read(path, key, NULL), -ENOENT);
	assert_int_equal(hd_key_file_read(folder, key, NULL), -EACCES);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(fd);
		assert_int_equal(hd_key_file_read(path, key, NULL), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_made_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(two_files_have_two_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(a_key_is_never_written_over, setup, teardown),
		cmocka_unit_test_setup_teardown(what_others_may_open_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(another_users_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(no_file_and_no_key, setup, teardown),
	};

	return cmocka_run_group_tests_name("key_file", tests, NULL, NULL);
}
