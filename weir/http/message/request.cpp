// The members of Request that decode texts, or need the body source or the trace.
#include "weir/http/message/request.hpp"

#include <array>
#include <cassert>
#include <utility>

#include "weir/http/message/detail/request_owner.hpp"
#include "weir/http/message/detail/urlencoded.hpp"
#include "weir/http/syntax/uri.hpp"

namespace weir::http {

void detail::EndObservers::run(Request& request, const SentResponse& response) noexcept {
  while (newest_ != nullptr) {
    try {
      newest_->call(newest_, request, response);
    } catch (...) {
      // The response has been sent; nothing is left that could report it to the client.
    }
    destroy_newest();
  }
}

Task<Result<Bytes>> BodySource::read_collected() {
  WEIR_CO_TRY(const std::string_view text, co_await collect());
  const bool was_returned = std::exchange(reading_, Reading::whole_read) == Reading::whole_read;
  co_return was_returned ? Bytes() : to_bytes(text);
}

std::string Request::path() const {
  if (!head_.path_has_escapes()) return std::string(path_text());
  return percent_decode(path_text()).value_or(std::string());  // the parser has checked the escapes
}

std::optional<std::string> Request::query(std::string_view name) const {
  return UrlencodedPairs(query_text()).find(name);
}

std::string Request::id() const {
  if (trace_ == nullptr) return {};
  std::array<char, TraceContext::id_bytes_max> room;
  return std::string(trace_->id(room));
}

Scope& Request::scope() const {
  assert(owner_ != nullptr && "only a request of a server has a scope");
  return owner_->scope();
}

Task<Result<>> Request::send_interim(Status status, const Headers& headers) const {
  if (owner_ == nullptr) co_return fail(Errc::unsupported);
  co_return co_await owner_->send_interim(status, headers);
}

Task<Result<std::string>> Request::body() {
  WEIR_CO_TRY(auto whole, co_await body_->read_all());
  co_return std::string(whole);
}

}  // namespace weir::http
