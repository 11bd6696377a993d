// The response of a client: what its exchange has received, and the collection of the body.
#include "weir/http/client/client_response.hpp"

#include "weir/http/client/detail/response_source.hpp"

namespace weir::http {

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
