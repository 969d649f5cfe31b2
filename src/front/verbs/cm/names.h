/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * The functions of librdmacm are written under their own names and compiled as hv_<name>, because
 * what programs call by these names jumps to ours or to another copy's: cm/entry.c.
 */
#ifndef HEDDLE_FRONT_VERBS_CM_NAMES_H
#define HEDDLE_FRONT_VERBS_CM_NAMES_H

#define rdma_accept hv_rdma_accept
#define rdma_ack_cm_event hv_rdma_ack_cm_event
#define rdma_bind_addr hv_rdma_bind_addr
#define rdma_connect hv_rdma_connect
#define rdma_create_ep hv_rdma_create_ep
#define rdma_create_event_channel hv_rdma_create_event_channel
#define rdma_create_id hv_rdma_create_id
#define rdma_create_qp hv_rdma_create_qp
#define rdma_create_qp_ex hv_rdma_create_qp_ex
#define rdma_create_srq hv_rdma_create_srq
#define rdma_create_srq_ex hv_rdma_create_srq_ex
#define rdma_destroy_ep hv_rdma_destroy_ep
#define rdma_destroy_event_channel hv_rdma_destroy_event_channel
#define rdma_destroy_id hv_rdma_destroy_id
#define rdma_destroy_qp hv_rdma_destroy_qp
#define rdma_destroy_srq hv_rdma_destroy_srq
#define rdma_disconnect hv_rdma_disconnect
#define rdma_establish hv_rdma_establish
#define rdma_event_str hv_rdma_event_str
#define rdma_free_devices hv_rdma_free_devices
#define rdma_freeaddrinfo hv_rdma_freeaddrinfo
#define rdma_get_cm_event hv_rdma_get_cm_event
#define rdma_get_devices hv_rdma_get_devices
#define rdma_get_dst_port hv_rdma_get_dst_port
#define rdma_get_remote_ece hv_rdma_get_remote_ece
#define rdma_get_request hv_rdma_get_request
#define rdma_get_src_port hv_rdma_get_src_port
#define rdma_getaddrinfo hv_rdma_getaddrinfo
#define rdma_init_qp_attr hv_rdma_init_qp_attr
#define rdma_join_multicast hv_rdma_join_multicast
#define rdma_join_multicast_ex hv_rdma_join_multicast_ex
#define rdma_leave_multicast hv_rdma_leave_multicast
#define rdma_listen hv_rdma_listen
#define rdma_migrate_id hv_rdma_migrate_id
#define rdma_notify hv_rdma_notify
#define rdma_reject hv_rdma_reject
#define rdma_reject_ece hv_rdma_reject_ece
#define rdma_resolve_addr hv_rdma_resolve_addr
#define rdma_resolve_route hv_rdma_resolve_route
#define rdma_set_local_ece hv_rdma_set_local_ece
#define rdma_set_option hv_rdma_set_option
#define raccept hv_raccept
#define rbind hv_rbind
#define rclose hv_rclose
#define rconnect hv_rconnect
#define repoll_create hv_repoll_create
#define repoll_ctl hv_repoll_ctl
#define repoll_wait hv_repoll_wait
#define rfcntl hv_rfcntl
#define rgetpeername hv_rgetpeername
#define rgetsockname hv_rgetsockname
#define rgetsockopt hv_rgetsockopt
#define riomap hv_riomap
#define riounmap hv_riounmap
#define riowrite hv_riowrite
#define rlisten hv_rlisten
#define rpoll hv_rpoll
#define rread hv_rread
#define rreadv hv_rreadv
#define rrecv hv_rrecv
#define rrecvfrom hv_rrecvfrom
#define rrecvmsg hv_rrecvmsg
#define rselect hv_rselect
#define rsend hv_rsend
#define rsendmsg hv_rsendmsg
#define rsendto hv_rsendto
#define rsetsockopt hv_rsetsockopt
#define rshutdown hv_rshutdown
#define rsocket hv_rsocket
#define rwrite hv_rwrite
#define rwritev hv_rwritev

#endif
