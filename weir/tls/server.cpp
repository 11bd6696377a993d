#include "weir/tls/server.hpp"

#include <array>
#include <cerrno>
#include <functional>
#include <new>
#include <string_view>
#include <utility>

#include "weir/loop/detail/handover_state.hpp"
#include "weir/loop/detail/loop_group.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/context.hpp"
#include "weir/task/drain.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/handshakes.hpp"
#include "weir/tls/detail/program_server.hpp"
#include "weir/tls/detail/server_tickets.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/detail/tls_files.hpp"

namespace weir::tls {

using detail::ServerContexts;
using detail::ServerFiles;
using detail::ServerSnapshot;
using detail::SslEngine;

Server::Server(ServerOptions options)
    : options_(std::move(options)), tickets_(std::make_shared<detail::ServerTickets>()) {}
Server::~Server() = default;

std::shared_ptr<const ServerSnapshot> Server::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

// --- loading -------------------------------------------------------------------------------------

/// Publishes `fresh`. The caller has locked the mutex. Each call has a generation of its own.
void Server::publish(std::shared_ptr<ServerSnapshot> fresh) {
  if (fresh->ticket_keys) tickets_->set(*fresh->ticket_keys);
  detail::replace_trust(snapshot_.get(), *fresh);
  fresh->generation = snapshot_ == nullptr ? 1 : snapshot_->generation + 1;
  snapshot_ = std::move(fresh);
  loaded_status_ = nullptr;  // the files may be older ones again
  // release pairs with generation().
  generation_.store(snapshot_->generation, std::memory_order_release);
}

/// Publishes the result of a load, unless a later load was faster.
bool Server::publish_newest(std::uint64_t load, std::shared_ptr<ServerSnapshot> fresh) {
  const std::lock_guard lock(mutex_);
  // A load that began later has read the files later.
  if (load < newest_load_) return false;
  newest_load_ = load;
  publish(std::move(fresh));
  return true;
}

namespace {

/// Returns the name under which a newer process finds the tickets of the same server: that of all
/// options by which the servers of a program differ, except for limits. A program makes a new
/// certificate at each start, so the names of identities count instead of their keys.
std::string handover_name(const ServerOptions& options) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    text.append(std::to_string(part.size())).append(" ").append(part);
  };
  const auto add_all = [&](const std::vector<std::string>& parts) {
    text.append(std::to_string(parts.size())).append("\n");
    for (const std::string& each : parts) add(each);
  };
  for (const int choice :
       {static_cast<int>(options.client_certificates), static_cast<int>(options.unknown_name),
        static_cast<int>(options.version_min), options.client_trust.system ? 1 : 0}) {
    text.append(std::to_string(choice)).append("\n");
  }
  for (const Identity& each : options.identities) add_all(each.names());
  for (const IdentityFiles& each : options.files) add_all({each.chain, each.key});
  if (options.self_signed) add_all(options.self_signed->names);
  add_all(options.protocols);
  add_all(options.client_trust.files);
  add(options.client_trust.pem);
  add(options.ticket_key_file);
  std::array<std::uint8_t, 32> name{};
  detail::digest(detail::Hash::sha_256, to_bytes(text), name);
  return "tls tickets " + std::string(reinterpret_cast<const char*>(name.data()), name.size());
}

}  // namespace

/// Takes the ticket secret of an older process, and offers it to a newer one.
void Server::join_hot_restart(Loop& loop) {
  auto& state = loop.group().slots().get<loop::HandoverState>();
  const std::string name = handover_name(options_);
  std::string older = state.take(name);
  if (!older.empty()) tickets_->receive(std::move(older));
  loop::Platform& platform = loop.platform();
  state.offer(name, [tickets = tickets_, &platform] { return tickets->to_bytes(platform.now()); });
}

