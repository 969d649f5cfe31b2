/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See shared.h. */
#include "base/shared.h"

#include "base/clock.h"
#include "base/memfd.h"
#include "base/proc.h"
#include "base/random.h"
#include "base/realm.h"
#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 5000
#define PREFIX 72
#define TURN_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* A name that somebody has, which may lead anywhere, and the inode of the socket that has it. */
struct claim {
	int pid, fd;
	uint64_t random, socket;
};

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t shared_digest(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return h;
}

static void prefix_of(const struct hd_shared_attr *attr, const char *what, char text[PREFIX])
{
	snprintf(text, PREFIX, "heddle/%s/%.15s/%u/%016" PRIx64 "/", what, attr->kind, (unsigned)geteuid(),
		 shared_digest(attr->name));
}

/* A socket that does nothing but have this abstract name while it is open, or a negative errno. */
static int hold_name(const char *prefix, int memfd, uint64_t random)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = hd_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), len, err;

	if (fd < 0)
		return -errno;
	len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s%d/%d/%016" PRIx64, prefix, getpid(),
		       memfd, random);
	if (!bind(fd, (struct sockaddr *)&un,
		  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

/*
 * The file that a name leads to, if it is a sealed memfd of this user; else -1. `like`: a memfd,
 * which tells on which device those are.
 */
static int claim_open(const struct hd_shared_attr *attr, const struct claim *c, int like, struct stat *st)
{
	char path[64];
	struct stat own;
	int look, fd = -1;

	/* what is only looked at does nothing yet: a device would, or a pipe */
	if (c->pid == getpid())
		snprintf(path, sizeof(path), "/proc/self/fd/%d", c->fd);
	else
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", c->pid, c->fd);
	look = open(path, O_PATH | O_CLOEXEC);
	if (look < 0)
		return -1;
	if (!fstat(like, &own) && !fstat(look, st) && S_ISREG(st->st_mode) && st->st_dev == own.st_dev &&
	    st->st_uid == geteuid()) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", look);
		fd = open(path, (attr->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	}
	close(look);
	if (fd >= 0 &&
	    ((fcntl(fd, F_GET_SEALS) & attr->seals) != attr->seals || !attr->is_it(attr->arg, fd, st))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A line of /proc/net/unix ends with the socket's inode and its name, after '@'. */
static bool claim_read(const char *line, const char *prefix, struct claim *c)
{
	const char *at = strchr(line, '@');

	return at && !strncmp(at + 1, prefix, strlen(prefix)) &&
	       sscanf(at + 1 + strlen(prefix), "%d/%d/%" SCNx64, &c->pid, &c->fd, &c->random) == 3 &&
	       sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64, &c->socket) == 1;
}

/*
 * Is the name that of the process which it leads to, and so of our user as the file is? Anybody may
 * have made a name that leads to what that process has, so that it seems to want its turn for ever.
 */
static bool claim_is_own(const struct claim *c)
{
	return hd_proc_has(c->pid, c->socket);
}

/* The first of those who have it, but `but`: a descriptor, else -1. */
static int shared_find(const struct hd_shared_attr *attr, const char *what, int like, uint64_t but,
		       struct claim *c)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512], prefix[PREFIX];
	struct stat st;
	int fd = -1;

	if (!f)
		return -1;
	prefix_of(attr, what, prefix);
	while (fd < 0 && fgets(line, sizeof(line), f)) {
		if (claim_read(line, prefix, c) && c->random != but)
			fd = claim_open(attr, c, like, &st);
		if (fd >= 0 && !claim_is_own(c)) {
			close(fd);
			fd = -1;
		}
	}
	fclose(f);
	return fd;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/*
 * One who wants to have the turn holds a name, whose memfd has the beginning
 * of the names as its text.
 */
struct turn {
	struct hd_shared_attr attr;
	char prefix[PREFIX];
	uint64_t random;
	int proof, name_fd;
};

static bool turn_is_it(void *arg, int fd, const struct stat *st)
{
	const struct turn *t = arg;
	char text[PREFIX];

	return st->st_size == PREFIX && pread(fd, text, PREFIX, 0) == PREFIX &&
	       !memcmp(text, t->prefix, PREFIX);
}

static int turn_open(struct turn *t, const struct hd_shared_attr *attr)
{
	*t = (struct turn){ .attr = { .kind = attr->kind,
				      .name = attr->name,
				      .read_only = true,
				      .seals = TURN_SEALS,
				      .is_it = turn_is_it,
				      .arg = t },
			    .name_fd = -1 };
	prefix_of(attr, "turn", t->prefix);
	t->proof = memfd_create("heddle-turn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t->proof < 0)
		return hd_memfd_is_refused(errno) ? -EOPNOTSUPP : -errno;
	if (write(t->proof, t->prefix, PREFIX) != PREFIX ||
	    fcntl(t->proof, F_ADD_SEALS, TURN_SEALS | F_SEAL_SEAL) ||
	    hd_random(&t->random, sizeof(t->random))) {
		close(t->proof);
		return -EIO;
	}
	return 0;
}

static void turn_give(struct turn *t)
{
	if (t->name_fd >= 0)
		close(t->name_fd);
	close(t->proof);
}

/*
 * Does anybody else want it, whose name was seen? Twice, as sockets that come and go can hide one
 * from who reads the list.
 */
static bool turn_wanted(struct turn *t, struct claim *c)
{
	int fd = -1;

	for (int i = 0; i < 2 && fd < 0; i++)
		fd = shared_find(&t->attr, "turn", t->proof, t->random, c);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Whoever sees no name but his own has the turn until he gives it back: who comes later sees his.
 * Of those who see each other the one with the lowest number stays, and the others begin anew.
 */
static int turn_take(struct turn *t)
{
	struct claim c;

	for (int ms = 0; ms < PATIENCE_MS; ms++, hd_pause_us(1000)) {
		if (t->name_fd < 0)
			t->name_fd = hold_name(t->prefix, t->proof, t->random);
		if (t->name_fd < 0)
			return t->name_fd;
		if (!turn_wanted(t, &c))
			return 0;
		if (c.random < t->random) {
			close(t->name_fd);
			t->name_fd = -1;
		}
	}
	return -EBUSY;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* With the turn taken. */
static int shared_get(const struct hd_shared_attr *attr, const struct turn *t, struct hd_shared *out)
{
	char prefix[PREFIX];
	struct claim c;

	out->fd = shared_find(attr, "file", t->proof, t->random, &c);
	if (out->fd >= 0 && attr->must_not_exist)
		return -EEXIST;
	if (out->fd < 0 && attr->must_exist)
		return -ENOENT;
	if (out->fd < 0)
		out->fd = attr->make(attr->arg);
	if (out->fd < 0)
		return out->fd;
	prefix_of(attr, "file", prefix);
	out->name_fd = hold_name(prefix, out->fd, t->random);
	return out->name_fd < 0 ? out->name_fd : 0;
}

int hd_shared_open(const struct hd_shared_attr *attr, struct hd_shared *out)
{
	struct turn t;
	int rc;

	*out = HD_SHARED_NONE;
	if (!hd_realm_is_own(hd_realm_own()))
		return -EACCES;
	rc = turn_open(&t, attr);
	if (rc)
		return rc;
	rc = turn_take(&t);
	if (!rc)
		rc = shared_get(attr, &t, out);
	turn_give(&t);
	if (rc)
		hd_shared_close(out);
	return rc;
}

void hd_shared_close(struct hd_shared *s)
{
	if (s->name_fd >= 0)
		close(s->name_fd);
	if (s->fd >= 0)
		close(s->fd);
	*s = HD_SHARED_NONE;
}
