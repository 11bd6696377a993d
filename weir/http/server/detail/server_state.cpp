#include "weir/http/server/detail/server_state.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/server/detail/call.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/plain_http_answer.hpp"
#include "weir/loop/detail/metric_row.hpp"
#include "weir/runtime/checks/machine_checks.hpp"
#include "weir/runtime/detail/connection_counters.hpp"
#include "weir/task/context.hpp"
#include "weir/task/scope.hpp"

namespace weir::http {
namespace {

using checks::descriptors_reserved;

// Connections whose bytes may still be on their way are not evicted.
// A network with less than an eighth of those that a search sees gives none to others.
constexpr std::size_t part_of_sample = 8;
// Numbers of connections and of handshakes that one search looks at.
constexpr unsigned connections_sampled = 128;
constexpr unsigned handshakes_sampled = 32;

std::size_t default_connections_max(Loop& loop) {
  const std::size_t all = loop.platform().descriptor_limit().descriptors_max;
  return all > descriptors_reserved ? all - descriptors_reserved : 1;
}

// The descriptions of ServerCounters for exporters.

constexpr MetricInfo closed_info(std::string_view reason) {
  return {.name = "weir.http.connections.closed",
          .unit = "{connection}",
          .help = "Connections that servers have closed, by reason.",
          .label = "reason",
          .label_value = reason};
}

using CounterRow = weir::detail::MetricRow<ServerCounters>;
using weir::detail::count_of;

constexpr CounterRow counter_rows[]{
    {"http connections",
     count_of<&ServerCounters::connections_accepted>,
     {"weir.http.connections", "{connection}", "Connections that HTTP servers have accepted."}},
    {"http connections open",
     count_of<&ServerCounters::connections_open>,
     {"weir.http.connections.open", "{connection}", "Open connections of HTTP servers."},
     Metric::Kind::gauge},
    {"http connections rejected", count_of<&ServerCounters::connections_rejected>,
     closed_info("too_many")},
    {.name = "http idle connections closed for others",
     .value = count_of<&ServerCounters::connections_evicted>,
     .info = closed_info("evicted"),
     .when_used = true},
    {"http websockets",
     count_of<&ServerCounters::websockets>,
     {"weir.http.websockets", "{connection}", "Connections that became WebSockets."}},
    {"http websockets open",
     count_of<&ServerCounters::websockets_open>,
     {"weir.http.websockets.open", "{connection}", "Open WebSockets."},
     Metric::Kind::gauge},
    {"http2 connections",
     count_of<&ServerCounters::http2_connections>,
     {"weir.http2.connections", "{connection}", "Connections of servers that speak HTTP/2."}},
    {"http2 streams",
     count_of<&ServerCounters::http2_streams>,
     {"weir.http2.streams", "{stream}", "Streams that clients have opened."}},
    {"http2 streams open",
     count_of<&ServerCounters::http2_streams_open>,
     {"weir.http2.streams.open", "{stream}", "Open streams of servers."},
     Metric::Kind::gauge},
    {"http2 streams reset",
     count_of<&ServerCounters::http2_streams_reset>,
     {"weir.http2.streams.reset", "{stream}", "Open streams that either side has reset."}},
    {"http2 streams refused",
     count_of<&ServerCounters::http2_streams_refused>,
     {"weir.http2.streams.refused", "{stream}", "Streams refused because of the limits."}},
    {"http connections without a request", count_of<&ServerCounters::silent_connections>,
     closed_info("silent")},
    {.name = "http bad PROXY headers",
     .value = count_of<&ServerCounters::bad_proxy_headers>,
     .info = closed_info("bad_proxy_header"),
     .when_used = true},
    {"http slow readers", count_of<&ServerCounters::slow_readers>, closed_info("slow_reader")},
    {"http requests",
     count_of<&ServerCounters::requests>,
     {"weir.http.requests", "{request}", "Heads of requests parsed."}},
    {"http responses",
     count_of<&ServerCounters::responses>,
     {"weir.http.responses", "{response}", "Responses handed over for sending."}},
    {"http handler failures",
     count_of<&ServerCounters::handler_failures>,
     {"weir.http.handler.failures", "{failure}", "Exceptions and errors of handlers."}},
};

std::array<MetricInfo, parse_error_count> make_rejected_infos() {
  std::array<MetricInfo, parse_error_count> infos{};
  for (std::size_t index = 0; index < parse_error_count; ++index) {
    infos[index] = {.name = "weir.http.requests.rejected",
                    .unit = "{request}",
                    .help = "Requests rejected by the server, by reason.",
                    .label = "reason",
                    .label_value = name_of(static_cast<ParseError>(index))};
  }
  return infos;
}

}  // namespace

/// Runs on any thread, see MetricSource. Parse errors with a count of 0 are left out.
void ServerCounters::collect(MetricSnapshot& sum) const {
  weir::detail::collect_rows<ServerCounters>(sum, counter_rows, *this);
  static const auto rejected_infos = make_rejected_infos();
  for (std::size_t index = 1; index < parse_error_count; ++index) {
    const std::uint64_t count = parse_errors[index].value();
    if (count == 0) continue;
    const MetricInfo& info = rejected_infos[index];
    sum.add({"http requests rejected: " + std::string(info.label_value), count,
             Metric::Kind::counter, &info});
  }
}

std::string ServerCounters::summary() const {
  std::string text = std::to_string(connections_accepted.value()) + " connections, " +
                     std::to_string(requests.value()) + " requests";
  const auto mention = [&text](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    text.append(", ").append(std::to_string(count)).append(" ").append(what);
  };
  mention(connections_rejected.value(), "connections rejected");
  mention(connections_evicted.value(), "closed for others");
  mention(silent_connections.value(), "without a request");
  mention(slow_readers.value(), "slow readers");
  mention(handler_failures.value(), "handler failures");
  for (std::size_t index = 0; index < parse_error_count; ++index) {
    mention(parse_errors[index].value(), name_of(static_cast<ParseError>(index)));
  }
  return text;
}

RequestRecorder::RequestRecorder(Loop& loop, ServerObserver& observer) noexcept
    : TurnObserver([](TurnObserver& self) { static_cast<RequestRecorder&>(self).flush(); }),
      loop_(loop),
      observer_(observer) {
  loop.metrics().add(*this);
}

RequestRecorder::~RequestRecorder() {
  if (count_ != 0) flush();
  detach();
}

void RequestRecorder::flush() noexcept {
  TurnObserver::unlink();
  const std::size_t count = std::exchange(count_, 0);
  observer_.on_requests_ended(loop_, loop_.now(), std::span(records_.data(), count));
}

void RequestRecorder::collect(MetricSnapshot& sum) const {
  static constexpr MetricInfo info{.name = "http.server.active_requests",
                                   .unit = "{request}",
                                   .help = "Number of requests that have begun and not ended."};
  sum.add({"http requests active", active_.value(), Metric::Kind::gauge, &info});
}

void ResponseHeads::refresh() noexcept {
  const WallTime now = loop_.platform().wall_time();
  date_ = Date(now);
  common_ = ResponseHeadCache();
  common_block_ = ResponseBlockCache();
  const Duration into_second = now.time_since_epoch() % std::chrono::seconds(1);
  date_until_ = after(loop_.now(), std::chrono::seconds(1) - into_second);
}

ConnectionPermit::~ConnectionPermit() {
  if (server_ == nullptr) return;
  server_->connections().release_permit();
}

namespace {

/// The counts of the servers of a group. It is a slot of the group.
struct ServerConnectionCounts {
  struct Entry {
    const Router* router;
    Endpoint endpoint;
    std::weak_ptr<ServerConnectionCount> count;
  };
  std::mutex mutex;  // guards the entries
  std::vector<Entry> entries;
};

}  // namespace

std::shared_ptr<ServerConnectionCount> ServerConnectionCount::of(Loop& loop, const Router& router,
                                                                 const Endpoint& endpoint) {
  auto& counts = loop.group().slots().get<ServerConnectionCounts>();
  const std::lock_guard lock(counts.mutex);
  std::erase_if(counts.entries, [](const auto& each) { return each.count.expired(); });
  for (const auto& each : counts.entries) {
    if (each.router != &router || each.endpoint != endpoint) continue;
    if (auto count = each.count.lock()) return count;
  }
  auto made = std::make_shared<ServerConnectionCount>();
  counts.entries.push_back({&router, endpoint, made});
  return made;
}

ConnectionReserve::Use::Use(ConnectionReserve* reserve, Loop& loop)
    : reserve_(reserve), loop_(loop) {
  if (reserve_ == nullptr) return;
  Sum& sum = Sum::of(loop);
  const std::lock_guard lock(sum.mutex);
  if (reserve_->servers_++ == 0) sum.size.fetch_add(reserve_->size_, std::memory_order_relaxed);
}

ConnectionReserve::Use::~Use() {
  if (reserve_ == nullptr) return;
  Sum& sum = *loop_.group().slots().find<Sum>();
  const std::lock_guard lock(sum.mutex);
  if (--reserve_->servers_ == 0) sum.size.fetch_sub(reserve_->size_, std::memory_order_relaxed);
}

OpenConnections::OpenConnections(ServerState& server, Loop& loop, std::size_t most,
                                 ConnectionReserve* reserve)
    : DrainObserver([](DrainObserver& self) { static_cast<OpenConnections&>(self).drain(); }),
      server_(server),
      reserve_(reserve, loop),
      all_open_(reserve != nullptr ? reserve->open() : ServerConnections::of(loop).open),
      connections_max_(most),
      reserved_(nullptr),
      draining_(loop.draining()) {
  if (reserve != nullptr) {
    connections_max_ = std::max<std::size_t>(reserve->size(), 1);
  } else if (most == 0) {
    connections_max_ = default_connections_max(loop);
    reserved_ = &ConnectionReserve::sum_of(loop);
  } else {
    own_ = ServerConnectionCount::of(loop, server.router(), Endpoint());
  }
  if (!draining_) loop.observe_drain(*this);
}

void OpenConnections::set_endpoint(const Endpoint& endpoint) {
  assert(open_.empty());
  if (own_ == nullptr) return;
  own_ = ServerConnectionCount::of(server_.loop(), server_.router(), endpoint);
}

std::size_t OpenConnections::permits_max() const noexcept {
  if (reserved_ == nullptr) return connections_max_;
  const std::size_t reserved = reserved_->load(std::memory_order_relaxed);
  return connections_max_ - std::min(reserved, connections_max_ - 1);
}

/// Uses relaxed order, because only the number itself passes between cores.
std::optional<ConnectionPermit> OpenConnections::try_acquire_permit() noexcept {
  const std::size_t most = permits_max();
  std::atomic<std::size_t>& limited = own_ != nullptr ? own_->open : all_open_;
  std::size_t in_use = limited.load(std::memory_order_relaxed);
  do {
    if (in_use >= most) return std::nullopt;
  } while (!limited.compare_exchange_weak(in_use, in_use + 1, std::memory_order_relaxed));
  if (own_ != nullptr) all_open_.fetch_add(1, std::memory_order_relaxed);
  return ConnectionPermit(server_);
}

namespace {

/// A connection or a handshake that a search looks at.
struct Sampled {
  os::IpBytes network;
  Instant may_go;  // the time from which it may be evicted; `never`: it has a request
  Connection* connection;
  HandshakeNode* handshake;
};

/// Returns the one that gives way to a new connection of `newcomer`: of the network with the most,
/// the one that waits longest. A network with a small part of the sample keeps all, because those
/// of the newcomer may be outside the sample, or behind a balancer. Sorts the sample. Returns
/// nullptr if none may be taken.
const Sampled* find_evictable(std::span<Sampled> sample, const os::IpBytes& newcomer, Instant now) {
  std::ranges::sort(sample, {}, &Sampled::network);
  const auto own = std::ranges::equal_range(sample, newcomer, {}, &Sampled::network);
  const Sampled* found = nullptr;
  std::size_t found_of = 0;
  for (auto begin = sample.begin(); begin != sample.end();) {
    const auto end =
        std::ranges::upper_bound(begin, sample.end(), begin->network, {}, &Sampled::network);
    const auto count = static_cast<std::size_t>(end - begin);
    const auto longest = std::ranges::min_element(begin, end, {}, &Sampled::may_go);
    const bool is_own = begin->network == newcomer;
    const bool has_many = count > own.size() + 1 && count * part_of_sample >= sample.size();
    if (longest->may_go <= now && (is_own || has_many) && count > found_of) {
      found = &*longest;
      found_of = count;
    }
    begin = end;
  }
  return found;
}

}  // namespace

std::optional<ConnectionPermit> OpenConnections::acquire_permit(const Stream& stream) {
  auto permit = try_acquire_permit();
  if (permit || evictions_ >= evictions_max) return permit;
  std::array<Sampled, connections_sampled + handshakes_sampled> room;
  std::size_t size = 0;
  ConnectionNode* const first = next_sampled_ != nullptr ? next_sampled_ : open_.front();
  for (next_sampled_ = first; next_sampled_ != nullptr && size < connections_sampled;) {
    auto& each = static_cast<Connection&>(*next_sampled_);
    room[size++] = {each.network(), each.may_be_evicted_from(), &each, nullptr};
    next_sampled_ = open_.next(each);
    if (next_sampled_ == nullptr) next_sampled_ = open_.front();
    if (next_sampled_ == first) break;
  }
  HandshakeNode* handshake = handshakes_.front();  // the oldest
  for (unsigned count = 0; handshake != nullptr && count < handshakes_sampled; ++count) {
    room[size++] = {handshake->network(),
                    after(handshake->begun(), Connection::idle_before_eviction), nullptr,
                    handshake};
    handshake = handshakes_.next(*handshake);
  }
  // Only a full server asks the kernel for the address.
  const os::IpBytes newcomer = os::client_network(stream.peer_address());
  const Sampled* const found =
      find_evictable(std::span(room).first(size), newcomer, server_.loop().now());
  if (found == nullptr) return std::nullopt;
  ++evictions_;
  server_.counters().connections_evicted.add();
  return found->handshake != nullptr ? found->handshake->evict() : found->connection->evict();
}

void OpenConnections::release_permit() noexcept {
  all_open_.fetch_sub(1, std::memory_order_relaxed);
  if (own_ != nullptr) own_->open.fetch_sub(1, std::memory_order_relaxed);
}

void OpenConnections::add(ConnectionNode& connection) noexcept {
  open_.push_back(connection);
  server_.counters().connections_accepted.add();
  server_.counters().connections_open.add();
}

void OpenConnections::remove(ConnectionNode& connection) noexcept {
  if (next_sampled_ == &connection) next_sampled_ = open_.next(connection);
  connection.unlink();
  server_.counters().connections_open.subtract();
}

Rejection::Rejection(ServerState& server) noexcept : connections_(server.connections()) {
  ++connections_.rejections_;
}

Rejection::~Rejection() {
  --connections_.rejections_;
}

bool Rejection::too_many() const noexcept {
  return connections_.rejections_ > OpenConnections::rejections_max;
}

void OpenConnections::drain() {
  if (std::exchange(draining_, true)) return;
  for (ConnectionNode* each = open_.front(); each != nullptr; each = open_.next(*each)) {
    static_cast<Connection&>(*each).drain();
  }
  while (HandshakeNode* const handshake = handshakes_.pop_front()) handshake->drain();
  while (DrainNode* const websocket = websockets_.pop_front()) websocket->drain();
}

void OpenConnections::drain_unproven() {
  for (ConnectionNode* each = open_.front(); each != nullptr; each = open_.next(*each)) {
    auto& connection = static_cast<Connection&>(*each);
    if (connection.proof_ended()) connection.drain();
  }
}

/// Waits until no WebSocket is open; a cancellation does not end it.
class OpenWebSockets::AllClosedAwaiter : public Waiter {
 public:
  explicit AllClosedAwaiter(OpenWebSockets& sockets) noexcept : sockets_(sockets) {}
  bool await_ready() const noexcept { return sockets_.open_.value() == 0; }
  template <HasContext Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    set_coroutine(handle);
    sockets_.waiter_ = this;
  }
  void await_resume() const noexcept {}

