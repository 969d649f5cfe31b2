/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Tables of typed stubs, for stubs.c (no, idle, queueless) and dead.c (dead): X_STUBS(why) makes
 * the functions, which all answer why(), and X_TABLE(why) is a table of them.
 */
#ifndef HEDDLE_FRONT_OFI_STUB_TABLES_H
#define HEDDLE_FRONT_OFI_STUB_TABLES_H

#include "front/ofi/stubs.h"

/* ---- messages -------------------------------------------------------------------------------- */

#define MSG_STUBS(why) \
	static ssize_t why##_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, \
				  void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, \
				   fi_addr_t src, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
				  fi_addr_t dest, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, \
				   fi_addr_t dest, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest) \
	{ \
		return why(); \
	} \
	static ssize_t why##_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
				      uint64_t data, fi_addr_t dest, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, \
					fi_addr_t dest) \
	{ \
		return why(); \
	}

#define MSG_TABLE(why) \
	{ \
		.size = sizeof(struct fi_ops_msg), .recv = why##_recv, .recvv = why##_recvv, \
		.recvmsg = why##_recvmsg, .send = why##_send, .sendv = why##_sendv, \
		.sendmsg = why##_sendmsg, .inject = why##_inject, .senddata = why##_senddata, \
		.injectdata = why##_injectdata \
	}

#define TAGGED_STUBS(why) \
	static ssize_t why##_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, \
				   uint64_t tag, uint64_t ignore, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, \
				    fi_addr_t src, uint64_t tag, uint64_t ignore, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
				   fi_addr_t dest, uint64_t tag, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, \
				    fi_addr_t dest, uint64_t tag, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, \
				     uint64_t tag) \
	{ \
		return why(); \
	} \
	static ssize_t why##_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
				       uint64_t data, fi_addr_t dest, uint64_t tag, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, \
					 fi_addr_t dest, uint64_t tag) \
	{ \
		return why(); \
	}

#define TAGGED_TABLE(why) \
	{ \
		.size = sizeof(struct fi_ops_tagged), .recv = why##_trecv, .recvv = why##_trecvv, \
		.recvmsg = why##_trecvmsg, .send = why##_tsend, .sendv = why##_tsendv, \
		.sendmsg = why##_tsendmsg, .inject = why##_tinject, .senddata = why##_tsenddata, \
		.injectdata = why##_tinjectdata \
	}

/* ---- RMA ------------------------------------------------------------------------------------- */

#define RMA_STUBS(why) \
	static ssize_t why##_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, \
				  uint64_t addr, uint64_t key, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, \
				   fi_addr_t src, uint64_t addr, uint64_t key, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_rma_msg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
				   fi_addr_t dest, uint64_t addr, uint64_t key, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_inject_write(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, \
					  uint64_t addr, uint64_t key) \
	{ \
		return why(); \
	} \
	static ssize_t why##_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, \
				       uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key, \
				       void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_inject_writedata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, \
					      fi_addr_t dest, uint64_t addr, uint64_t key) \
	{ \
		return why(); \
	}

#define RMA_TABLE(why) \
	{ \
		.size = sizeof(struct fi_ops_rma), .read = why##_read, .readv = why##_readv, \
		.readmsg = why##_rma_msg, .write = why##_write, .writev = why##_readv, \
		.writemsg = why##_rma_msg, .inject = why##_inject_write, .writedata = why##_writedata, \
		.injectdata = why##_inject_writedata \
	}

/* ---- atomics --------------------------------------------------------------------------------- */

