#include "weir/tls/detail/handshakes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/timeout.hpp"
#include "weir/tls/detail/records/aead_records.hpp"
#include "weir/tls/detail/session.hpp"

namespace weir::tls::detail {

bool StepTurns::try_take() noexcept {
  const std::uint64_t turn = loop_.counters().turns.value();
  if (last_ == turn) return false;
  last_ = turn;
  return true;
}

Task<Result<>> StepTurns::wait() {
  WEIR_CO_TRY(auto first, co_await queue_.acquire());
  while (!try_take()) {
    WEIR_CO_TRY(co_await sleep(Duration::zero()));
  }
  co_return {};
}

namespace {

// The fatal alert illegal_parameter, which OpenSSL sends for a message beyond its limit.
constexpr std::string_view too_large("\x15\x03\x03\x00\x02\x02\x2f", 7);

// A record of early data, which is skipped, and the padding of a Finished (RFC 8446, 5.4).
constexpr std::size_t idle_bytes_max = 2 * (5 + RecordLayer::plain_max + 256);

/// Time for the peer to read an alert before its stream is closed.
constexpr Duration linger_time = std::chrono::seconds(1);

std::size_t number(Bytes bytes) {
  std::size_t value = 0;
  for (const std::byte each : bytes) value = value << 8 | std::to_integer<std::size_t>(each);
  return value;
}

/// Reads the first bytes of a client, until OpenSSL decides on them without waiting for more. They
/// hold a whole ClientHello (RFC 8446, 4.1.2), in one or more whole records, or something else.
class HelloScanner {
 public:
  /// Returns true if `bytes`, all bytes so far, suffice. It looks at each record once.
  bool is_complete(Bytes bytes) noexcept {
    for (; position_ + header <= bytes.size(); ++records_) {
      const Bytes rest = bytes.subspan(position_);
      // OpenSSL also reads a ClientHello in a record of SSL 2.0 (RFC 5246, E.2).
      const bool version_2 =
          records_ == 0 && (rest[0] & std::byte{0x80}) != std::byte{} && rest[2] == std::byte{1};
      if (version_2) return rest.size() >= (number(rest.first(2)) & 0x7fff) + 2;
      const std::size_t size = number(rest.subspan(3, 2));
      const bool wrong = rest[0] != handshake || rest[1] != std::byte{3} || size > record_max;
      if (wrong || records_ > RecordLayer::empty_records_max) return true;
      if (rest.size() < header + size) return false;
      const Bytes part = rest.subspan(header, size);
      for (std::size_t index = 0; index < size && hello_bytes_ + index < start_.size(); ++index) {
        start_[hello_bytes_ + index] = part[index];
      }
      hello_bytes_ += size;
      const std::size_t known = start_.size();
      if (hello_bytes_ >= known + number(Bytes(start_).subspan(1)) && hello_bytes_ >= known) {
        return true;
      }
      position_ += header + size;
    }
    return false;
  }

 private:
  static constexpr std::size_t header = 5;
  static constexpr std::size_t record_max = 16 * 1024 + 256;
  static constexpr std::byte handshake{22};

  std::size_t position_ = 0;  // of the next record
  std::size_t records_ = 0;
  std::size_t hello_bytes_ = 0;  // those of the message that have arrived
  std::array<std::byte, 4> start_{};
};

/// Appends bytes to a buffer that is no larger than twice its content.
void append(Buffer& buffer, Bytes bytes) {
  const std::size_t size = buffer.size() + bytes.size();
  if (buffer.room().size() < bytes.size()) {
    constexpr std::size_t least = 512;
    Buffer larger =
        Buffer::with_capacity(static_cast<std::uint32_t>(std::bit_ceil(std::max(size, least))));
    if (!buffer.empty()) std::memcpy(larger.room().data(), buffer.data(), buffer.size());
    larger.commit(buffer.size());
    buffer = std::move(larger);
  }
  std::memcpy(buffer.room().data(), bytes.data(), bytes.size());
  buffer.commit(bytes.size());
}

/// The lane of signatures in the pool that the loops share. It leaves a thread to other work, and
/// work that arrives later does not wait behind all signatures. HandshakeLimits bounds its queue.
class SigningLane {
 public:
  explicit SigningLane(BlockingPool& pool)
      : lane_(pool.add_lane({.name = "tls", .capacity = unlimited, .share_max = 0.5})) {}
  static PoolLane of(Loop& loop) {
    BlockingPool& pool = shared_pool(loop).pool();
    return loop.group().slots().get<SigningLane>(pool).lane_;
  }

