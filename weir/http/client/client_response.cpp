// The response of a client: look-up of headers and the collection of the body.
#include "weir/http/client/client_response.hpp"

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {

std::optional<std::string_view> ClientResponse::header(std::string_view name) const noexcept {
  for (std::size_t index = 0; index < header_count(); ++index) {
    const HeaderField field = header_at(index);
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

Task<Result<std::string>> ClientResponse::body() {
  std::string text;
  while (true) {
    const Result<Bytes> piece = co_await source_->read();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return text;
    if (piece->size() > source_->body_max() - text.size()) {
      source_->abandon(ClientError::body_too_large);
      co_return fail(ClientError::body_too_large);
    }
    text += to_text(*piece);
  }
}

}  // namespace weir::http
