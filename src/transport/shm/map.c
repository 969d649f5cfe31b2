/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The memory that is shared: made, checked and mapped. A memfd is trusted with our life, because
 * a file that shrinks under a mapping kills whoever touches it: the kernel must promise, by
 * seals, that it does not.
 *
 * When both ends of a link live in one process, they use one mapping, so that the thread sanitizer
 * sees what they do to each other. The list of mappings below is the only thing that nodes of a
 * process share; it is touched when a link is made or freed.
 */
#include "transport/shm/shm.h"

#include "base/lock.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct mapping {
	LIST_ENTRY(mapping) entry;
	struct hd_shm_mem *mem;
	dev_t dev;
	ino_t ino;
	unsigned users;
};

HD_LOCK_DEFINE(mappings_lock);
/* protected by mappings_lock */
static LIST_HEAD(, mapping) mappings = LIST_HEAD_INITIALIZER(mappings);

static int map_shared(int fd, size_t size, int prot, void **out)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	if (madvise(at, size, MADV_DONTFORK) < 0) {
		int err = -errno;

		munmap(at, size);
		return err;
	}
	*out = at;
	return 0;
}

static int mapping_add(const struct stat *st, int fd, struct hd_shm_mem **mem)
{
	struct mapping *m = malloc(sizeof(*m));
	void *at;
	int err;

	if (!m)
		return -ENOMEM;
	err = map_shared(fd, sizeof(struct hd_shm_mem), PROT_READ | PROT_WRITE, &at);
	if (err) {
		free(m);
		return err;
	}
	*m = (struct mapping){ .mem = at, .dev = st->st_dev, .ino = st->st_ino, .users = 1 };
	LIST_INSERT_HEAD(&mappings, m, entry);
	*mem = at;
	return 0;
}

static int mapping_get(int fd, struct hd_shm_mem **mem)
{
	struct mapping *m;
	struct stat st;
	int err = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != (off_t)sizeof(struct hd_shm_mem))
		return -EPROTO;
	hd_lock_take(&mappings_lock);
	LIST_FOREACH(m, &mappings, entry)
		if (m->dev == st.st_dev && m->ino == st.st_ino)
			break;
	if (m) {
		m->users++;
		*mem = m->mem;
	} else {
		err = mapping_add(&st, fd, mem);
	}
	hd_lock_give(&mappings_lock);
	return err;
}

void hd_shm_mem_unmap(struct hd_shm_mem *mem)
{
	struct mapping *m;

	hd_lock_take(&mappings_lock);
	LIST_FOREACH(m, &mappings, entry)
		if (m->mem == mem)
			break;
	if (m && --m->users == 0) {
		LIST_REMOVE(m, entry);
		munmap(mem, sizeof(*mem));
		free(m);
	}
	hd_lock_give(&mappings_lock);
}

void hd_shm_map_forked(void)
{
	LIST_INIT(&mappings);
}

static int memfd_open(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

int hd_shm_mem_make(struct hd_shm_mem **mem, int *out)
{
	int fd = memfd_open("heddle-link"), err;

	if (fd < 0)
		return fd;
	if (ftruncate(fd, sizeof(struct hd_shm_mem)) < 0 || fcntl(fd, F_ADD_SEALS, SIZE_SEALS) < 0)
		err = -errno;
	else
		err = mapping_get(fd, mem);
	if (err) {
		close(fd);
		return err;
	}
	(*mem)->magic = HD_SHM_MAGIC;
	(*mem)->version = HD_SHM_VERSION;
	(*mem)->size = sizeof(struct hd_shm_mem);
	*out = fd;
	return 0;
}

/* Anything but a memfd has no seals at all. */
static bool sealed(int fd, int seals)
{
	int have = fcntl(fd, F_GET_SEALS);

	return have >= 0 && (have & seals) == seals;
}

int hd_shm_mem_map(int fd, struct hd_shm_mem **mem)
{
	int err;

	if (!sealed(fd, SIZE_SEALS))
		return -EPROTO;
	err = mapping_get(fd, mem);
	if (err)
		return err;
	if ((*mem)->magic == HD_SHM_MAGIC && (*mem)->version == HD_SHM_VERSION &&
	    (*mem)->size == sizeof(**mem))
		return 0;
	hd_shm_mem_unmap(*mem);
	return -EPROTO;
}

int hd_shm_page_map(int fd, const struct hd_node_id *id, struct hd_node_page **out)
{
	struct hd_node_page *page;
	struct stat st;
	void *at;
	int err;

	if (!sealed(fd, SIZE_SEALS | F_SEAL_FUTURE_WRITE))
		return -EPROTO;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof(struct hd_page_file))
		return -EPROTO;
	err = map_shared(fd, sizeof(struct hd_page_file), PROT_READ, &at);
	if (err)
		return err;
	page = at;
	if (page->magic == HD_PAGE_MAGIC && page->version == HD_PAGE_VERSION &&
	    memcmp(&page->id, id, sizeof(*id)) == 0) {
		*out = page;
		return 0;
	}
	munmap(at, sizeof(struct hd_page_file));
	return -EPROTO;
}

void hd_shm_page_unmap(struct hd_node_page *page)
{
	munmap(page, sizeof(struct hd_page_file));
}
