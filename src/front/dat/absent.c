/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Common service points: the specification lets a provider be without them, as all on Linux are. dat_psp_create does what they do. */
#include "front/dat/dat_front.h"

DAT_RETURN hu_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
			 DAT_CSP_HANDLE *out)
{
	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return hu_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
}

/* There is none, so no handle is one. */
DAT_RETURN hu_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
}

DAT_RETURN hu_csp_free(DAT_CSP_HANDLE csp)
{
	return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
}
