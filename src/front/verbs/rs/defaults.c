/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What rsockets have that nobody has set: from the files in /etc/rdma/rsocket. */
#include "base/clock.h"
#include "front/verbs/rs/dgram.h"

#include <stdio.h>

#define POLLING_US 10 /* that a call looks at least, where no file says how long */

static struct {
	int sndbuf, rcvbuf, sq_size, rq_size, inline_size, iomaps, polling_us, wake_up_ms;
} defaults;

/* The number in this file, or what it is without one. */
static int defaults_from_file(const char *name, int least, int otherwise)
{
	char path[64];
	FILE *file;
	int value;

	snprintf(path, sizeof(path), "/etc/rdma/rsocket/%s", name);
	file = fopen(path, "re");
	if (!file)
		return otherwise;
	if (fscanf(file, "%d", &value) != 1 || value < least)
		value = otherwise;
	fclose(file);
	return value;
}

static void read_files(void)
{
	defaults.rcvbuf = defaults_from_file("mem_default", 1, 1 << 17);
	defaults.sndbuf = defaults_from_file("wmem_default", 1, 1 << 17);
	defaults.sq_size = defaults_from_file("sqsize_default", 1, 384);
	defaults.rq_size = defaults_from_file("rqsize_default", 1, 384);
	defaults.inline_size = defaults_from_file("inline_default", 0, 64);
	defaults.iomaps = defaults_from_file("iomap_size", 0, 0);
	defaults.polling_us = defaults_from_file("polling_time", 0, -1);
	defaults.wake_up_ms = defaults_from_file("wake_up_interval", 1, -1);
	if (defaults.iomaps > RS_MOST_MAPS)
		defaults.iomaps = RS_MOST_MAPS;
}

static void know_files(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_files);
}

void rs_defaults(struct rs_options *opt)
{
	know_files();
	*opt = (struct rs_options){ .sndbuf = defaults.sndbuf,
				    .rcvbuf = defaults.rcvbuf,
				    .sq_size = defaults.sq_size,
				    .rq_size = defaults.rq_size,
				    .inline_size = defaults.inline_size,
				    .iomaps = defaults.iomaps,
				    .keep_idle = 7200, /* as tcp(7) has them */
				    .keep_count = 9,
				    .keep_interval = 75,
				    .maxseg = RS_DGRAM_MOST };
}

bool rs_look_on(const struct rs_waiting *wait, struct hd_busy_polling *looking)
{
	static const struct hd_busy_poll never;

	if (defaults.polling_us >= 0)
		return hd_busy_poll_on(&never, looking, (uint32_t)defaults.polling_us, hd_ticks());
	return hd_busy_poll_on(&wait->look, looking, POLLING_US, hd_ticks());
}

int rs_wake_up_ms(void)
{
	return defaults.wake_up_ms;
}