 private:
  static constexpr std::size_t unlimited = PoolLaneOptions::unlimited;
  PoolLane lane_;
};

}  // namespace

Failure Handshakes::failed(Failure failure) noexcept {
  counters_.count_failure(failure.code());
  return failure;
}

/// Ends one stalled handshake for each that waits for a permit: the one that has waited longest.
void Handshakes::end_stalled() noexcept {
  const Instant now = clock_.now();
  while (permits_.available() == 0 && ended_for_waiting_ < waiting_for_permits_) {
    Stalled* longest = nullptr;
    for (Stalled* each = stalled_.front(); each != nullptr; each = stalled_.next(*each)) {
      if (longest == nullptr || each->since < longest->since) longest = each;
    }
    if (longest == nullptr) return;
    const Instant due = after(longest->since, stall_max);
    if (due > now) return loop_.timers().start(*this, due);
    longest->unlink();
    longest->ended = true;
    ++ended_for_waiting_;
    longest->inner.cancel_read();
  }
}

/// Receives the next bytes of the peer. Others may end the wait of a stalled handshake.
/// Errors: Error::peer_left; Error::too_many_handshakes if others need the permit.
Task<Result<Buffer>> Handshakes::receive(weir::Stream& inner,
                                         std::optional<Instant> stalled_since) {
  std::optional<Stalled> stalled;
  if (stalled_since) {
    stalled_.push_back(stalled.emplace(inner, *stalled_since));
    end_stalled();
  }
  Result<Buffer> bytes = co_await inner.read();
  const bool ended = stalled && stalled->ended;
  if (bytes) {
    stalled.reset();
    if (ended) {  // the bytes were faster
      if (ended_for_waiting_ != 0) --ended_for_waiting_;
      end_stalled();
    }
    co_return bytes;
  }
  if (bytes.error() != Errc::cancelled) co_return fail(Error::peer_left);
  co_return fail(ended ? make_error_code(Error::too_many_handshakes) : bytes.error());
}

Task<Result<>> Handshakes::receive_hello(weir::Stream& inner, Buffer& input, Instant end) const {
  HelloScanner scanner;
  for (;;) {
    const Result<Buffer> bytes = co_await inner.read({.timeout = end - clock_.now()});
    if (!bytes && bytes.error() == Errc::cancelled) co_return fail(Errc::cancelled);
    if (!bytes && bytes.error() == Errc::timed_out) co_return fail(Error::timed_out);
    if (!bytes) co_return fail(Error::peer_left);
    append(input, *bytes);
    if (scanner.is_complete(input.bytes())) co_return {};
    if (input.size() >= limits_.input_bytes_max) {
      std::ignore = co_await inner.write(too_large, {.timeout = end - clock_.now()});
      co_return fail(Error::input_too_large);
    }
  }
}

Task<Outcome<>> Handshakes::enter(AnyStream& inner, Duration hello_timeout, HandshakeEntry& entry) {
  counters_.begun.add();
  const Instant begin = clock_.now();
  entry.end = after(begin, limits_.timeout);
  const Instant hello_end = after(begin, std::min(hello_timeout, limits_.timeout));
  Result<> entered = co_await receive_hello(*inner, entry.input, hello_end);
  if (entered && !try_permit(entry.permit)) {
    auto waiting = wait_for_permit(entry.permit);
    entered = co_await timeout(entry.end - clock_.now(), std::move(waiting));
  }
  if (entered) co_return {};
  std::error_code code = entered.error();
  if (code == Errc::timed_out) code = Error::timed_out;
  if (code == Error::input_too_large) linger(std::move(inner));
  co_return std::unexpected(failed(Failure(code)));
}

/// Closes a stream when its peer can have read the alert. The kernel would drop the alert if it
/// closed a socket with unread input.
void Handshakes::linger(AnyStream inner) noexcept {
  if (inner->finish_writing()) lingering_.add(std::move(inner), linger_time);
}

Task<Failure> Handshakes::refuse_plain(AnyStream inner, std::string_view answer, Instant end) {
  const auto written = co_await inner->write(answer, {.timeout = end - clock_.now()});
  if (written) linger(std::move(inner));
  co_return failed(Failure(Error::plain_http));
}

Task<Outcome<Stream>> Handshakes::run(std::unique_ptr<SslEngine> engine, AnyStream inner,
                                      ProofLimits proof, std::optional<HandshakeEntry> entry) {
  const bool entered = entry.has_value();
  if (!entered) {
    counters_.begun.add();
    entry.emplace().end = after(clock_.now(), limits_.timeout);
  }
  Buffers buffers;
  buffers.input = std::move(entry->input);
  auto shaking = shake(*engine, *inner, buffers, entered);
  const Result<> shaken = co_await timeout(entry->end - clock_.now(), std::move(shaking));
  if (shaken) {
    TlsInfo info = engine->info();
    if (engine->has_verified_peer()) {
      info.proven_until = engine->proof().end(proof.lifetime);
      info.trust_replaced = std::move(proof.trust_replaced);
    }
    counters_.count_success(info);
    auto shared = share(std::move(info));
    auto records = records_of(std::move(engine));
    co_return Stream(make_block<Session>(std::move(inner), std::move(records), std::move(shared),
                                         std::move(buffers.input), std::move(buffers.output)));
  }
  std::error_code code = shaken.error();
  if (code == Errc::timed_out) code = Error::timed_out;
  if (buffers.alerted) linger(std::move(inner));
  co_return std::unexpected(
      failed(code == engine->error() ? engine->take_failure() : Failure(code)));
}

/// Returns Weir's record layer, or that of OpenSSL if the options say so or OpenSSL cannot hand the
/// connection over.
std::unique_ptr<RecordLayer> Handshakes::records_of(std::unique_ptr<SslEngine> engine) const {
  if (record_code_ == RecordCode::openssl) return engine;
  const std::optional<ConnectionKeys> keys = engine->keys();
  if (!keys) return engine;
  engine.reset();  // first, so that the layer uses its memory
  return std::make_unique<AeadRecords>(aead_, *keys);
}

/// Returns the facts of a connection. Most connections of a core have the same, which they share.
std::shared_ptr<const TlsInfo> Handshakes::share(TlsInfo info) {
  const auto equals = [&info](const std::shared_ptr<const TlsInfo>& other) {
    return other != nullptr && info.version == other->version && info.resumed == other->resumed &&
           info.cipher == other->cipher && info.protocol == other->protocol &&
           info.server_name == other->server_name;
  };
  if (info.peer != nullptr) return std::make_shared<const TlsInfo>(std::move(info));
  const auto known = std::ranges::find_if(latest_infos_, equals);
  if (known != latest_infos_.end()) return *known;
  auto& oldest = latest_infos_[next_info_++ % latest_infos_.size()];
  oldest = std::make_shared<const TlsInfo>(std::move(info));
  return oldest;
}

/// Takes a permit if neither it nor the rate has to be waited for.
bool Handshakes::try_permit(SemaphorePermit& permit) {
  std::optional<SemaphorePermit> free = waiting_ == 0 ? permits_.try_acquire() : std::nullopt;
  if (!free || (rate_ && !rate_->try_acquire(loop_.now()))) return false;
  permit = std::move(*free);
  return true;
}

/// Waits for the rate, and then for a permit. The waits are in the order of the calls.
Task<Result<>> Handshakes::wait_for_permit(SemaphorePermit& permit) {
  if (waiting_ >= limits_.waiting_max) co_return fail(Error::too_many_handshakes);
  const Queued queued(waiting_);
  co_return co_await wait_in_line(permit);
}

Task<Result<>> Handshakes::wait_in_line(SemaphorePermit& permit) {
  if (rate_) {
    WEIR_CO_TRY(co_await rate_->acquire());
  }
  const Queued queued(waiting_for_permits_);
  end_stalled();
  Result<SemaphorePermit> granted = co_await permits_.acquire();
  if (ended_for_waiting_ != 0) --ended_for_waiting_;
  if (!granted) co_return fail(granted.error());
  permit = std::move(*granted);
  co_return {};
}

/// Continues a handshake in the pool. The engine and the buffers are the pool's meanwhile: a
/// cancellation waits for the end of a call that has begun.
Task<Result<SslEngine::Step>> Handshakes::sign(SslEngine& engine, Buffers& buffers) {
  SslEngine::Step step{};
  const PoolLane lane = SigningLane::of(loop_);
  const auto work = [&] { step = engine.sign(buffers.input, buffers.output); };
  const Result<> done = co_await lane.run(work);
  if (!done && done.error() == Errc::cancelled) co_return fail(Errc::cancelled);
  if (!done) work();  // the kernel refuses to start a thread
  co_return step;
}

Task<Result<>> Handshakes::shake(SslEngine& engine, weir::Stream& inner, Buffers& buffers,
                                 bool entered) {
  using Step = SslEngine::Step;
  SemaphorePermit permit;
  std::size_t received = buffers.input.size();
  Instant last_answer = clock_.now();
  if (!entered && !try_permit(permit)) {
    WEIR_CO_TRY(co_await wait_for_permit(permit));
  }
  for (bool reads = false;; reads = true) {
    if (reads) {
      if (received >= limits_.input_bytes_max + idle_bytes_max) {
        co_return fail(Error::input_too_large);
      }
      const auto stalled_since = entered ? std::optional(last_answer) : std::nullopt;
      WEIR_CO_TRY(buffers.input, co_await receive(inner, stalled_since));
      received += buffers.input.size();
    }
    const bool may_compute = engine.may_compute();
    if (may_compute && !turns_.try_now()) {
      WEIR_CO_TRY(co_await turns_.wait());
    }
    Step step = engine.handshake(buffers.input, buffers.output);
    if (may_compute && !engine.computed()) turns_.give_back();
    if (step == Step::signs) {
      WEIR_CO_TRY(step, co_await sign(engine, buffers));
    }
    // A client that sends single bytes is as silent as another.
    if (!buffers.output.empty()) last_answer = clock_.now();
    // The tickets of TLS 1.3 travel with the first answer if its request is there already. They
    // must not wait for a request: a client without TCP_NODELAY keeps it until the kernel of this
    // side acknowledges the end of the handshake, which takes 40 ms without data to send.
    const bool held = step == Step::finished && engine.may_hold_output() && !buffers.input.empty();
    if (!held && !buffers.output.empty()) {
      const Result<> sent = co_await inner.write(buffers.output.bytes());
      buffers.output = {};
      if (!sent && sent.error() == Errc::cancelled) co_return fail(Errc::cancelled);
      if (!sent && step != Step::failed) co_return fail(Error::peer_left);
      buffers.alerted = sent && step == Step::failed;
    }
    if (step == Step::failed) co_return fail(engine.error());
    if (buffers.input.empty()) buffers.input = {};
    if (step == Step::finished) co_return {};
  }
}

}  // namespace weir::tls::detail
