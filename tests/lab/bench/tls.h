/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS by OpenSSL. The server's certificate is not verified: it is measured, not trusted. No
 * session is resumed: each connection costs the server a full handshake.
 */
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include "transport.h"

/* The host is named to the server (SNI) unless it is an address. NULL after an error, which
 * was printed; also when the program was built without OpenSSL. */
const struct bench_transport *bench_tls_create(const char *host);
void bench_tls_destroy(const struct bench_transport **tls);

/* The protocol that the first connection agreed on; NULL before. The texts stay valid. */
const char *bench_tls_protocol(const struct bench_transport *tls);
const char *bench_tls_cipher(const struct bench_transport *tls);

#endif
