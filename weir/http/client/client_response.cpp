// The response of a client: what its exchange has received, the collection of the body, and the
// decompression of the body for a client that asked for it.
#include "weir/http/client/client_response.hpp"

#include <array>

#include "weir/compression/error.hpp"
#include "weir/http/client/detail/response_source.hpp"
#include "weir/http/message/detail/decompressing_reader.hpp"
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

/// The decompressed body of another source.
class DecodedResponse final : public ResponseSource {
 public:
  DecodedResponse(detail::ExchangePtr from, Decompressor decompressor)
      : ResponseSource(from->body_max()),
        from_(std::move(from)),
        head_(from_->head()),
        reader_(std::move(decompressor)) {
    head_.remove_header("content-encoding");
    head_.remove_header("content-length");
  }

  Task<Result<Bytes>> read() override {
    if (error_) co_return fail(error_);
    const Result<Bytes> piece = co_await reader_.read(*from_);
    if (piece || !reader_.ended()) co_return piece;
    abandon(to_client_error(piece.error()));
    co_return fail(error_);
  }
  void abandon(std::error_code error) noexcept override {
    error_ = error;
    from_->abandon(error);
  }
  const ReceivedResponseHead& head() const noexcept override { return head_; }
  BodyLength length() const noexcept override { return BodyLength::unknown(); }
  const Headers& trailers() const noexcept override { return from_->trailers(); }
  bool is_http2() const noexcept override { return from_->is_http2(); }

 private:
  bool is_sending() const noexcept override { return false; }  // `from_` itself waits for its task
  detail::ExchangePtr from_;
  ReceivedResponseHead head_;
  detail::DecompressingReader reader_;
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

/// Returns the coding of a response if it is the only one, and one that the client asked for.
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

const Headers& ClientResponse::trailers() const noexcept {
  return exchange_->trailers();
}

const std::string& accept_encoding_line() {
  static const std::string line = make_accept_encoding_line();
  return line;
}

detail::ExchangePtr decoded_response(detail::ExchangePtr exchange, Method method,
                                     const compression::DecompressLimits& limits) {
  const ReceivedResponseHead& head = exchange->head();
  if (method == Method::head || !may_have_body(head.status())) return exchange;
  const auto coding = coding_of(head);
  if (!coding) return exchange;
  auto decompressor = Decompressor::make(*coding, limits);
  if (!decompressor) return exchange;
  return detail::ExchangePtr(new DecodedResponse(std::move(exchange), std::move(*decompressor)));
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
BodyLength ClientResponse::body_length() const noexcept {
  return exchange_->length();
}

bool ClientResponse::has_decoded_body() const noexcept {
  return exchange_->is_decoded();
}

