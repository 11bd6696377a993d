// The response of a client: what its exchange has received, the collection of the body, and the
// decompression of the body for a client that asked for it.
#include "weir/http/client/client_response.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "weir/compression/error.hpp"
#include "weir/http/client/detail/response_source.hpp"
#include "weir/http/message/detail/decompressing_reader.hpp"
#include "weir/http/message/detail/weak_etag.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

using compression::Coding;
using compression::Decompressor;

constexpr std::array offered{Coding::zstd, Coding::brotli, Coding::gzip};

ClientError to_client_error(const std::error_code& error) noexcept {
  return compression::exceeds_limit(error) ? ClientError::body_too_large
                                           : ClientError::bad_response;
}

/// Returns true for an ETag that is not weak.
bool is_strong_tag(const HeaderField& field) noexcept {
  return equals_ignoring_case(field.name, "etag") && field.value.starts_with('"');
}

/// The response about other bytes than those that the client gets: its ETag is weak, and it lacks
/// the headers that describe the coded bytes.
class WeakResponse : public ResponseSource {
 public:
  explicit WeakResponse(detail::ExchangePtr from)
      : ResponseSource(from->body_max()), from_(std::move(from)), head_(from_->head()) {
    head_.remove_headers([](std::string_view name) {
      return is_coding_field(name) || equals_ignoring_case(name, "accept-ranges");
    });
    for (std::size_t index = 0; index < head_.header_count(); ++index) {
      const HeaderField field = head_.header_at(index);
      if (!is_strong_tag(field)) continue;
      weaken(index, field.value);
      break;
    }
  }

  Task<Result<Bytes>> read() override { return from_->read(); }
  void abandon(std::error_code error) noexcept override { from_->abandon(error); }
  const ReceivedResponseHead& head() const noexcept override { return head_; }
  BodyLength length() const noexcept override { return from_->length(); }
  const Headers& trailers() const noexcept override { return from_->trailers(); }
  bool is_http2() const noexcept override { return from_->is_http2(); }
  bool late() const override { return from_->late(); }

 protected:
  ResponseSource& from() noexcept { return *from_; }

 private:
  /// Makes a tag weak in a copy of the head.
  void weaken(std::size_t index, std::string_view tag) {
    const std::string weak = weak_etag(tag);
    const std::string_view bytes = head_.bytes();
    bytes_.reserve(bytes.size() + weak.size());
    bytes_.append(bytes).append(weak);
    head_.rebase(bytes_.data());
    head_.set_value(index, std::string_view(bytes_).substr(bytes.size()));
  }

  detail::ExchangePtr from_;
  ReceivedResponseHead head_;
  std::string bytes_;  // those of `head_`, if they differ from those of `from_`
};

/// The decompressed body of another source. The response to HEAD has no body and needs no
/// decompressor; its head is that of the response to GET (RFC 9110 §9.3.2).
class DecodedResponse final : public WeakResponse {
 public:
  DecodedResponse(detail::ExchangePtr from, std::optional<Decompressor> decompressor)
      : WeakResponse(std::move(from)) {
    if (decompressor) reader_.emplace(std::move(*decompressor));
  }

  Task<Result<Bytes>> read() override {
    if (error_) co_return fail(error_);
    if (!reader_) co_return co_await from().read();
    if (!reader_->ended() && late()) {
      // The decompressor may have output for long without more input.
      abandon(ClientError::timed_out);
      co_return fail(error_);
    }
    const Result<Bytes> piece = co_await reader_->read(from());
    if (piece && piece->empty()) keep_trailers();
    if (piece || !reader_->ended()) co_return piece;
    abandon(to_client_error(piece.error()));
    co_return fail(error_);
  }
  void abandon(std::error_code error) noexcept override {
    error_ = error;
    from().abandon(error);
  }
  BodyLength length() const noexcept override {
    return reader_ ? BodyLength::unknown() : BodyLength();
  }
  /// Returns those that do not describe the coded bytes.
  const Headers& trailers() const noexcept override { return trailers_; }
  bool is_decoded() const noexcept override { return true; }

