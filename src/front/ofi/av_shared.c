/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "front/ofi/av_shared_layout.h"

#include "base/advice.h"
#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAST (1u << 16) /* entries */
#define MOST (1u << 24)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define PATIENCE_MS 5000

/* ---- mapping --------------------------------------------------------------------------------- */

/*
 * Where the array begins that programs read: the fi_addr_t of each index that has ever held
 * an address. We never do.
 */
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

static int av_shared_map(struct hd_fi_table *t, int fd)
{
	void *at = mmap(NULL, t->size, t->read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

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

struct opening {
	struct hd_fi_table *t;
	const struct hd_fi_table_attr *attr;
};

/*
 * Is the descriptor a table of this name? The kernel vouches for its size before it is looked into.
 */
static bool is_table(void *arg, int fd, const struct stat *st)
{
	const struct opening *o = arg;
	struct hd_fi_table *t = o->t;

	if (st->st_size < (off_t)size_of(LEAST) || st->st_size > (off_t)size_of(MOST))
		return false;
	t->size = (size_t)st->st_size;
	if (av_shared_map(t, fd))
		return false;
	t->capacity = t->head->capacity;
	if (t->head->magic == HD_FI_TABLE_MAGIC && t->head->layout == HD_FI_TABLE_LAYOUT &&
	    t->capacity >= LEAST && t->capacity <= MOST && size_of(t->capacity) == t->size &&
	    !strncmp(t->head->name, o->attr->name, sizeof(t->head->name)))
		return true;
	av_shared_unmap(t);
	return false;
}

static int table_begin(struct hd_fi_table *t, int fd, const struct hd_fi_table_attr *attr)
{
	int rc;

	if (ftruncate(fd, (off_t)t->size) || fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL))
		return -errno;
	rc = av_shared_map(t, fd);
	if (rc)
		return rc;
	t->head->magic = HD_FI_TABLE_MAGIC;
	t->head->layout = HD_FI_TABLE_LAYOUT;
	t->head->keyed = attr->keyed;
	t->head->capacity = t->capacity;
	memcpy(t->head->name, attr->name, strlen(attr->name));
	return 0;
}

static int av_shared_make(void *arg)
{
	const struct opening *o = arg;
	int rc, fd = memfd_create("heddle-av", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	o->t->capacity = o->attr->count > LEAST ? (uint32_t)o->attr->count : LEAST;
	o->t->size = size_of(o->t->capacity);
	rc = table_begin(o->t, fd, o->attr);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

/* ---- life ------------------------------------------------------------------------------------ */

void hd_fi_table_close(struct hd_fi_table *t)
{
	av_shared_unmap(t);
	hd_shared_close(&t->shared);
	free(t);
}

static int find_or_make(struct hd_fi_table *t, const struct hd_fi_table_attr *attr)
{
	struct opening o = { t, attr };
	const struct hd_shared_attr shared = { .kind = "av",
					       .name = attr->name,
					       .read_only = attr->read_only,
					       .must_exist = attr->read_only,
					       .seals = SEALS,
					       .is_it = is_table,
					       .make = av_shared_make,
					       .arg = &o };
	int rc = hd_shared_open(&shared, &t->shared);

	if (rc == -EBUSY)
		return hd_fi_no(FI_EBUSY,
				"another process has been opening the shared address vector for too long");
	if (rc)
		return rc;
	if (!t->head->keyed != !attr->keyed)
		return hd_fi_no(
			FI_EINVAL,
			"the shared address vector of that name is of a domain with FI_AV_AUTH_KEY, or this one is");
	return 0;
}

static const char *table_advice(int rc)
{
	switch (rc) {
	case -ENOENT:
		return ": it is opened without FI_READ first";
	case -EBUSY:
		return ": open it again";
	case -EINVAL:
		return ": all domains that share it have FI_AV_AUTH_KEY, or none";
	case -EOPNOTSUPP: /* memfd_create(2) is refused */
		return hd_advice(EPERM);
	default:
		return hd_advice(-rc);
	}
}

int hd_fi_table_open(const struct hd_fi_table_attr *attr, struct hd_fi_table **out)
{
	struct hd_fi_table *t;
	int rc;

	if (strlen(attr->name) >= sizeof(t->head->name))
		return hd_fi_no(FI_EINVAL, "a shared address vector's name is too long");
	if (attr->count > MOST)
		return hd_fi_no(FI_EINVAL, "a shared address vector for more addresses than there can be");
	t = calloc(1, sizeof(*t));
	if (!t)
		return hd_fi_no(FI_ENOMEM);
	t->shared = HD_SHARED_NONE;
	t->read_only = attr->read_only;
	rc = find_or_make(t, attr);
	if (rc) {
		hd_info("cannot open the shared address vector \"%s\": %s%s", attr->name, fi_strerror(-rc),
			table_advice(rc));
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

/* ---- reading --------------------------------------------------------------------------------- */

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

/* ---- writing --------------------------------------------------------------------------------- */

int hd_fi_table_lock(const struct hd_fi_table *t)
{
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (!flock(t->shared.fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		hd_pause_us(1000);
	}
	return hd_fi_no(FI_EBUSY, "another process has held the shared address vector for too long");
}

void hd_fi_table_unlock(const struct hd_fi_table *t, bool changed)
{
	if (changed)
		atomic_fetch_add_explicit(&t->head->version, 1, memory_order_release);
	flock(t->shared.fd, LOCK_UN);
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