 private:
  OpenWebSockets& sockets_;
};

void OpenWebSockets::keep_open(Scope& connections) {
  if (!waits_) connections.spawn(wait());
}

void OpenWebSockets::on_closed() noexcept {
  if (waiter_ == nullptr || open_.value() != 0) return;
  loop_.ready(*std::exchange(waiter_, nullptr));
}

Task<> OpenWebSockets::wait() {
  const weir::detail::Counter& open = open_;
  waits_ = true;
  while (open.value() != 0) co_await AllClosedAwaiter(*this);
  waits_ = false;
}

ServerState::ServerState(Loop& loop, const Router& router, const Limits& limits,
                         std::shared_ptr<tls::Server> tls, PlainHttp2 plain_http2,
                         std::shared_ptr<const ProxyProtocol> proxy_protocol,
                         ServerObserver* observer, ConnectionReserve* reserve)
    : loop_(loop),
      router_(router),
      limits_(limits),
      id_prefix_(request_id_prefix(loop.platform().wall_time(), loop.core())),
      routes_(loop, router.updater()),
      counters_(loop),
      connections_(*this, loop, limits.connections_max, reserve),
      websockets_(loop, counters_.websockets_open),
      lingering_streams_(loop),
      heads_(loop),
      tls_(std::move(tls)),
      plain_http2_(plain_http2),
      proxy_protocol_(std::move(proxy_protocol)) {
  loop.slots().get<CoreServers>().servers.push_back(*this);
  limits_.h2 = in_range(limits_.h2);
  limits_.h2.connect_protocol = true;
  if (observer != nullptr) recorder_ = std::make_unique<RequestRecorder>(loop, *observer);
  if (tls_ != nullptr) acceptor_.emplace(loop, *tls_).set_plain_answer(&plain_http_answer);
}

void ServerState::make_request_fields() {
  RequestFieldLimits limits;
  limits.head = limits_.head;
  limits.chunks = limits_.chunks;
  limits.list_bytes_max = limits_.h2.field_list_max;
  limits.extended_connect = limits_.h2.connect_protocol;
  request_fields_ = std::make_unique<RequestFieldReader>(limits);
}

}  // namespace weir::http
