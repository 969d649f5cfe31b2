/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See key_file.h. */
#include "base/key_file.h"

#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "heddle-key 1 "
#define HEAD_LEN (sizeof(HEAD) - 1)
#define LINE_LEN (HEAD_LEN + 2 * HD_KEY_SIZE)

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int key_parse(const char *line, uint8_t key[HD_KEY_SIZE])
{
	if (memcmp(line, HEAD, HEAD_LEN) != 0)
		return -EBADMSG;
	for (int i = 0; i < HD_KEY_SIZE; i++) {
		int high = hex_value(line[HEAD_LEN + 2 * (size_t)i]);
		int low = hex_value(line[HEAD_LEN + 2 * (size_t)i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

/* Whose is it, and who else may open it? */
static int key_file_check(int fd, const char **why)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		*why = "it is not a regular file: name one that `heddle key` has made";
		return -EACCES;
	}
	if (st.st_uid != geteuid()) {
		*why = "it belongs to another user: give the user of this process a copy of its own";
		return -EACCES;
	}
	if (st.st_mode & 077) {
		*why = "others may open it: chmod 600";
		return -EACCES;
	}
	return 0;
}

static int key_file_load(int fd, uint8_t key[HD_KEY_SIZE], const char **why)
{
	char line[LINE_LEN + 2];
	ssize_t n;
	int rc = key_file_check(fd, why);

	if (rc)
		return rc;
	n = read(fd, line, sizeof(line));
	if (n < 0)
		return -errno;
	rc = n == LINE_LEN || (n == LINE_LEN + 1 && line[LINE_LEN] == '\n') ? key_parse(line, key) : -EBADMSG;
	explicit_bzero(line, sizeof(line));
	if (rc)
		*why = "there is no key in it: make one with `heddle key`";
	return rc;
}

int hd_key_file_read(const char *path, uint8_t key[HD_KEY_SIZE], const char **why)
{
	const char *ignored;
	int fd, rc;

	why = why ? why : &ignored;
	*why = "";
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		rc = -errno;
		*why = rc == -ENOENT || rc == -ENOTDIR
			       ? "it is not there: make it with `heddle key`, once, and copy it to each host"
		       : rc == -EACCES
			       ? "the user of this process may not open it: give him a copy of his own"
		       : rc == -ELOOP || rc == -ENAMETOOLONG
			       ? "it cannot be opened by that name: name one that `heddle key` has made"
			       : "";
		return rc;
	}
	rc = key_file_load(fd, key, why);
	close(fd);
	return rc;
}

int hd_key_file_make(const char *path)
{
	uint8_t key[HD_KEY_SIZE];
	char line[LINE_LEN + 2];
	size_t n = HEAD_LEN;
	int fd, rc = 0;

	if (hd_random(key, sizeof(key)))
		return -EIO;
	memcpy(line, HEAD, HEAD_LEN);
	for (int i = 0; i < HD_KEY_SIZE; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%02x", key[i]);
	line[n++] = '\n';
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, line, n) != (ssize_t)n || fsync(fd) < 0)
		rc = errno ? -errno : -EIO;
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (rc)
		unlink(path);
	explicit_bzero(line, sizeof(line));
	explicit_bzero(key, sizeof(key));
	return rc;
}
