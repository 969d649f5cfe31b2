/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/*
 * What completions call a sender, FI_AV_USER_ID of fi_av(3): the program says it at his insertion,
 * or by a call of its own.
 */
#include "front/ofi/newer.h"
#include "front/ofi/stubs.h"

#include "front/ofi/av.h"

void hd_fi_av_call(struct hd_fi_av *av, size_t index, fi_addr_t user_id)
{
	struct hd_fi_av *view;

	av->user_ids = true;
	av->direct_ids = 0;
	LIST_FOREACH(view, &av->views, view) {
		view->user_ids = true;
		view->direct_ids = 0;
	}
	av->entry[index].user_id = user_id;
}

int hd_fi_av_set_user_id(struct fid_av *fid, fi_addr_t addr, fi_addr_t user_id, uint64_t flags)
{
	struct hd_fi_av *av = (struct hd_fi_av *)fid;
	uint32_t index;

	if (flags)
		return hd_fi_no(FI_EBADFLAGS, "fi_av_set_user_id with flags: keys have no identifiers");
	if (!av->users_unnamed)
		return hd_fi_no(
			FI_EINVAL,
			"fi_av_set_user_id of an address vector that was opened without FI_AV_USER_ID");
	hd_fi_lock(av->domain);
	index = hd_fi_av_index(av, addr);
	if (index != HD_FI_NO_INDEX)
		hd_fi_av_call(av, index, user_id);
	hd_fi_unlock(av->domain);
	return index != HD_FI_NO_INDEX
		       ? 0
		       : hd_fi_no(FI_EINVAL, "fi_av_set_user_id of an address that is not there");
}
