// The limit of TLS: canned responses by SSL_read and SSL_write of OpenSSL over epoll,
// edge-triggered.
//
// One turn of a connection takes at most one receive and one send: OpenSSL reads from and writes to
// the buffers of the thread, and the tickets, the response and the close_notify of a turn leave
// together. A connection of --close ends after its first response, which measures handshakes.
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/limit/canned.hpp"
#include "bench/limit/epoll_server.hpp"

namespace {

struct Files {
  std::string chain;
  std::string key;
  int threads = 1;
  bool own_library = false;  // a library context of OpenSSL for each thread
};

[[noreturn]] void exit_with_openssl_error(const char* what) {
  std::fprintf(stderr, "limit: %s: ", what);
  ERR_print_errors_fp(stderr);
  std::exit(1);
}

/// The bytes that the connection of this turn has received and is to send.
struct Exchange {
  std::string_view input;
  std::string output;
};
thread_local Exchange exchange;

int read_input(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  if (exchange.input.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const std::size_t count = std::min(static_cast<std::size_t>(size), exchange.input.size());
  std::memcpy(to, exchange.input.data(), count);
  exchange.input.remove_prefix(count);
  return static_cast<int>(count);
}

int write_output(BIO*, const char* from, int size) {
  exchange.output.append(from, static_cast<std::size_t>(size));
  return size;
}

long control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* make_method() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "limit");
  BIO_meth_set_read(method, read_input);
  BIO_meth_set_write(method, write_output);
  BIO_meth_set_ctrl(method, control);
  return method;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  static const unsigned char wanted[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, wanted, sizeof(wanted) - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

SSL_CTX* make_context(const Files& files, bool large) {
  OSSL_LIB_CTX* const library = files.own_library ? OSSL_LIB_CTX_new() : nullptr;
  SSL_CTX* const context = SSL_CTX_new_ex(library, nullptr, TLS_server_method());
  if (context == nullptr) exit_with_openssl_error("the context");
  if (SSL_CTX_use_certificate_chain_file(context, files.chain.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    exit_with_openssl_error("the certificate");
  }
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // The buffers of all connections together would not fit into the cache of the processor.
  if (large) SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(
      context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // The cheapest suite first.
  if (SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384") != 1 ||
      SSL_CTX_set_cipher_list(context, "ECDHE+AES128+AESGCM:ECDHE+AESGCM") != 1) {
    exit_with_openssl_error("the cipher suites");
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>("limit"), 5);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  return context;
}

struct Connection {
  SSL* ssl = nullptr;
  limit::RequestCount requests;
  std::size_t owed = 0;  // bytes of responses that OpenSSL has not taken
  std::string unsent;    // records that the send buffer had no room for
  bool ended = false;    // close_notify is in `unsent` or sent
};

class Server : public limit::EpollServer<Server, Connection> {
 public:
  Server(const limit::Options& options, const Files& files, weir::os::Fd listener)
      : EpollServer(std::move(listener)),
        options_(options),
        answers_(options),
        context_(make_context(files, options.response_bytes >= large_bytes_min)),
        method_(make_method()) {}

  bool accepted(int descriptor) {
    SSL* const ssl = SSL_new(context_);
    BIO* const bio = ssl == nullptr ? nullptr : BIO_new(method_);
    if (bio == nullptr) exit_with_openssl_error("a connection");
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_accept_state(ssl);
    connection_of(descriptor).ssl = ssl;
    return true;
  }

  void serve(int descriptor, std::uint32_t events) {
    Connection& connection = connection_of(descriptor);
    if ((events & EPOLLOUT) != 0 && !connection.unsent.empty() && !answer(descriptor, connection)) {
      return;
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
      receive(descriptor, connection);
    }
  }

 private:
  void close(int descriptor, Connection& connection) {
    SSL_free(connection.ssl);
    connection.ssl = nullptr;
    ::close(descriptor);
  }

  void receive(int descriptor, Connection& connection) {
    for (;;) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), 0);
      if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        return close(descriptor, connection);
      }
      exchange.input = {input_.data(), static_cast<std::size_t>(got)};
      if (!open_records(connection)) {
        if (flush(descriptor, connection)) close(descriptor, connection);  // after an alert
        return;
      }
      if (!answer(descriptor, connection)) return;
      // A short receive has emptied the socket; the next edge reports new bytes.
      if (static_cast<std::size_t>(got) < input_.size()) return;
    }
  }

