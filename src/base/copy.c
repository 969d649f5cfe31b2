/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* See copy.h; copy_x86_64.c and copy_arm64.c have the loops. */
#include "base/copy.h"
#include "base/copy_loop.h"

int hd_copy_plain(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
	return 0;
}

struct hd_copy_ops hd_copy_ops = { .wide = hd_copy_plain, .past = hd_copy_plain };

#if !HD_GUARDED
/* Elsewhere memcpy(3) is as good as anything that we know. */
const struct hd_copy_ops hd_copy_choices[] = { { .wide = hd_copy_plain, .past = hd_copy_plain } };
const int hd_copy_last = 0;

int hd_copy_brief(void *to, const void *from, size_t n)
{
	return hd_copy_plain(to, from, n);
}
#endif

int hd_copy_best(void)
{
	int i = hd_copy_last;

	while (hd_copy_choices[i].works && !hd_copy_choices[i].works())
		i--;
	return i;
}

__attribute__((constructor)) static void choose(void)
{
	hd_copy_ops = hd_copy_choices[hd_copy_best()];
}
