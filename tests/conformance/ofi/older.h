/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * Names that libfabric's newer headers lack or warn of, as 1.17 has them: the cases compile against
 * either. Included after all headers of libfabric, which define them where they are old.
 */
#ifndef CT_OLDER_H
#define CT_OLDER_H

#undef FI_VARIABLE_MSG
#undef FI_BUFFERED_RECV
#undef FI_REG_MR
#undef FI_ORDER_STRICT
#undef FI_ORDER_DATA
#undef FI_MR_UNSPEC
#undef FI_MR_BASIC
#undef FI_MR_SCALABLE
#define FI_VARIABLE_MSG (UINT64_C(1) << 48)
#define FI_BUFFERED_RECV (UINT64_C(1) << 51)
#define FI_REG_MR (UINT64_C(1) << 59)
#define FI_ORDER_STRICT UINT64_C(0x1ff)
#define FI_ORDER_DATA (UINT64_C(1) << 16)
#define FI_MR_UNSPEC 0
#define FI_MR_BASIC 1
#define FI_MR_SCALABLE 2

#endif
