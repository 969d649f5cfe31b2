/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "transport/shm/shm.h"
#include "transport/suite.h"

int main(void)
{
	static const struct suite suite = { .transport = &hd_shm_transport,
					    .fetches = true,
					    .outlives_fork = true };

	return suite_run(&suite);
}
