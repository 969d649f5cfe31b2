/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
#include "rst.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

socklen_t rst_size(const struct rst *r)
{
	return r->family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static struct sockaddr *at(struct rst *r)
{
	return (struct sockaddr *)&r->at;
}

/* Rank 0's address, for all. */
static void agree(struct rst *r)
{
	if (r->ct->rank) {
		ct_get(r->ct, NULL, 0, &r->at, sizeof(r->at));
		return;
	}
	for (int i = 1; i < r->ct->procs; i++)
		ct_put(r->ct, i, &r->at, sizeof(r->at));
}

void rst_open(struct ct *ct, struct rst *r)
{
	socklen_t len = sizeof(r->at);
	int type = r->type ? r->type : SOCK_STREAM;

	*r = (struct rst){ .ct = ct,
			   .family = ct->cs->arg == 6 ? AF_INET6 : AF_INET,
			   .type = type,
			   .listener = -1,
			   .s = -1 };
	if (!ct->rank) {
		cmt_here(r->family, 0, &r->at);
		r->listener = rsocket(r->family, type, 0);
		CT_TRUE(ct, r->listener >= 0);
		CMT_OK(ct, rbind(r->listener, at(r), rst_size(r)));
		if (type == SOCK_STREAM)
			CMT_OK(ct, rlisten(r->listener, 8));
		CMT_OK(ct, rgetsockname(r->listener, at(r), &len));
		CT_EQ(ct, len, rst_size(r));
		CT_TRUE(ct, cmt_port(&r->at));
	}
	agree(r);
}

int rst_call(struct rst *r, bool nonblocking)
{
	int s = rsocket(r->family, r->type, 0);

	CT_TRUE(r->ct, s >= 0);
	if (nonblocking)
		rst_nonblocking(r, s, true);
	else
		CMT_OK(r->ct, rconnect(s, at(r), rst_size(r)));
	return s;
}

void rst_pair(struct ct *ct, struct rst *r)
{
	rst_open(ct, r);
	if (ct->rank)
		r->s = rst_call(r, false);
	else
		r->s = raccept(r->listener, NULL, NULL);
	if (r->s < 0)
		ct_fail(ct, "raccept: %s", strerror(errno));
}

void rst_close(struct rst *r)
{
	if (r->s >= 0)
		CMT_OK(r->ct, rclose(r->s));
	if (r->listener >= 0)
		CMT_OK(r->ct, rclose(r->listener));
	r->s = r->listener = -1;
}

void rst_nonblocking(struct rst *r, int s, bool on)
{
	CMT_OK(r->ct, rfcntl(s, F_SETFL, on ? O_NONBLOCK : 0));
	CT_EQ(r->ct, rfcntl(s, F_GETFL) & O_NONBLOCK, on ? O_NONBLOCK : 0);
}

short rst_await(struct rst *r, int s, short events)
{
	struct pollfd p = { .fd = s, .events = events };

	CT_EQ(r->ct, rpoll(&p, 1, RST_PATIENCE), 1);
	CT_EQ(r->ct, p.revents & events, events);
	return p.revents;
}

void rst_send(struct rst *r, size_t len, uint64_t seed, size_t piece)
{
	char *buf = ct_alloc(r->ct, len);
	size_t done = 0;

	ct_fill(buf, len, seed);
	while (done < len) {
		size_t n = len - done < piece ? len - done : piece;
		ssize_t rc = rsend(r->s, buf + done, n, 0);

		if (rc <= 0)
			ct_fail(r->ct, "rsend, after %zu bytes: %s", done, strerror(errno));
		done += (size_t)rc;
	}
	free(buf);
}

void rst_receive(struct rst *r, size_t len, uint64_t seed, size_t piece)
{
	char *buf = ct_alloc(r->ct, len);
	size_t done = 0;

	while (done < len) {
		size_t n = len - done < piece ? len - done : piece;
		ssize_t rc = rrecv(r->s, buf + done, n, 0);

		if (rc <= 0)
			ct_fail(r->ct, "rrecv, after %zu bytes: %zd, %s", done, rc, strerror(errno));
		done += (size_t)rc;
	}
	ct_verify(r->ct, buf, len, seed, "the stream");
	free(buf);
}

void rst_quiet(struct rst *r, int s)
{
	struct pollfd p = { .fd = s, .events = POLLIN };

	CT_EQ(r->ct, rpoll(&p, 1, 20), 0);
}

void rst_option(struct ct *ct, int s, const int *option, int want)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CMT_OK(ct, rgetsockopt(s, option[0], option[1], &value, &len));
	CT_EQ(ct, value, want);
	CT_EQ(ct, len, sizeof(value));
}

void rst_tcp_state(struct ct *ct, int s, int state)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0xff, sizeof(info));
	CMT_OK(ct, rgetsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &len));
	CT_EQ(ct, len, sizeof(info));
	CT_EQ(ct, info.tcpi_state, state);
	CT_EQ(ct, info.tcpi_total_retrans, 0);
	CT_TRUE(ct, info.tcpi_snd_mss > 0 && info.tcpi_snd_mss <= 1 << 20);
	CT_TRUE(ct, state != TCP_ESTABLISHED || (info.tcpi_snd_cwnd > 0 && info.tcpi_snd_cwnd <= 1 << 20));
}
