#include "weir/web/encoding/decompress_requests.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/compression/error.hpp"
#include "weir/http/message/detail/decompressing_reader.hpp"
#include "weir/http/message/detail/scoped_body.hpp"
#include "weir/http/server/detail/client_side.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/task/context.hpp"
#include "weir/web/clients/detail/client_slots.hpp"
#include "weir/web/encoding/detail/encoding_core.hpp"

namespace weir::http {
namespace {

using compression::Coding;
using compression::Decompressor;

constexpr std::array accepted{Coding::zstd, Coding::brotli, Coding::gzip, Coding::deflate};

std::string accept_encoding() {
  std::string names;
  for (const Coding each : accepted) {
    if (!compression::is_available(each)) continue;
    names.append(names.empty() ? "" : ", ").append(name_of(each));
  }
  return names.empty() ? "identity" : names;
}

/// Returns the coding of a request's body; nullopt if it has several ones, or one without a name
/// that is known.
std::optional<Coding> coding_of(const RequestHead& head) noexcept {
  Coding coding = Coding::identity;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!equals_ignoring_case(field.name, "content-encoding")) continue;
    const auto named = compression::coding_of(field.value);
    if (!named || coding != Coding::identity) return std::nullopt;
    coding = *named;
  }
  return coding;
}

// A decompressed body up to this size is part of its request, like one of the handler. A larger one
// keeps its slot until the request ends.
constexpr std::size_t small_body_max = 16 * 1024;

detail::ClientSlots::Limits slots_of(const DecompressRequestLimits& limits) noexcept {
  return {{limits.concurrency_max, limits.waiting_max}, limits.queue_timeout};
}

/// The decompressed body of a request. It has a decompressor from its first bytes to its end, so
/// that clients that send nothing hold none. The slot bounds the bytes that collect() keeps too.
class DecompressedBody final : public BodySource {
 public:
  /// The coding is available.
  DecompressedBody(const Request& request, Coding coding, const DecompressRequestLimits& limits,
                   detail::EncodingCore& core)
      : from_(request.body_source()),
        coding_(coding),
        limits_(limits),
        core_(core),
        slots_(core.decompressor_slots(slots_of(limits))),
        client_(slots_.client_of(request)) {}
  DecompressedBody(const DecompressedBody&) = delete;
  DecompressedBody& operator=(const DecompressedBody&) = delete;
  ~DecompressedBody() override { release_reader(); }

  Task<Result<Bytes>> read_piece() override {
    if (error_) co_return fail(error_);
    if (!reader_ && !ended_) {
      const Result<> begun = co_await begin();
      if (!begun) co_return fail_with(begun.error());
    }
    if (ended_) co_return Bytes();
    const Result<Bytes> piece = co_await reader_->read(arriving_);
    if (!piece && reader_->ended()) core_.rejected_requests().add();
    if (!piece) co_return fail_with(piece.error());
    if (reader_->ended()) end();
    co_return piece;
  }
  Task<Result<std::string_view>> collect() override {
    for (;;) {
      const Result<Bytes> piece = co_await read_piece();
      if (!piece) co_return fail(piece.error());
      if (piece->empty()) co_return std::string_view(all_);
      all_ += to_text(*piece);
    }
  }
  BodyLength length() const noexcept override { return BodyLength::unknown(); }
  const Headers& trailers() const noexcept override { return from_.trailers(); }
  os::Address peer_address() const override { return from_.peer_address(); }
  const TlsInfo* tls() const noexcept override { return from_.tls(); }
  bool is_http2() const noexcept override { return from_.is_http2(); }
  const void* connection() const noexcept override { return from_.connection(); }
  bool is_decoded() const noexcept override { return true; }
  BodySource& coded() noexcept override {
    const bool has_read = reader_ || ended_ || error_ || arriving_.has_first();
    return has_read ? static_cast<BodySource&>(*this) : from_;
  }

 private:
  using Slots = detail::ClientSlots;

  /// The bytes that arrive, with those that begin() has read.
  class Arriving {
   public:
    explicit Arriving(DecompressedBody& body) noexcept : body_(body), client_(body.slot_) {}
    void set_first(Bytes first) noexcept { first_ = first; }
    bool has_first() const noexcept { return !first_.empty(); }
    Task<Result<Bytes>> read() {
      if (!first_.empty()) co_return std::exchange(first_, {});
      auto reading = client_.read(body_.from_);
      co_return co_await std::move(reading);
    }

