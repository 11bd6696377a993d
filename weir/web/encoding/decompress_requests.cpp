#include "weir/web/encoding/decompress_requests.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/compression/error.hpp"
#include "weir/http/message/detail/decompressing_reader.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/task/context.hpp"
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

/// The decompressed body of a request.
class DecompressedBody final : public BodySource {
 public:
  DecompressedBody(BodySource& from, Decompressor decompressor, detail::EncodingCore& core) noexcept
      : from_(from), reader_(std::move(decompressor)), core_(core) {
    core_.decompressors().add();
  }
  DecompressedBody(const DecompressedBody&) = delete;
  DecompressedBody& operator=(const DecompressedBody&) = delete;
  ~DecompressedBody() override { release(); }

  Task<Result<Bytes>> read() override {
    if (error_) co_return fail(error_);
    const Result<Bytes> piece = co_await reader_.read(from_);
    if (!reader_.ended()) co_return piece;
    release();
    if (piece) co_return piece;
    core_.rejected_requests().add();
    error_ = piece.error();
    co_return piece;
  }
  Task<Result<std::string_view>> read_all() override {
    for (;;) {
      const Result<Bytes> piece = co_await read();
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
  bool is_decoded() const noexcept override { return true; }

 private:
  void release() noexcept {
    if (std::exchange(counted_, false)) core_.decompressors().subtract();
  }

  BodySource& from_;
  detail::DecompressingReader reader_;
  detail::EncodingCore& core_;
  bool counted_ = true;  // until the end of the body
  std::error_code error_;
  std::string all_;  // for read_all()
};

/// Keeps the body as long as the views of the request.
struct KeptBody {
  std::unique_ptr<DecompressedBody> body;
};

/// Gives the request another body until the end of a scope.
class ScopedBody {
 public:
  ScopedBody(Request& request, BodySource& body) noexcept
      : request_(request), former_(request.exchange_body(body)) {}
  ScopedBody(const ScopedBody&) = delete;
  ScopedBody& operator=(const ScopedBody&) = delete;
  ~ScopedBody() { request_.exchange_body(former_); }

 private:
  Request& request_;
  BodySource& former_;
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
  if (core.decompressors().value() >= limits_.concurrency_max) {
    co_return Response(Status::service_unavailable);
  }
  auto decompressor = Decompressor::make(*coding, limits_.body);
  if (!decompressor) co_return unsupported();
  auto body =
      std::make_unique<DecompressedBody>(request.body_source(), std::move(*decompressor), core);
  KeptBody& kept = request.set(KeptBody{std::move(body)});
  const ScopedBody scoped(request, *kept.body);
  co_return co_await next(request);
}

DecompressRequests decompress_requests(DecompressRequestLimits limits) {
  return DecompressRequests(limits);
}

}  // namespace weir::http