 private:
  void keep_trailers() {
    trailers_.clear();
    for (const HeaderField field : from().trailers()) {
      if (!is_coding_field(field.name)) std::ignore = trailers_.add(field.name, field.value);
    }
  }

  std::optional<detail::DecompressingReader> reader_;
  Headers trailers_;
  std::error_code error_;
};

std::string make_accept_encoding_line() {
  std::string line;
  for (const Coding each : offered) {
    if (!compression::is_available(each)) continue;
    line.append(line.empty() ? "Accept-Encoding: " : ", ").append(name_of(each));
  }
  return line.empty() ? line : line.append("\r\n");
}

/// Returns the coding of a response if it is the only one. The client decodes also one that it has
/// not asked for.
std::optional<Coding> coding_of(const ReceivedResponseHead& head) noexcept {
  std::optional<Coding> coding;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!equals_ignoring_case(field.name, "content-encoding")) continue;
    if (coding) return std::nullopt;
    coding = compression::coding_of(field.value);
    if (!coding || *coding == Coding::identity) return std::nullopt;
  }
  return coding;
}

}  // namespace

void detail::ReleaseExchange::operator()(ResponseSource* exchange) const noexcept {
  exchange->release();
}

Status ClientResponse::status() const noexcept {
  return exchange_->head().status();
}

std::size_t ClientResponse::header_count() const noexcept {
  return exchange_->head().header_count();
}

HeaderField ClientResponse::header_at(std::size_t index) const noexcept {
  return exchange_->head().header_at(index);
}

std::optional<std::string_view> ClientResponse::header(std::string_view name) const noexcept {
  return exchange_->head().header(name);
}

const Url& ClientResponse::url() const noexcept {
  return exchange_->url();
}

Version ClientResponse::version() const noexcept {
  if (exchange_->is_http2()) return Version::http_2;
  return exchange_->head().version_minor() == 0 ? Version::http_1_0 : Version::http_1_1;
}

BodyLength ClientResponse::body_length() const noexcept {
  return exchange_->length();
}

bool ClientResponse::has_decoded_body() const noexcept {
  return exchange_->is_decoded();
}

const Headers& ClientResponse::trailers() const noexcept {
  return exchange_->trailers();
}

const std::string& accept_encoding_line() {
  static const std::string line = make_accept_encoding_line();
  return line;
}

detail::ExchangePtr decoded_response(detail::ExchangePtr exchange, const Headers& request,
                                     const compression::DecompressLimits& limits) {
  const ReceivedResponseHead& head = exchange->head();
  const Status status = head.status();
  if (status == Status::not_modified) {
    // A client that has sent the weak tag, or none, has the decoded bytes.
    const auto tag = head.header("etag");
    const auto coding = coding_of(head);
    const bool is_decoded = tag ? tag->starts_with('"') && knows_weak_etag(request, *tag)
                                : coding && compression::is_available(*coding);
    if (!is_decoded) return exchange;
    return detail::ExchangePtr(new WeakResponse(std::move(exchange)));
  }
  // A part of the coded bytes cannot be decoded.
  if (!may_have_body(status) || status == Status::partial_content) return exchange;
  const auto coding = coding_of(head);
  if (!coding) return exchange;
  if (!compression::is_available(*coding)) return exchange;
  std::optional<Decompressor> decompressor;
  if (exchange->length().has_body()) {
    auto made = Decompressor::make(*coding, limits);
    if (!made) return exchange;
    decompressor = std::move(*made);
  }
  return detail::ExchangePtr(new DecodedResponse(std::move(exchange), std::move(decompressor)));
}

Task<Result<Bytes>> ClientResponse::read() {
  return exchange_->read();
}

Task<Result<std::string>> ClientResponse::body() {
  std::string text;
  while (true) {
    const Result<Bytes> piece = co_await exchange_->read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return text;
    if (piece->size() > exchange_->body_max() - text.size()) {
      exchange_->abandon(ClientError::body_too_large);
      co_return fail(ClientError::body_too_large);
    }
    text += to_text(*piece);
  }
}

}  // namespace weir::http
