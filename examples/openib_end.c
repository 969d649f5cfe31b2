/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * To be preloaded into programs that use Open MPI 4.1's btl openib. Without it MPI_Finalize may end
 * by SIGSEGV, whatever the device (docs/programs.md).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <event2/event.h>
#include <stdlib.h>

/* It counts who uses a device in a byte that it does not set. Memory is 0 here, as it expects. */
void *malloc(size_t size)
{
	return calloc(1, size);
}

/*
 * Its thread for connections queues an event that lies in the module. Where the program does not come
 * to run it before MPI_Finalize, the module is freed with the event still queued, and who frees the
 * queue reads it. What is queued here in its place has memory of its own.
 */
void event_active(struct event *event, int what, short calls)
{
	void (*theirs)(struct event *, int, short) =
		(void (*)(struct event *, int, short))dlsym(RTLD_NEXT, "event_active");

	/* such are its events: there is no descriptor, and they are told that it can be read */
	if (what != EV_READ || event_get_fd(event) != -1 ||
	    event_base_once(event_get_base(event), -1, EV_TIMEOUT, event_get_callback(event),
			    event_get_callback_arg(event), NULL) != 0)
		theirs(event, what, calls);
}
