/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Chains: lists that end where they begin, so that nobody looks whether something is the first or the last to take it out. Threads: the caller's. */
#ifndef HD_BASE_CHAIN_H
#define HD_BASE_CHAIN_H

/* A link of one, and its head. */
struct hd_chain {
	struct hd_chain *next, *before;
};

/* hd_chain_init: a head, of nothing. hd_chain_add: behind all that are there; hd_chain_add_first: in front of them. hd_chain_remove: it is in none. */
static inline void hd_chain_init(struct hd_chain *head)
{
	head->next = head->before = head;
}
static inline void hd_chain_put(struct hd_chain *c, struct hd_chain *before, struct hd_chain *next)
{
	c->next = next;
	c->before = before;
	before->next = c;
	next->before = c;
}
static inline void hd_chain_add(struct hd_chain *head, struct hd_chain *c)
{
	hd_chain_put(c, head->before, head);
}
static inline void hd_chain_add_first(struct hd_chain *head, struct hd_chain *c)
{
	hd_chain_put(c, head, head->next);
}
static inline void hd_chain_remove(struct hd_chain *c)
{
	c->before->next = c->next;
	c->next->before = c->before;
}

#endif
