/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: 2026 The Heddle authors */
/* What the files of the module share: tls.c connections, group.c datagrams. */
#ifndef HD_TLS_TLS_H
#define HD_TLS_TLS_H

#include "base/seal.h"

#include <openssl/evp.h>
#include <stddef.h>

/* hd_tls_derive: a key for one purpose, from the one in the file: HMAC-SHA256 of these bytes. False: OpenSSL fails. */
bool hd_tls_derive(const struct hd_sealer *sealer, const void *what, size_t len, uint8_t out[HD_SEAL_KEY]);

/* hd_tls_id: the node's. hd_tls_aes: AES-128-GCM of the module's own context. They live as long as the sealer. */
const uint8_t *hd_tls_id(const struct hd_sealer *sealer);
const EVP_CIPHER *hd_tls_aes(const struct hd_sealer *sealer);

/* group.c: members of struct hd_seal_module. */
struct hd_seal_group *hd_tls_group(struct hd_sealer *sealer, const void *name, size_t len);
ssize_t hd_tls_wrap(struct hd_seal_group *g, const struct iovec *iov, int count, void *out, size_t room);
ssize_t hd_tls_unwrap(struct hd_seal_group *g, const void *in, size_t len, void *out, size_t room);
void hd_tls_group_end(struct hd_seal_group *g);

#endif
