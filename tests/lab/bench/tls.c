/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "tls.h"

#include <stdio.h>

#ifdef HAVE_OPENSSL

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct tls {
    struct bench_transport transport; /* first: the functions get its address */
    SSL_CTX *context;
    const char *host; /* NULL: no name to send */
    const char *protocol;
    const char *cipher;
};

static const char *last_problem;

/* Turns OpenSSL's answer into that of recv and send. */
static int translate(SSL *ssl, int result)
{
    int saved = errno;

    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: errno = EAGAIN; return -1;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL:
        errno = saved != 0 ? saved : ECONNRESET;
        last_problem = strerror(errno);
        return -1;
    default:
        last_problem = ERR_reason_error_string(ERR_peek_error());
        if (last_problem == NULL)
            last_problem = "TLS failed";
        errno = EPROTO;
        return -1;
    }
}

static int begin(const struct bench_transport *transport, struct bench_stream *stream)
{
    const struct tls *tls = (const struct tls *)transport;
    SSL *ssl = SSL_new(tls->context);

    if (ssl == NULL || SSL_set_fd(ssl, stream->fd) != 1
        || (tls->host != NULL && SSL_set_tlsext_host_name(ssl, tls->host) != 1)) {
        SSL_free(ssl);
        last_problem = "no memory for TLS";
        errno = ENOMEM;
        return -1;
    }
    SSL_set_connect_state(ssl);
    SSL_set_app_data(ssl, (void *)(uintptr_t)tls);
    stream->state = ssl;
    return 0;
}

static int handshake(struct bench_stream *stream)
{
    SSL *ssl = stream->state;
    struct tls *tls = SSL_get_app_data(ssl);
    int result;

    ERR_clear_error();
    errno = 0;
    result = SSL_do_handshake(ssl);
    if (result != 1) {
        if (translate(ssl, result) == 0) {
            last_problem = "the server ended TLS at once";
            errno = EPROTO;
        }
        return -1;
    }
    if (tls->protocol == NULL) {
        tls->protocol = SSL_get_version(ssl);
        tls->cipher = SSL_get_cipher_name(ssl);
    }
    return 0;
}

static int limited(size_t size)
{
    return size > INT_MAX ? INT_MAX : (int)size;
}

static ssize_t receive(struct bench_stream *stream, char *data, size_t size)
{
    int result;

    ERR_clear_error();
    errno = 0;
    result = SSL_read(stream->state, data, limited(size));
    return result > 0 ? result : translate(stream->state, result);
}

static ssize_t transmit(struct bench_stream *stream, const char *data, size_t size)
{
    int result;

    ERR_clear_error();
    errno = 0;
    result = SSL_write(stream->state, data, limited(size));
    if (result <= 0)
        result = translate(stream->state, result);
    if (result == 0) {
        last_problem = "the server ended TLS";
        errno = EPIPE;
        result = -1;
    }
    return result;
}

static void end(struct bench_stream *stream)
{
    SSL *ssl = stream->state;

    if (ssl == NULL)
        return;
    if (SSL_is_init_finished(ssl))
        (void)SSL_shutdown(ssl);
    SSL_free(ssl);
    ERR_clear_error();
    stream->state = NULL;
}

static const char *problem(void)
{
    return last_problem;
}

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static SSL_CTX *make_context(void)
{
    static const unsigned char http1[] = "\x08http/1.1";
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    if (context == NULL)
        return NULL;
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                                  | SSL_MODE_RELEASE_BUFFERS);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    /* Many servers just close, and lengths show whether a body is whole. */
    (void)SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
    (void)SSL_CTX_set_alpn_protos(context, http1, sizeof(http1) - 1);
    return context;
}

const struct bench_transport *bench_tls_create(const char *host)
{
    struct tls *tls = calloc(1, sizeof(*tls));

    if (tls != NULL)
        tls->context = make_context();
    if (tls == NULL || tls->context == NULL) {
        (void)fputs("flashpache-bench: cannot start TLS: out of memory\n", stderr);
        free(tls);
        return NULL;
    }
    tls->host = is_address(host) ? NULL : host;
    tls->transport = (struct bench_transport){ begin, handshake, receive, transmit, end, problem };
    /* OpenSSL writes without MSG_NOSIGNAL. */
    (void)signal(SIGPIPE, SIG_IGN);
    return &tls->transport;
}

void bench_tls_destroy(const struct bench_transport **transport)
{
    struct tls *tls = (struct tls *)(uintptr_t)*transport;

    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
    *transport = NULL;
}

const char *bench_tls_protocol(const struct bench_transport *transport)
{
    return ((const struct tls *)transport)->protocol;
}

const char *bench_tls_cipher(const struct bench_transport *transport)
{
    return ((const struct tls *)transport)->cipher;
}

#else

const struct bench_transport *bench_tls_create(const char *host)
{
    (void)host;
    (void)fputs("flashpache-bench: built without TLS: install libssl-dev (Debian, Ubuntu) or "
                "openssl-devel, configure and build again\n",
                stderr);
    return NULL;
}

void bench_tls_destroy(const struct bench_transport **transport)
{
    (void)transport;
}

const char *bench_tls_protocol(const struct bench_transport *transport)
{
    (void)transport;
    return NULL;
}

const char *bench_tls_cipher(const struct bench_transport *transport)
{
    (void)transport;
    return NULL;
}

#endif
