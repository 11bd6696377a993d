// The server, the client and the identities of a build without OpenSSL. A Server or a Client can be
// constructed, because a program may decide at run time whether it uses TLS. Each function that
// makes an identity, loads certificates or begins a handshake fails with no_openssl().
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/context.hpp"
#include "weir/tls/certificate/identity.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/detail/absent/no_openssl.hpp"
#include "weir/tls/detail/program_server.hpp"
#include "weir/tls/detail/records/aead_core.hpp"
#include "weir/tls/openssl_memory.hpp"
#include "weir/tls/server.hpp"

namespace weir::tls {

class detail::AcceptorState {};
class detail::ConnectorState {};

// A stream refers to the ciphers of its core. There are no streams, and these have no ciphers.
detail::AeadCore::~AeadCore() = default;

bool erase_openssl_memory() noexcept {
  return false;
}

// --- identities ----------------------------------------------------------------------------------

Identity::Data::~Data() {
  explicit_bzero(key.data(), key.size());
}

Outcome<Identity> Identity::from_pem(std::string_view, std::string_view) {
  return detail::no_openssl();
}

Outcome<Identity> Identity::self_signed(const SelfSigned&) {
  return detail::no_openssl();
}

// --- the server ----------------------------------------------------------------------------------

Server::Server(ServerOptions options) : options_(std::move(options)) {}
Server::~Server() = default;

Task<Outcome<>> Server::load() {
  co_return detail::no_openssl();
}

Task<> Server::watch() {
  co_return;
}

Task<Outcome<>> Server::load_once() {
  const Context context = co_await this_context();
  Outcome<> failed = detail::no_openssl();
  bool logs = false;
  {
    const std::lock_guard lock(mutex_);
    logs = !std::exchange(failure_logged_, true);
  }
  if (logs) context.loop->platform().log("weir: tls: " + failed.error().text());
  co_return failed;
}

void Server::set_ticket_keys(const TicketKeys&) {}

Outcome<std::shared_ptr<Server>> detail::program_server(const TlsArguments&) {
  return detail::no_openssl();
}

Acceptor::Acceptor(Loop&, const Server&) {}
Acceptor::~Acceptor() = default;

void Acceptor::set_plain_answer(PlainAnswer) noexcept {}

Task<Outcome<Stream>> Acceptor::accept(AnyStream) {
  co_return detail::no_openssl();
}

Task<Outcome<std::shared_ptr<Acceptor>>> Acceptor::make(Scope&, std::shared_ptr<Server> server) {
  if (server == nullptr) co_return nullptr;
  WEIR_CO_TRY(co_await server->load_once());
  co_return nullptr;
}

Task<Outcome<AnyStream>> accept(std::shared_ptr<Acceptor> acceptor, AnyStream inner) {
  if (acceptor == nullptr) co_return std::move(inner);
  co_return detail::no_openssl();
}

// --- the client ----------------------------------------------------------------------------------

Client::Client(ClientOptions options) : options_(std::move(options)) {}
Client::~Client() = default;

Task<Outcome<>> Client::load() {
  co_return detail::no_openssl();
}

Connector::Connector(Loop&, Client&) {}
Connector::Connector(Loop&, Client&, std::vector<std::string>) {}
Connector::~Connector() = default;

Task<Outcome<Stream>> Connector::connect(AnyStream, std::string) {
  co_return detail::no_openssl();
}

}  // namespace weir::tls
