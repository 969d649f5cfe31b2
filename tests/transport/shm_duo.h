/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * For this transport's tests: two nodes of one process and a link between them, driven
 * by turns from one thread.
 */
#ifndef HD_TESTS_SHM_DUO_H
#define HD_TESTS_SHM_DUO_H

#include "transport/rig.h"
#include "transport/shm/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

struct duo {
	struct hd_node *node[2];
	struct hd_shm_port *port[2];
	struct rig_end *end[2];	     /* [0] has joined */
	struct hd_shm_link *link[2]; /* gone once the end is closed */
	struct hd_shm_advert advert; /* of node 1 */
};

static inline void duo_turns(struct duo *d, int turns)
{
	for (int i = 0; i < turns; i++) {
		rig_poll(d->node[0]);
		rig_poll(d->node[1]);
	}
}

/* duo_nodes makes the nodes without a link; node 1 can be joined. */
static inline void duo_nodes(struct duo *d)
{
	memset(d, 0, sizeof(*d));
	for (int i = 0; i < 2; i++) {
		d->node[i] = rig_node_open();
		d->port[i] = (struct hd_shm_port *)rig_port_open(d->node[i], &hd_shm_transport);
		assert_non_null(d->port[i]);
	}
	assert_int_equal(hd_shm_transport.advertise(&d->port[1]->base, &d->advert, sizeof(d->advert)),
			 sizeof(d->advert));
}

static inline void duo_join(struct duo *d)
{
	assert_int_equal(rig_connect(&d->port[0]->base, &d->advert, sizeof(d->advert), &d->end[0]), 0);
	for (int i = 0; i < 2000 && !(d->end[0]->other && d->end[0]->other->other); i++) {
		duo_turns(d, 1);
		usleep(i > 100 ? 1000 : 0);
	}
	d->end[1] = d->end[0]->other;
	assert_non_null(d->end[1]);
	for (int i = 0; i < 2; i++)
		d->link[i] = hd_shm_link_of(d->end[i]->link);
}

static inline void duo_open(struct duo *d)
{
	duo_nodes(d);
	duo_join(d);
}

/* duo_close fails the test if the rig has seen anything that is against the contract. */
static inline void duo_close(struct duo *d)
{
	assert_string_equal(d->node[0]->complaint, "");
	assert_string_equal(d->node[1]->complaint, "");
	rig_node_close(d->node[0]);
	rig_node_close(d->node[1]);
}

#endif