/// Parses and checks files in the pool.
Task<Outcome<std::shared_ptr<ServerSnapshot>>> Server::check(const ServerFiles& files) {
  const Context context = co_await this_context();
  const WallTime now = context.loop->platform().wall_time();
  Outcome<std::shared_ptr<ServerSnapshot>> made;
  std::function<void()> work = [&] { made = detail::make_snapshot(options_, files, now); };
  const Result<> ran = co_await detail::run_in_pool(std::move(work));
  if (!ran) co_return std::unexpected(Failure(ran.error()));
  co_return made;
}

Task<Outcome<std::shared_ptr<ServerSnapshot>>> Server::read() {
  const Context context = co_await this_context();
  if (options_.tickets) {
    WEIR_CO_TRY(tickets_->check());
    join_hot_restart(*context.loop);
  }
  WEIR_CO_TRY(const ServerFiles files, co_await detail::read_files(options_));
  co_return co_await check(files);
}

/// Returns the number of a load, which is about to read the files.
std::uint64_t Server::next_load() noexcept {
  return loads_begun_.fetch_add(1, std::memory_order_relaxed) + 1;
}

Task<Outcome<>> Server::load() {
  const std::uint64_t number = next_load();
  WEIR_CO_TRY(std::shared_ptr<ServerSnapshot> fresh, co_await read());
  publish_newest(number, std::move(fresh));
  co_return {};
}

Task<Outcome<>> Server::load_once() {
  if (loaded()) co_return {};
  const Context context = co_await this_context();
  Outcome<std::shared_ptr<ServerSnapshot>> fresh = co_await read();
  const std::lock_guard lock(mutex_);
  if (snapshot_ != nullptr) co_return {};  // another core was first
  if (!fresh) {
    const bool logs =
        fresh.error().code() != Errc::cancelled && !std::exchange(failure_logged_, true);
    if (logs) context.loop->platform().log("weir: tls: " + fresh.error().text());
    co_return std::unexpected(fresh.error());
  }
  publish(std::move(*fresh));
  co_return {};
}

void Server::set_ticket_keys(const TicketKeys& keys) {
  tickets_->set(keys);
}

// --- watching the files --------------------------------------------------------------------------

namespace {

// Largest number of waits for files that change without a pause.
constexpr int debounces_max = 10;

}  // namespace

/// Returns true for one caller in each poll interval.
bool Server::is_my_poll(Instant now) {
  const std::lock_guard lock(mutex_);
  if (now < next_poll_) return false;
  next_poll_ = after(now, options_.watch->poll_interval);
  return true;
}

bool Server::is_loaded(const ServerFiles& files) const {
  const std::lock_guard lock(mutex_);
  return snapshot_ != nullptr && snapshot_->digest == files.digest;
}

/// Returns true if the files have the status in which their content was found to be loaded.
bool Server::is_loaded(const detail::FilesStatus& status) const {
  const std::lock_guard lock(mutex_);
  return loaded_status_ != nullptr && *loaded_status_ == status;
}

void Server::set_loaded(detail::FilesStatus status) {
  auto loaded = std::make_shared<const detail::FilesStatus>(std::move(status));
  const std::lock_guard lock(mutex_);
  loaded_status_ = std::move(loaded);
}

/// Loads the files if they differ from the loaded ones and have been stable for a moment.
/// Errors: those of load().
Task<Outcome<>> Server::reload_changed() {
  const Context context = co_await this_context();
  WEIR_CO_TRY(detail::FilesStatus status, co_await detail::files_status(options_));
  if (is_loaded(status)) co_return {};
  const bool settled = status.is_settled(context.loop->platform().wall_time());
  WEIR_CO_TRY(ServerFiles files, co_await detail::read_files(options_));
  std::uint64_t number = 0;
  bool stable = false;
  for (int waits = 0; waits < debounces_max && !stable; ++waits) {
    if (is_loaded(files)) {
      if (settled && waits == 0) set_loaded(std::move(status));
      co_return {};
    }
    const Result<> slept = co_await sleep(options_.watch->debounce_time);
    if (!slept) co_return std::unexpected(Failure(slept.error()));
    number = next_load();
    WEIR_CO_TRY(ServerFiles again, co_await detail::read_files(options_));
    stable = again.digest == files.digest;
    files = std::move(again);
  }
  WEIR_CO_TRY(std::shared_ptr<ServerSnapshot> fresh, co_await check(files));
  std::string text = "weir: tls: loaded changed files:";
  for (const Identity& each : fresh->identities) {
    text.append(each.names().empty() ? " a certificate" : " " + each.names().front());
    text.append(" until ").append(detail::to_text(each.not_after()));
  }
  if (publish_newest(number, std::move(fresh))) context.loop->platform().log(text);
  co_return {};
}

