/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* Protection zones: dat_pz_create and the others. */
#include "front/dat/dat_front.h"

DAT_RETURN hu_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *out)
{
	struct hu_ia *ia = ia_handle;
	struct hu_pz *pz;

	if (!hu_is(ia, DAT_HANDLE_TYPE_IA))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!out)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!hu_enter(ia))
		return HU_DEAD;
	pz = hu_make(ia, DAT_HANDLE_TYPE_PZ, sizeof(*pz));
	if (pz && !(pz->number = ++ia->next_zone))
		pz->number = ++ia->next_zone; /* 0 stands for none */
	hu_leave(ia);
	if (!pz)
		return hu_error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	*out = pz;
	return DAT_SUCCESS;
}

DAT_RETURN hu_pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	const struct hu_pz *pz = handle;

	if (!hu_is(pz, DAT_HANDLE_TYPE_PZ))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if ((unsigned)mask & ~(unsigned)DAT_PZ_FIELD_ALL)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return hu_error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	param->ia_handle = hu_ia_handle(pz->o.ia);
	return DAT_SUCCESS;
}

DAT_RETURN hu_pz_free(DAT_PZ_HANDLE handle)
{
	struct hu_pz *pz = handle;
	struct hu_ia *ia;
	bool used;

	if (!hu_is(pz, DAT_HANDLE_TYPE_PZ))
		return hu_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	ia = pz->o.ia;
	if (!hu_enter(ia))
		return HU_DEAD;
	used = pz->o.users > 0;
	if (!used)
		hu_free(&pz->o);
	hu_leave(ia);
	return used ? hu_error(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE) : DAT_SUCCESS;
}