  /// Takes all input of the turn. SSL_read() also performs the handshake.
  /// Returns whether the connection goes on.
  bool open_records(Connection& connection) {
    for (;;) {
      const int size = SSL_read(connection.ssl, plain_.data(), static_cast<int>(plain_.size()));
      if (size <= 0) {
        const bool waits = SSL_get_error(connection.ssl, size) == SSL_ERROR_WANT_READ;
        if (!waits) ERR_clear_error();
        return waits;
      }
      const std::string_view bytes(plain_.data(), static_cast<std::size_t>(size));
      connection.owed += connection.requests.add(bytes, options_.request_bytes) * answers_.size();
    }
  }

  /// Sends what is owed, as far as the socket has room. Returns whether the connection goes on.
  bool answer(int descriptor, Connection& connection) {
    for (;;) {
      while (connection.owed != 0 && connection.unsent.empty() &&
             exchange.output.size() < output_bytes_max) {
        const std::string_view next = answers_.next(connection.owed);
        const int taken = SSL_write(connection.ssl, next.data(), static_cast<int>(next.size()));
        if (taken <= 0) exit_with_openssl_error("SSL_write");
        connection.owed -= static_cast<std::size_t>(taken);
        connection.ended = options_.close && connection.owed == 0;
        if (connection.ended) SSL_shutdown(connection.ssl);
      }
      if (!flush(descriptor, connection)) return connection.ssl != nullptr;
      if (connection.ended) {
        close(descriptor, connection);
        return false;
      }
      if (connection.owed == 0) return true;
    }
  }

  /// Returns whether everything is sent. Closes the connection if the peer has gone.
  bool flush(int descriptor, Connection& connection) {
    if (!connection.unsent.empty()) {
      connection.unsent += exchange.output;
      exchange.output.swap(connection.unsent);
      connection.unsent.clear();
    }
    std::string_view rest = exchange.output;
    // The close that follows goes into the packet of the last bytes.
    const int flags = MSG_NOSIGNAL | (connection.ended ? MSG_MORE : 0);
    while (!rest.empty()) {
      const ssize_t sent = ::send(descriptor, rest.data(), rest.size(), flags);
      if (sent < 0) {
        if (errno == EAGAIN) {
          connection.unsent = rest;
        } else {
          close(descriptor, connection);
        }
        break;
      }
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    const bool all = rest.empty();
    exchange.output.clear();
    return all;
  }

  static constexpr std::size_t output_bytes_max = 64 * 1024;
  static constexpr std::size_t large_bytes_min = 4096;

  const limit::Options options_;
  const limit::CannedResponses answers_;
  SSL_CTX* context_;
  BIO_METHOD* method_;
  std::array<char, 64 * 1024> input_;
  std::array<char, 64 * 1024> plain_;
};

void serve(const limit::Options& options, const Files& files, weir::os::Fd listener) {
  exchange.output.reserve(128 * 1024);
  std::make_unique<Server>(options, files, std::move(listener))->run();
}

}  // namespace

int main(int argc, char** argv) {
  Files files;
  auto options = limit::parse_options(
      argc, argv,
      {{.name = "--tls-cert", .value = &files.chain, .help = "chain in PEM", .required = true},
       {.name = "--tls-key", .value = &files.key, .help = "key in PEM", .required = true},
       {.name = "--cores", .value = &files.threads, .help = "threads", .min = 1, .max = 64},
       {.name = "--own-library",
        .value = &files.own_library,
        .help = "a library context for each thread"}});
  options.share_port = true;
  auto first = limit::start_listening(options);
  options.port = weir::os::local_address(first.get())->port();
  std::vector<std::jthread> threads;
  for (int made = 1; made < files.threads; ++made) {
    threads.emplace_back(serve, options, files, limit::start_listening(options));
  }
  serve(options, files, std::move(first));
}