/// Logs a failure once, until another one or a success.
void Server::log_reload_failure(Loop& loop, const std::string& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(reload_failure_, failure) == failure || failure.empty()) return;
  }
  loop.platform().log("weir: tls: changed files are not used: " + failure);
}

Task<> Server::watch() {
  if (!options_.watch) co_return;
  const Context outside = co_await this_context();
  inject::CancelOnDrain until(outside);
  for (;;) {
    auto waiting = as_task(sleep(options_.watch->poll_interval));
    const Result<> slept = co_await in_context(until.context(), std::move(waiting));
    if (!slept) co_return;
    const Instant now = outside.loop->platform().now();
    if (!is_my_poll(now)) continue;
    Outcome<> loaded;
    try {
      std::ignore = tickets_->keys(now);  // erases old secrets of a server without handshakes
      auto reloading = reload_changed();
      loaded = co_await in_context(until.context(), std::move(reloading));
    } catch (const std::bad_alloc&) {
      loaded = std::unexpected(Failure(system_error(ENOMEM)));  // the next poll tries again
    }
    if (!loaded && loaded.error().code() == Errc::cancelled) co_return;
    log_reload_failure(*outside.loop, loaded ? "" : loaded.error().text());
  }
}

// --- accepting -----------------------------------------------------------------------------------

class detail::AcceptorState {
 public:
  AcceptorState(Loop& loop, const Server& server)
      : loop_(loop),
        server_(server),
        handshakes_(loop, server.options().limits, server.options().records) {}

  void set_plain_answer(Acceptor::PlainAnswer answer) noexcept { plain_answer_ = answer; }

  Task<Outcome<Stream>> accept(AnyStream inner) {
    if (!server_.loaded()) {
      co_return std::unexpected(Failure(Error::invalid_options, "the server is not loaded"));
    }
    // The objects of OpenSSL for a client are made when its first message is complete.
    detail::HandshakeEntry entry;
    WEIR_CO_TRY(co_await handshakes_.enter(inner, server_.options().hello_timeout, entry));
    if (plain_answer_ != nullptr) {
      const std::string_view answer = plain_answer_(entry.input.bytes());
      if (!answer.empty()) {
        auto refused = handshakes_.refuse_plain(std::move(inner), answer, entry.end);
        Failure failure = co_await std::move(refused);
        co_return std::unexpected(std::move(failure));
      }
    }
    // The callbacks of the handshake use the contexts, which a change may replace meanwhile.
    if (server_.generation() != generation_) {
      auto making = current_contexts();
      const Result<> current =
          co_await timeout(entry.end - loop_.platform().now(), std::move(making));
      if (!current) co_return std::unexpected(handshakes_.failed(failure_of(current.error())));
    }
    const std::shared_ptr<ServerContexts> used = contexts_;
    used->set_ticket_keys(server_.tickets_->keys(loop_.platform().now()));
    auto engine = SslEngine::make(used->first(), SslEngine::Side::server);
    if (!engine) co_return std::unexpected(handshakes_.failed(std::move(engine.error())));
    (*engine)->set_clock(loop_.platform());
    detail::ProofLimits proof{server_.options().session_lifetime, used->snapshot().trust_replaced};
    co_return co_await handshakes_.run(std::move(*engine), std::move(inner), std::move(proof),
                                       std::move(entry));
  }