   private:
    DecompressedBody& body_;
    ClientSide client_;
    Bytes first_;
  };

  /// Waits for the first bytes of the body, and then for a decompressor.
  /// Errors: those of the source and of ClientSlots::acquire().
  Task<Result<>> begin() {
    // A read that was cancelled in the queue has left the first bytes.
    if (!arriving_.has_first()) {
      const Result<Bytes> first = co_await from_.read();
      if (!first) co_return fail(first.error());
      ended_ = first->empty();
      if (ended_) co_return {};
      arriving_.set_first(*first);
    }
    WEIR_CO_TRY(co_await take_slot());
    auto decompressor = Decompressor::make(coding_, limits_.body);
    if (!decompressor) co_return fail(decompressor.error());
    reader_.emplace(std::move(*decompressor));
    core_.decompressors().add();
    co_return {};
  }

  Task<Result<>> take_slot() {
    if (auto slot = slots_.try_acquire(client_)) {
      slot_ = std::move(*slot);
      co_return {};
    }
    auto acquiring = slots_.acquire(client_);
    auto slot = co_await std::move(acquiring);
    if (!slot) co_return fail(slot.error());
    slot_ = std::move(*slot);
    co_return {};
  }

  /// Keeps the error for later reads, unless the read can be repeated.
  Result<Bytes> fail_with(std::error_code error) {
    if (error != Errc::cancelled) {
      error_ = error;
      end();
    }
    return fail(error);
  }
  void end() {
    ended_ = true;
    if (error_) all_ = std::string();
    release_reader();
    if (all_.capacity() <= small_body_max) slot_.release();
  }
  void release_reader() {
    if (reader_) core_.decompressors().subtract();
    reader_.reset();
  }

  BodySource& from_;
  const Coding coding_;
  const DecompressRequestLimits limits_;
  detail::EncodingCore& core_;
  Slots& slots_;
  const Slots::Client client_;
  Slots::Slot slot_;  // until the end of the body, or of the request if the whole body is large
  Arriving arriving_{*this};
  std::optional<detail::DecompressingReader> reader_;  // from the first bytes to the end
  bool ended_ = false;
  std::error_code error_;
  std::string all_;  // for collect()
};

/// Keeps the body as long as the views of the request.
struct KeptBody {
  std::unique_ptr<DecompressedBody> body;
};

Response unsupported() {
  Response response(Status::unsupported_media_type);
  response.add_header("Accept-Encoding", accept_encoding());
  return response;
}

}  // namespace

Task<Response> DecompressRequests::operator()(Request& request, Next next) const {
  const auto coding = coding_of(request.head());
  if (coding == Coding::identity || request.has_decoded_body()) co_return co_await next(request);
  if (!coding || !compression::is_available(*coding)) co_return unsupported();
  if (!request.body_length().has_body()) co_return co_await next(request);
  const Context own = co_await this_context();
  detail::EncodingCore& core = detail::EncodingCore::of(*own.loop);
  auto body = std::make_unique<DecompressedBody>(request, *coding, limits_, core);
  KeptBody& kept = request.set(KeptBody{std::move(body)});
  const ScopedBody scoped(request, *kept.body);
  co_return co_await next(request);
}

CoreDemands DecompressRequests::demands(Loop& loop) const {
  std::size_t decompressor = 0;
  for (const Coding each : accepted) {
    decompressor = std::max(decompressor, compression::decompressor_bytes_max(each, limits_.body));
  }
  using weir::detail::block;
  using weir::detail::product;
  using weir::detail::sum;
  constexpr std::uint64_t grown = 3;  // a text of twice the size, and the one before it
  const std::uint64_t request =
      sum({decompressor, weir::detail::buffer(0), product(grown, block(limits_.body.output_max))});
  return {.owner = &detail::EncodingCore::of(loop).decompressor_slots(slots_of(limits_)),
          .request_bytes = block(small_body_max + 1),
          .core_bytes = product(limits_.concurrency_max, request)};
}

DecompressRequests decompress_requests(DecompressRequestLimits limits) {
  return DecompressRequests(limits);
}

}  // namespace weir::http
