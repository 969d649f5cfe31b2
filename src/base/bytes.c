/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "base/bytes.h"

#include <stdlib.h>

#include "base/pages.h"

#define FIRST_SLAB 4000u /* bytes, about; small, since there are many pools */

void hd_bytes_init(struct hd_bytes *bytes)
{
	for (unsigned i = 0; i < HD_BYTES_CLASSES; i++) {
		unsigned size = (i + 1) * HD_BYTES_STEP;

		hd_pool_init(&bytes->pool[i], size, FIRST_SLAB / size);
	}
}

void hd_bytes_fini(struct hd_bytes *bytes)
{
	for (unsigned i = 0; i < HD_BYTES_CLASSES; i++)
		hd_pool_fini(&bytes->pool[i]);
}

void *hd_bytes_get_large(size_t n)
{
	return n >= HD_BYTES_SYSTEM ? hd_pages_get(n) : malloc(n);
}

void hd_bytes_put_large(void *at, size_t n)
{
	if (n >= HD_BYTES_SYSTEM)
		hd_pages_put(at, n);
	else
		free(at);
}
