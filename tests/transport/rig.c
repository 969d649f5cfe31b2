/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Nodes: page, descriptors, timers, turns of progress, sleep. Links are in
 * rig_link.c, traffic in rig_plan.c.
 */
#include "transport/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static void die(const char *what)
{
	perror(what);
	abort();
}

void rig_complain(struct hd_node *node, const char *fmt, ...)
{
	va_list args;

	if (node->complaint[0])
		return;
	va_start(args, fmt);
	vsnprintf(node->complaint, sizeof(node->complaint), fmt, args);
	va_end(args);
}

/* ---- what transports ask of a node ---- */

const struct hd_node_id *hd_node_id(const struct hd_node *node)
{
	return &node->id;
}

struct hd_node_page *hd_node_page(struct hd_node *node)
{
	return node->page;
}

int hd_node_page_fd(struct hd_node *node)
{
	return node->page_fd;
}

int hd_node_wake_fd(struct hd_node *node)
{
	return node->wake_fd;
}

void hd_link_missed(struct hd_node *node, const struct hd_node_id *id)
{
}

void hd_link_idle(struct hd_link *link)
{
}

bool hd_node_knows(struct hd_node *node, const struct hd_node_id *id)
{
	return node->knows;
}

bool hd_allowed(struct hd_node *node, const struct sockaddr *from)
{
	return node->allows;
}

void hd_port_active(struct hd_port *port, bool on)
{
	port->active += on ? 1 : -1;
	if (port->active < 0)
		rig_complain(port->node, "port made inactive more often than active");
}

/* ---- watches ---- */

