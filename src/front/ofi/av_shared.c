/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/ofi/av_shared_layout.h"

#include "base/log.h"
#include "base/socket.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LEAST (1u << 16) /* entries */
#define MOST (1u << 24)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define PATIENCE_MS 5000

/* ---- names ---------------------------------------------------------------------------------------------- */

static uint64_t hash(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return h;
}

/* A socket that does nothing but have this abstract name while it is open, or a negative errno. */
static int hold_name(const char *text)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t len = strlen(text);
	int fd = hd_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	memcpy(un.sun_path + 1, text, len);
	if (!bind(fd, (struct sockaddr *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

/* One process at a time finds or makes a table: the name is given back with the process at the latest. */
static int take_turn(const char *name)
{
	char text[80];
	int fd = -EADDRINUSE;

	snprintf(text, sizeof(text), "heddle-av-turn/%u/%016" PRIx64, geteuid(), hash(name));
	for (int ms = 0; ms < PATIENCE_MS && fd == -EADDRINUSE; ms++) {
		fd = hold_name(text);
		if (fd == -EADDRINUSE)
			usleep(1000);
	}
	return fd == -EADDRINUSE
		       ? hd_fi_no(FI_EBUSY,
				  "another process has held the shared address vector's name for too long")
		       : fd;
}

static void prefix_of(const char *name, char *text, size_t size)
{
	snprintf(text, size, "heddle-av/%u/%016" PRIx64 "/", geteuid(), hash(name));
}

/* Let others find us. */
static int register_us(const char *name, int memfd)
{
	char prefix[64], text[100];

	prefix_of(name, prefix, sizeof(prefix));
	snprintf(text, sizeof(text), "%s%d/%d", prefix, getpid(), memfd);
	return hold_name(text);
}

/* ---- mapping ---------------------------------------------------------------------------------------------- */

/* Where the array begins that programs read: the fi_addr_t of each index that has ever held an address. We never do. */
static size_t array_at(uint32_t capacity)
{
	size_t end = sizeof(struct hd_fi_table_head) + (size_t)capacity * sizeof(struct hd_fi_table_entry);

	return (end + sizeof(fi_addr_t) - 1) / sizeof(fi_addr_t) * sizeof(fi_addr_t);
}

static fi_addr_t *array_of(const struct hd_fi_table *t)
{
	return (fi_addr_t *)(void *)((char *)t->head + array_at(t->capacity));
}

static size_t size_of(uint32_t capacity)
{
	return array_at(capacity) + (size_t)capacity * sizeof(fi_addr_t);
}

static int av_shared_map(struct hd_fi_table *t)
{
	void *at =
		mmap(NULL, t->size, t->read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	t->head = at;
	return 0;
}

static void av_shared_unmap(struct hd_fi_table *t)
{
	if (t->head)
		munmap(t->head, t->size);
	t->head = NULL;
}

/* Is the descriptor a table of this name? The kernel vouches for its size before it is looked into. */
static bool is_table(struct hd_fi_table *t, const char *name)
{
	struct stat st;
	int seals = fcntl(t->fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(t->fd, &st) || st.st_uid != geteuid())
		return false;
	if (st.st_size < (off_t)size_of(LEAST) || st.st_size > (off_t)size_of(MOST))
		return false;
	t->size = (size_t)st.st_size;
	if (av_shared_map(t))
		return false;
	t->capacity = t->head->capacity;
	if (t->head->magic == HD_FI_TABLE_MAGIC && t->head->layout == HD_FI_TABLE_LAYOUT &&
	    t->capacity >= LEAST && t->capacity <= MOST && size_of(t->capacity) == t->size &&
	    !strncmp(t->head->name, name, sizeof(t->head->name)))
		return true;
	av_shared_unmap(t);
	return false;
}

/* A line of /proc/net/unix ends with the name, after '@'. */
static bool try_line(struct hd_fi_table *t, const char *line, const char *prefix, const char *name)
{
	const char *at = strchr(line, '@');
	char path[64];
	int pid, fd;

	if (!at || strncmp(at + 1, prefix, strlen(prefix)) ||
	    sscanf(at + 1 + strlen(prefix), "%d/%d", &pid, &fd) != 2)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	t->fd = open(path, (t->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (t->fd < 0)
		return false;
	if (is_table(t, name))
		return true;
	close(t->fd);
	t->fd = -1;
	return false;
}

static bool av_shared_find(struct hd_fi_table *t, const char *name)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512], prefix[64];
	bool found = false;

	if (!f)
		return false;
	prefix_of(name, prefix, sizeof(prefix));
	while (!found && fgets(line, sizeof(line), f))
		found = try_line(t, line, prefix, name);
	fclose(f);
	return found;
}

static int av_shared_make(struct hd_fi_table *t, const struct hd_fi_table_attr *attr)
{
	int rc;

	t->capacity = attr->count > LEAST ? (uint32_t)attr->count : LEAST;
	t->size = size_of(t->capacity);
	t->fd = memfd_create("heddle-av", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t->fd < 0)
		return -errno;
	if (ftruncate(t->fd, (off_t)t->size) || fcntl(t->fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL))
		return -errno;
	rc = av_shared_map(t);
	if (rc)
		return rc;
	t->head->magic = HD_FI_TABLE_MAGIC;
	t->head->layout = HD_FI_TABLE_LAYOUT;
	t->head->keyed = attr->keyed;
	t->head->capacity = t->capacity;
	memcpy(t->head->name, attr->name, strlen(attr->name));
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------------------- */

void hd_fi_table_close(struct hd_fi_table *t)
{
	av_shared_unmap(t);
	if (t->name_fd >= 0)
		close(t->name_fd);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

/* With the turn taken. */
static int find_or_make(struct hd_fi_table *t, const struct hd_fi_table_attr *attr)
{
	int rc = 0;

	if (!av_shared_find(t, attr->name))
		rc = attr->read_only ? -FI_ENOENT : av_shared_make(t, attr);
	else if (!t->head->keyed != !attr->keyed)
		rc = hd_fi_no(
			FI_EINVAL,
			"the shared address vector of that name is of a domain with FI_AV_AUTH_KEY, or this one is");
	if (rc)
		return rc;
	t->name_fd = register_us(attr->name, t->fd);
	return t->name_fd < 0 ? t->name_fd : 0;
}

int hd_fi_table_open(const struct hd_fi_table_attr *attr, struct hd_fi_table **out)
{
	struct hd_fi_table *t;
	int turn, rc;

	if (strlen(attr->name) >= sizeof(t->head->name))
		return hd_fi_no(FI_EINVAL, "a shared address vector's name is too long");
	if (attr->count > MOST)
		return hd_fi_no(FI_EINVAL, "a shared address vector for more addresses than there can be");
	t = calloc(1, sizeof(*t));
	if (!t)
		return hd_fi_no(FI_ENOMEM);
	t->fd = t->name_fd = -1;
	t->read_only = attr->read_only;
	turn = take_turn(attr->name);
	rc = turn < 0 ? turn : find_or_make(t, attr);
	if (turn >= 0)
		close(turn);
	if (rc) {
		hd_info("cannot open the shared address vector \"%s\": %s", attr->name, fi_strerror(-rc));
		hd_fi_table_close(t);
		return rc;
	}
	*out = t;
	return 0;
}

void *hd_fi_table_map_addr(const struct hd_fi_table *t)
{
	return array_of(t);
}

bool hd_fi_table_read_only(const struct hd_fi_table *t)
{
	return t->read_only;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

uint64_t hd_fi_table_version(const struct hd_fi_table *t)
{
	/* acquire: whoever sees a change counted sees the change */
	return atomic_load_explicit(&t->head->version, memory_order_acquire);
}

size_t hd_fi_table_used(const struct hd_fi_table *t)
{
	uint32_t used = atomic_load_explicit(&t->head->used, memory_order_acquire);

	return used < t->capacity ? used : t->capacity;
}

uint32_t hd_fi_table_get(const struct hd_fi_table *t, size_t index, union hd_fi_addr *addr, uint32_t *key)
{
	const struct hd_fi_table_entry *e = &t->head->entry[index];
	uint32_t gen, after;

	for (int tries = 0; tries < 100; tries++) {
		/* acquire, and the fence below: the bytes are those that belong to gen */
		gen = atomic_load_explicit(&e->gen, memory_order_acquire);
		if (!(gen & 1))
			return gen;
		memcpy(addr, e->addr, sizeof(e->addr));
		*key = e->key;
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&e->gen, memory_order_relaxed);
		if (gen == after)
			return gen;
	}
	return 0; /* somebody plays tricks: it holds nothing */
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

int hd_fi_table_lock(const struct hd_fi_table *t)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (!flock(t->fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		usleep(1000);
	}
	return hd_fi_no(FI_EBUSY, "another process has held the shared address vector for too long");
}

void hd_fi_table_unlock(const struct hd_fi_table *t, bool changed)
{
	if (changed)
		atomic_fetch_add_explicit(&t->head->version, 1, memory_order_release);
	flock(t->fd, LOCK_UN);
}

static uint32_t av_shared_gen_of(const struct hd_fi_table *t, size_t index)
{
	return atomic_load_explicit(&t->head->entry[index].gen, memory_order_relaxed);
}

int64_t hd_fi_table_insert(struct hd_fi_table *t, const union hd_fi_addr *addr, uint32_t key)
{
	struct hd_fi_table_head *h = t->head;
	uint32_t index;
	int rc;

	if (t->read_only)
		return hd_fi_no(FI_EACCES,
				"a shared address vector that was opened with FI_READ takes no addresses");
	rc = hd_fi_table_lock(t);
	if (rc)
		return rc;
	index = h->lowest;
	while (index < t->capacity && av_shared_gen_of(t, index) & 1)
		index++;
	if (index < t->capacity) {
		h->lowest = index + 1;
		memcpy(h->entry[index].addr, addr, sizeof(h->entry[index].addr));
		h->entry[index].key = key;
		array_of(t)[index] = index;
		atomic_fetch_add_explicit(&h->entry[index].gen, 1, memory_order_release);
		if (index >= atomic_load_explicit(&h->used, memory_order_relaxed))
			atomic_store_explicit(&h->used, index + 1, memory_order_release);
	}
	hd_fi_table_unlock(t, true);
	return index < t->capacity
		       ? (int64_t)index
		       : hd_fi_no(
				 FI_ENOSPC,
				 "the shared address vector is full: its size is the count that it was made with");
}

int hd_fi_table_remove(struct hd_fi_table *t, uint64_t index)
{
	int rc =
		t->read_only
			? hd_fi_no(FI_EACCES,
				   "a shared address vector that was opened with FI_READ keeps its addresses")
			: 0;

	if (!rc && index >= t->capacity)
		rc = hd_fi_no(FI_EINVAL,
			      "fi_av_remove of an address that is not in the shared address vector");
	if (!rc)
		rc = hd_fi_table_lock(t);
	if (rc)
		return rc;
	if (av_shared_gen_of(t, index) & 1) {
		atomic_fetch_add_explicit(&t->head->entry[index].gen, 1, memory_order_release);
		if (index < t->head->lowest)
			t->head->lowest = (uint32_t)index;
	} else {
		rc = hd_fi_no(FI_EINVAL,
			      "fi_av_remove of an address that is not in the shared address vector");
	}
	hd_fi_table_unlock(t, true);
	return rc;
}
