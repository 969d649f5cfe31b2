/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The authorization keys of a shared address vector. An endpoint that has one holds a lock on a
 * byte of the memfd (F_OFD_SETLK), which a process that dies gives back: so nobody else removes the
 * key, and nothing has to be counted.
 */
#include "front/ofi/av_shared_layout.h"

#include <fcntl.h>
#include <string.h>

static uint32_t av_shared_key_gen_of(const struct hd_fi_table_slot *s)
{
	return atomic_load_explicit(&s->gen, memory_order_relaxed);
}

static bool is_live(const struct hd_fi_table_slot *s)
{
	return av_shared_key_gen_of(s) & 1 && atomic_load_explicit(&s->live, memory_order_relaxed);
}

static struct flock byte_of(uint32_t slot, short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1 };
}

/* Does an entry name it? */
static bool av_shared_key_is_named(const struct hd_fi_table *t, uint32_t slot)
{
	size_t used = hd_fi_table_used(t);

	for (size_t i = 0; i < used; i++) {
		const struct hd_fi_table_entry *e = &t->head->entry[i];

		if (atomic_load_explicit(&e->gen, memory_order_relaxed) & 1 && e->key == slot + 1)
			return true;
	}
	return false;
}

/* Let a slot that nobody needs be free. */
static bool av_shared_key_clear(const struct hd_fi_table *t, uint32_t slot)
{
	struct hd_fi_table_slot *s = &t->head->slot[slot];

	if (!(av_shared_key_gen_of(s) & 1))
		return true;
	if (is_live(s) || av_shared_key_is_named(t, slot))
		return false;
	atomic_fetch_add_explicit(&s->gen, 1, memory_order_release);
	explicit_bzero(s->bytes, sizeof(s->bytes));
	return true;
}

static int slot_with(const struct hd_fi_table *t, const void *bytes, size_t size)
{
	for (uint32_t i = 0; i < HD_FI_AUTH_KEYS; i++) {
		const struct hd_fi_table_slot *s = &t->head->slot[i];

		if (av_shared_key_gen_of(s) & 1 && s->size == size && !memcmp(s->bytes, bytes, size))
			return (int)i;
	}
	return -1;
}

/* With the lock. */
static int av_shared_key_insert(struct hd_fi_table *t, const void *bytes, size_t size)
{
	int at = slot_with(t, bytes, size);
	struct hd_fi_table_slot *s;

	for (uint32_t i = 0; i < HD_FI_AUTH_KEYS && at < 0; i++)
		if (av_shared_key_clear(t, i))
			at = (int)i;
	if (at < 0)
		return hd_fi_no(FI_ENOSPC, "the shared address vector has as many keys as it can hold");
	s = &t->head->slot[at];
	if (!(av_shared_key_gen_of(s) & 1)) {
		s->size = (uint32_t)size;
		memcpy(s->bytes, bytes, size);
		atomic_fetch_add_explicit(&s->gen, 1, memory_order_release);
	}
	atomic_store_explicit(&s->live, 1, memory_order_release);
	return at;
}

int hd_fi_table_key_insert(struct hd_fi_table *t, const void *bytes, size_t size)
{
	int rc = t->read_only ? hd_fi_no(FI_EACCES,
					 "a shared address vector that was opened with FI_READ takes no keys")
			      : hd_fi_table_lock(t);

	if (rc)
		return rc;
	rc = av_shared_key_insert(t, bytes, size);
	hd_fi_table_unlock(t, rc >= 0);
	return rc;
}

/* With the lock. What we hold ourselves the kernel does not tell of. */
static int remove_key(struct hd_fi_table *t, uint32_t slot)
{
	struct flock other = byte_of(slot, F_WRLCK);

	if (!is_live(&t->head->slot[slot]))
		return hd_fi_no(FI_EINVAL, "fi_av_remove of a key that is not in the shared address vector");
	if (fcntl(t->shared.fd, F_OFD_GETLK, &other) < 0)
		return -errno;
	if (other.l_type != F_UNLCK)
		return hd_fi_no(FI_EBUSY, "fi_av_remove of a key that another process uses");
	atomic_store_explicit(&t->head->slot[slot].live, 0, memory_order_release);
	av_shared_key_clear(t, slot);
	return 0;
}

int hd_fi_table_key_remove(struct hd_fi_table *t, uint32_t slot)
{
	int rc = t->read_only
			 ? hd_fi_no(FI_EACCES,
				    "a shared address vector that was opened with FI_READ keeps its keys")
			 : hd_fi_table_lock(t);

	if (rc)
		return rc;
	rc = remove_key(t, slot);
	hd_fi_table_unlock(t, !rc);
	return rc;
}

int hd_fi_table_key_hold(struct hd_fi_table *t, uint32_t slot, uint32_t gen, bool on)
{
	const struct hd_fi_table_slot *s = &t->head->slot[slot];
	struct flock byte = byte_of(slot, on ? F_RDLCK : F_UNLCK);
	int rc;

	if (!on)
		return fcntl(t->shared.fd, F_OFD_SETLK, &byte) < 0 ? -errno : 0;
	rc = hd_fi_table_lock(t); /* nobody removes it meanwhile */
	if (rc)
		return rc;
	if (!is_live(s) || av_shared_key_gen_of(s) != gen)
		rc = hd_fi_no(FI_EINVAL, "the key has been removed from the shared address vector");
	else if (fcntl(t->shared.fd, F_OFD_SETLK, &byte) < 0)
		rc = -errno;
	hd_fi_table_unlock(t, false);
	return rc;
}

uint32_t hd_fi_table_key_get(const struct hd_fi_table *t, uint32_t slot, struct hd_fi_table_key *out)
{
	const struct hd_fi_table_slot *s = &t->head->slot[slot];

	for (int tries = 0; tries < 100; tries++) {
		/* acquire, and the fence below: the bytes are those that belong to gen */
		uint32_t gen = atomic_load_explicit(&s->gen, memory_order_acquire);

		if (!(gen & 1))
			return gen;
		out->live = atomic_load_explicit(&s->live, memory_order_acquire);
		out->size = s->size;
		memcpy(out->bytes, s->bytes, sizeof(out->bytes));
		atomic_thread_fence(memory_order_acquire);
		if (gen == av_shared_key_gen_of(s))
			return out->size && out->size <= sizeof(out->bytes) ? gen : 0;
	}
	return 0; /* somebody plays tricks: it holds nothing */
}