 private:
  static Failure failure_of(std::error_code code) {
    return code == Errc::timed_out ? Failure(Error::timed_out) : Failure(code);
  }
  /// Makes the contexts of the newest snapshot. The pool makes them once after each change. If it
  /// cannot, the core uses the older ones and tries again at the next handshake.
  Task<Result<>> current_contexts() {
    WEIR_CO_TRY(const SemaphorePermit turn, co_await making_.acquire());
    if (server_.generation() == generation_) co_return {};
    const std::shared_ptr<const ServerSnapshot> snapshot = server_.snapshot();
    Outcome<std::unique_ptr<ServerContexts>> made;
    std::function<void()> work = [&] { made = ServerContexts::make(server_.options(), snapshot); };
    WEIR_CO_TRY(co_await detail::run_in_pool(std::move(work)));
    if (!made && contexts_ == nullptr) co_return fail(made.error().code());
    if (!made) co_return {};
    contexts_ = std::move(*made);
    generation_ = snapshot->generation;
    co_return {};
  }

  Loop& loop_;
  const Server& server_;
  Handshakes handshakes_;
  Acceptor::PlainAnswer plain_answer_ = nullptr;
  Semaphore making_{1};
  std::shared_ptr<ServerContexts> contexts_;
  std::uint64_t generation_ = 0;  // that of the contexts
};

namespace {

Outcome<ServerOptions> server_options(const TlsArguments& arguments, WallTime now) {
  ServerOptions options;
  for (std::size_t index = 0; index < arguments.certificates.size(); ++index) {
    options.files.push_back(
        {.chain = arguments.certificates.at(index), .key = arguments.keys.at(index)});
  }
  if (arguments.self_signed) {
    // Worker processes share one certificate, because it is made before they are forked.
    SelfSigned certificate;
    certificate.not_before = now;
    WEIR_TRY(Identity identity, Identity::self_signed(certificate));
    options.identities.push_back(std::move(identity));
  }
  options.ticket_key_file = arguments.ticket_keys;
  options.client_trust.files = arguments.client_cas;
  if (!arguments.client_cas.empty()) options.client_certificates = ClientCertificates::required;
  const bool has_files = !options.files.empty() || !options.ticket_key_file.empty() ||
                         !options.client_trust.files.empty();
  if (has_files) options.watch.emplace();
  return options;
}

}  // namespace

Outcome<std::shared_ptr<Server>> detail::program_server(const TlsArguments& arguments) {
  auto options = server_options(arguments, OsPlatform().wall_time());
  if (!options) return std::unexpected(std::move(options.error()));
  return std::make_shared<Server>(std::move(*options));
}

Acceptor::Acceptor(Loop& loop, const Server& server)
    : state_(std::make_unique<detail::AcceptorState>(loop, server)) {}
Acceptor::~Acceptor() = default;

void Acceptor::set_plain_answer(PlainAnswer answer) noexcept {
  state_->set_plain_answer(answer);
}

Task<Outcome<Stream>> Acceptor::accept(AnyStream inner) {
  return state_->accept(std::move(inner));
}

namespace {

Task<> watch_files(std::shared_ptr<Server> server) {
  co_await server->watch();
}

}  // namespace

Task<Outcome<std::shared_ptr<Acceptor>>> Acceptor::make(Scope& scope,
                                                        std::shared_ptr<Server> server) {
  if (server == nullptr) co_return nullptr;
  WEIR_CO_TRY(co_await server->load_once());
  auto acceptor = std::make_shared<Acceptor>(scope.loop(), *server);
  acceptor->server_ = server;
  if (server->options().watch) scope.spawn(watch_files(std::move(server)));
  co_return acceptor;
}

Task<Outcome<AnyStream>> accept(std::shared_ptr<Acceptor> acceptor, AnyStream inner) {
  if (acceptor == nullptr) co_return std::move(inner);
  WEIR_CO_TRY(Stream secured, co_await acceptor->accept(std::move(inner)));
  co_return AnyStream(std::move(secured));
}

}  // namespace weir::tls