#define ATOMIC_STUBS(why) \
	static ssize_t why##_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, \
				    fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype, \
				    enum fi_op op, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, \
				     fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype, \
				     enum fi_op op, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_inject_atomic(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest, \
					   uint64_t addr, uint64_t key, enum fi_datatype datatype, \
					   enum fi_op op) \
	{ \
		return why(); \
	} \
	static ssize_t why##_fetch(struct fid_ep *ep, const void *buf, size_t count, void *desc, \
				   void *result, void *result_desc, fi_addr_t dest, uint64_t addr, \
				   uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_fetchv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, \
				    struct fi_ioc *resultv, void **result_desc, size_t result_count, \
				    fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype, \
				    enum fi_op op, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_fetchmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, \
				      struct fi_ioc *resultv, void **result_desc, size_t result_count, \
				      uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_compare(struct fid_ep *ep, const void *buf, size_t count, void *desc, \
				     const void *compare, void *compare_desc, void *result, \
				     void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key, \
				     enum fi_datatype datatype, enum fi_op op, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_comparev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, \
				      size_t count, const struct fi_ioc *comparev, void **compare_desc, \
				      size_t compare_count, struct fi_ioc *resultv, void **result_desc, \
				      size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key, \
				      enum fi_datatype datatype, enum fi_op op, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_comparemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, \
					const struct fi_ioc *comparev, void **compare_desc, \
					size_t compare_count, struct fi_ioc *resultv, void **result_desc, \
					size_t result_count, uint64_t flags) \
	{ \
		return why(); \
	}

/* fi_atomic(3) wants this errno where an operation is not supported. */

#define ATOMIC_TABLE(why) \
	{ \
		.size = sizeof(struct fi_ops_atomic), .write = why##_atomic, .writev = why##_atomicv, \
		.writemsg = why##_atomicmsg, .inject = why##_inject_atomic, .readwrite = why##_fetch, \
		.readwritev = why##_fetchv, .readwritemsg = why##_fetchmsg, .compwrite = why##_compare, \
		.compwritev = why##_comparev, .compwritemsg = why##_comparemsg, \
		.writevalid = why##_atomic_valid, .readwritevalid = why##_atomic_valid, \
		.compwritevalid = why##_atomic_valid, \
	}

/* ---- collectives ----------------------------------------------------------------------------- */

#define COLLECTIVE_STUBS(why) \
	static ssize_t why##_barrier(struct fid_ep *ep, fi_addr_t coll, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, \
				       fi_addr_t coll, fi_addr_t root, enum fi_datatype datatype, \
				       uint64_t flags, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, \
				      void *result, void *result_desc, fi_addr_t coll, \
				      enum fi_datatype datatype, uint64_t flags, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, \
				       void *result, void *result_desc, fi_addr_t coll, \
				       enum fi_datatype datatype, enum fi_op op, uint64_t flags, \
				       void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_rooted_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, \
					   void *result, void *result_desc, fi_addr_t coll, fi_addr_t root, \
					   enum fi_datatype datatype, enum fi_op op, uint64_t flags, \
					   void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, \
				     void *result, void *result_desc, fi_addr_t coll, fi_addr_t root, \
				     enum fi_datatype datatype, uint64_t flags, void *context) \
	{ \
		return why(); \
	} \
	static ssize_t why##_collective_msg(struct fid_ep *ep, const struct fi_msg_collective *msg, \
					    struct fi_ioc *resultv, void **result_desc, size_t result_count, \
					    uint64_t flags) \
	{ \
		return why(); \
	} \
	static ssize_t why##_barrier2(struct fid_ep *ep, fi_addr_t coll, uint64_t flags, void *context) \
	{ \
		return why(); \
	}

#define COLLECTIVE_TABLE(why) \
	{ \
		.size = sizeof(struct fi_ops_collective), .barrier = why##_barrier, \
		.broadcast = why##_broadcast, .alltoall = why##_alltoall, .allreduce = why##_allreduce, \
		.allgather = why##_alltoall, .reduce_scatter = why##_allreduce, \
		.reduce = why##_rooted_reduce, .scatter = why##_scatter, .gather = why##_scatter, \
		.msg = why##_collective_msg, .barrier2 = why##_barrier2, \
	}

#endif
