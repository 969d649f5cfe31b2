/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What rsockets have that nobody has set: from the files in /etc/rdma/rsocket. */
#include "base/clock.h"
#include "base/rsocket_files.h"
#include "front/verbs/rs/dgram.h"

#define POLLING_US 10 /* that a call looks at least, where no file says how long */

static struct {
	int sndbuf, rcvbuf, sq_size, rq_size, inline_size, iomaps, polling_us, wake_up_ms;
} defaults;

static void read_files(void)
{
	bool found;

	defaults.rcvbuf = hd_rsocket_file_read(HD_RSOCKET_RCVBUF, &found);
	defaults.sndbuf = hd_rsocket_file_read(HD_RSOCKET_SNDBUF, &found);
	defaults.sq_size = hd_rsocket_file_read(HD_RSOCKET_SQ_SIZE, &found);
	defaults.rq_size = hd_rsocket_file_read(HD_RSOCKET_RQ_SIZE, &found);
	defaults.inline_size = hd_rsocket_file_read(HD_RSOCKET_INLINE, &found);
	defaults.iomaps = hd_rsocket_file_read(HD_RSOCKET_IOMAPS, &found);
	defaults.polling_us = hd_rsocket_file_read(HD_RSOCKET_POLLING_US, &found);
	defaults.wake_up_ms = hd_rsocket_file_read(HD_RSOCKET_WAKE_UP_MS, &found);
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