int hd_watch_add(struct hd_node *node, struct hd_watch *watch)
{
	struct epoll_event event = { .events = watch->events, .data.ptr = watch };

	return epoll_ctl(node->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
}

int hd_watch_events(struct hd_node *node, struct hd_watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	watch->events = events;
	return epoll_ctl(node->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) ? -errno : 0;
}

/* The events that were fetched and not yet handled may name the watch too. */
void hd_watch_remove(struct hd_node *node, struct hd_watch *watch)
{
	for (int i = 0; i < node->event_count; i++)
		if (node->events[i].data.ptr == watch)
			node->events[i].data.ptr = NULL;
	if (epoll_ctl(node->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL))
		rig_complain(node, "watch removed that is not watched: %s", strerror(errno));
}

static int dispatch(struct hd_node *node)
{
	struct epoll_event events[RIG_EVENTS];
	int n = epoll_wait(node->epoll_fd, events, RIG_EVENTS, 0), handled = 0;

	node->events = events;
	node->event_count = n < 0 ? 0 : n;
	for (int i = 0; i < node->event_count; i++) {
		struct hd_watch *watch = events[i].data.ptr;

		if (!watch)
			continue;
		watch->fn(watch, events[i].events);
		handled++;
	}
	node->events = NULL;
	node->event_count = 0;
	return handled;
}

/* Our own: woken while we were awake already, or by rig_kick. */
static void on_wake(struct hd_watch *watch, uint32_t events)
{
	struct hd_node *node = (struct hd_node *)((char *)watch - offsetof(struct hd_node, wake));
	uint64_t n;

	if (read(watch->fd, &n, sizeof(n)) == sizeof(n))
		node->wakes += n;
}

/* ---- timers ---- */

void hd_timer_stop(struct hd_node *node, struct hd_timer *timer)
{
	if (timer->due)
		hd_timers_remove(&node->timers, timer);
	timer->due = 0;
}

void hd_timer_set(struct hd_node *node, struct hd_timer *timer, uint64_t ns)
{
	hd_timer_stop(node, timer);
	timer->due = hd_now_ns() + ns;
	hd_timers_add(&node->timers, timer);
}

static int run_timers(struct hd_node *node)
{
	struct hd_timer *t;
	int ran = 0;

	while ((t = node->timers.first) && t->due <= hd_now_ns()) {
		hd_timer_stop(node, t);
		t->fn(t);
		ran++;
	}
	return ran;
}

static int sleep_ms(struct hd_node *node, int ms)
{
	struct hd_timer *t = node->timers.first;
	uint64_t now = hd_now_ns();
	int until;

	if (!t)
		return ms;
	until = t->due <= now ? 0 : (int)((t->due - now) / HD_NS_PER_MS) + 1;
	return until < ms ? until : ms;
}

/* ---- progress ---- */

/* Links that are down are closed here, at the top of progress and from nowhere else. */
static int reap(struct hd_node *node)
{
	struct hd_link *link;
	int reaped = 0;

	while ((link = TAILQ_FIRST(&node->fallen))) {
		struct rig_end *end = link->stream;

		TAILQ_REMOVE(&node->fallen, link, entry);
		rig_end_drop(end);
		end->link = NULL;
		end->closed = true;
		node->closed++;
		link->ops->close(link);
		reaped++;
	}
	return reaped;
}

static int poll_ports(struct hd_node *node)
{
	int handled = 0;

	for (int i = 0; i < node->port_count; i++)
		if (node->port[i]->active > 0)
			handled += node->port[i]->transport->poll(node->port[i]);
	return handled;
}

static int pump_all(struct hd_node *node)
{
	struct rig_end *end;
	int sent = 0;

	TAILQ_FOREACH(end, &node->ends, entry)
		if (end->up && end->link && !end->link->down)
			sent += rig_pump(end);
	return sent;
}

int rig_poll(struct hd_node *node)
{
	int handled = reap(node);

	node->turns++;
	node->stuck = false;
	handled += poll_ports(node);
	if (!handled || node->turns % 8 == 0)
		handled += dispatch(node) + run_timers(node);
	handled += pump_all(node);
	return handled + !TAILQ_EMPTY(&node->fallen);
}

static void sleep_step(struct hd_node *node)
{
	uint32_t seq = atomic_load_explicit(&node->page->sleep_seq, memory_order_relaxed);

	atomic_store_explicit(&node->page->sleep_seq, seq + 1, memory_order_release);
}

bool rig_arm(struct hd_node *node)
{
	bool there = !TAILQ_EMPTY(&node->fallen);

	sleep_step(node);
	for (int i = 0; i < node->port_count; i++)
		there |= node->port[i]->transport->arm(node->port[i]) > 0;
	node->armed = true;
	return there;
}

void hd_node_stir(struct hd_node *node)
{
	const uint64_t one = 1;

	if (node->armed && write(node->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		die("stir");
}

void hd_node_gathers(struct hd_node *node, int links)
{
	node->gathering += links;
}

void rig_disarm(struct hd_node *node)
{
	node->armed = false;
	sleep_step(node);
	for (int i = 0; i < node->port_count; i++)
		node->port[i]->transport->disarm(node->port[i]);
}

int rig_sleep(struct hd_node *node, int ms)
{
	struct epoll_event event;
	int n = 1, wait = sleep_ms(node, ms);

	if (!rig_arm(node)) {
		node->sleeps++;
		rig_unlock(node);
		n = epoll_wait(node->epoll_fd, &event, 1, wait);
		rig_lock(node);
		if (n == 0 && wait == ms)
			node->slept_out++;
	}
	rig_disarm(node);
	return n > 0;
}

/* ---- threads ---- */

void rig_lock(struct hd_node *node)
{
	if (!node->threaded)
		return;
	atomic_fetch_add(&node->wanted, 1);
	pthread_mutex_lock(&node->lock);
	atomic_fetch_sub(&node->wanted, 1);
}

void rig_unlock(struct hd_node *node)
{
	if (node->threaded)
		pthread_mutex_unlock(&node->lock);
}

static void *drive(void *arg)
{
	struct hd_node *node = arg;

	while (!atomic_load(&node->stop)) {
		while (atomic_load(&node->wanted))
			sched_yield();
		pthread_mutex_lock(&node->lock);
		if (node->paused) {
			pthread_mutex_unlock(&node->lock);
			usleep(200);
			continue;
		}
		if (!rig_poll(node) && node->sleepy && !node->stuck)
			rig_sleep(node, 2000);
		pthread_mutex_unlock(&node->lock);
	}
	return NULL;
}

void rig_thread_start(struct hd_node *node)
{
	node->threaded = true;
	if (pthread_create(&node->thread, NULL, drive, node))
		die("pthread_create");
}

void rig_kick(struct hd_node *node)
{
	const uint64_t one = 1;

	if (node->threaded && write(node->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		die("wake");
}

/* ---- birth and death ---- */

#define PAGE_SIZE sizeof(struct hd_page_file)

static void page_make(struct hd_node *node)
{
	struct hd_node_page *page;

	node->page_fd = memfd_create(HD_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (node->page_fd < 0 || ftruncate(node->page_fd, PAGE_SIZE))
		die("node page");
	page = mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, node->page_fd, 0);
	if (page == MAP_FAILED)
		die("node page");
	if (fcntl(node->page_fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		die("seal node page");
	node->probe = rig_mix(node->id.word[0]);
	page->magic = HD_PAGE_MAGIC;
	page->version = HD_PAGE_VERSION;
	page->size_kib = PAGE_SIZE / 1024;
	page->pid = getpid();
	page->link_rows = HD_PAGE_LINKS;
	page->id = node->id;
	page->incarnation = hd_now_ns();
	page->probe_addr = (uintptr_t)&node->probe;
	page->probe_value = node->probe;
	strcpy(page->front, "rig");
	hd_witness_open(&page->witness);
	node->page = page;
}

struct hd_node *rig_node_open(void)
{
	struct hd_node *node = calloc(1, sizeof(*node));

	if (!node || getrandom(&node->id, sizeof(node->id), 0) != sizeof(node->id))
		die("node");
	node->allows = true;
	node->knows = true;
	pthread_mutex_init(&node->lock, NULL);
	TAILQ_INIT(&node->links);
	TAILQ_INIT(&node->fallen);
	TAILQ_INIT(&node->ends);
	page_make(node);
	node->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	node->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (node->wake_fd < 0 || node->epoll_fd < 0)
		die("descriptors");
	node->wake = (struct hd_watch){ .fd = node->wake_fd, .events = EPOLLIN, .fn = on_wake };
	hd_watch_add(node, &node->wake);
	return node;
}

struct hd_port *rig_port_open(struct hd_node *node, const struct hd_transport *transport)
{
	struct hd_port *port = NULL;
	int rc = transport->open(node, &port);

	if (rc) {
		rig_complain(node, "port of %s: %s", transport->name, strerror(-rc));
		return NULL;
	}
	if (port->transport != transport || port->node != node)
		rig_complain(node, "open() left transport or node of the port unset");
	node->port[node->port_count++] = port;
	return port;
}

void rig_forked(struct hd_node *node)
{
	for (int i = 0; i < node->port_count; i++)
		if (node->port[i]->transport->forked)
			node->port[i]->transport->forked(node->port[i]);
}

static void thread_stop(struct hd_node *node)
{
	if (!node->threaded)
		return;
	atomic_store(&node->stop, true);
	rig_kick(node);
	pthread_join(node->thread, NULL);
	node->threaded = false;
}

static void ports_close(struct hd_node *node)
{
	for (int i = 0; i < node->port_count; i++) {
		if (node->port[i]->active)
			rig_complain(node, "a port without links is still active (%d)",
				     node->port[i]->active);
		node->port[i]->transport->close(node->port[i]);
	}
	if (node->timers.first)
		rig_complain(node, "a timer outlived its port");
	if (node->opened != node->closed)
		rig_complain(node, "%u links were opened and %u closed", node->opened, node->closed);
}

bool rig_node_close(struct hd_node *node)
{
	struct rig_end *end;
	bool fine;

	thread_stop(node);
	TAILQ_FOREACH(end, &node->ends, entry)
		if (end->link)
			hd_link_down(end->link, -ESHUTDOWN, NULL);
	reap(node);
	ports_close(node);
	fine = !node->complaint[0];
	if (!fine)
		fprintf(stderr, "# %s\n", node->complaint);
	while ((end = TAILQ_FIRST(&node->ends))) {
		TAILQ_REMOVE(&node->ends, end, entry);
		free(end);
	}
	if (hd_witness_close(&node->page->witness))
		munmap(node->page, PAGE_SIZE);
	close(node->page_fd);
	close(node->wake_fd);
	close(node->epoll_fd);
	pthread_mutex_destroy(&node->lock);
	free(node);
	return fine;
}
