#include "weir/web/cookies/sessions.hpp"

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/base/text/detail/base64.hpp"
#include "weir/tls/crypto/detail/random.hpp"
#include "weir/web/cookies/detail/wall_clock.hpp"
#include "weir/web/cookies/request_cookies.hpp"
#include "weir/web/cookies/sealed_cookies.hpp"

namespace weir::http::detail {
namespace {

constexpr auto protection = CookieProtection::signed_value;

Result<std::string> random_id() {
  std::array<std::byte, 24> bytes;
  if (!tls::detail::fill_random(bytes)) return fail(Errc::unsupported);
  return to_base64url(bytes);
}

}  // namespace

SessionCore::SessionCore(SessionStore& store, CookieKeys keys, SessionOptions options)
    : store_(store), keys_(std::move(keys)), options_(std::move(options)) {
  options_.cookie.value.clear();
  options_.cookie.expires.reset();
  options_.cookie.max_age = options_.lifetime;
  if (const auto text = to_header(options_.cookie); !text) {
    throw std::invalid_argument("http::Sessions: " + text.error().message());
  }
}

Task<Result<SessionCore::Loaded>> SessionCore::load(const Request& request) const {
  const std::string_view name = options_.cookie.name;
  std::size_t tried = 0;
  for (const RequestCookie& each : RequestCookies(request)) {
    if (each.name != name) continue;
    if (tried++ == SealedCookies::repeated_max) break;
    std::optional<std::string> id = keys_.open(protection, name, each.value, wall_time());
    if (!id) continue;
    WEIR_CO_TRY(auto data, co_await store_.load(*id, options_.idle_timeout));
    if (!data) continue;
    Loaded loaded;
    loaded.id = std::move(*id);
    loaded.data = std::move(*data);
    co_return loaded;
  }
  co_return Loaded();
}

Task<Result<>> SessionCore::save(std::string id, SessionChange change, std::string data,
                                 Response& response) const {
  if (change == SessionChange::end) {
    if (!id.empty()) WEIR_CO_TRY(co_await store_.remove(std::move(id)));
    co_return drop(response);
  }
  if (data.size() > options_.data_bytes_max) {
    throw std::length_error(
        "http::Sessions: the data of a session has " + std::to_string(data.size()) +
        " bytes, more than data_bytes_max: " + std::to_string(options_.data_bytes_max));
  }
  if (change == SessionChange::data && !id.empty()) {
    const auto saved = co_await store_.save(std::move(id), std::move(data), options_.idle_timeout,
                                            SessionSave::replace);
    // Another request has ended the session meanwhile. The client may have the cookie of a newer
    // session by now, which has the same name: this response must not remove it.
    if (!saved && saved.error() == Errc::not_found) co_return {};
    co_return saved;
  }
  WEIR_CO_TRY(std::string fresh, random_id());
  WEIR_CO_TRY(
      co_await store_.save(fresh, std::move(data), options_.idle_timeout, SessionSave::create));
  if (!id.empty()) WEIR_CO_TRY(co_await store_.remove(std::move(id)));
  co_return set(response, std::move(fresh));
}

Result<> SessionCore::set(Response& response, std::string id) const {
  SetCookie cookie = options_.cookie;
  WEIR_TRY(cookie.value, keys_.seal(protection, cookie.name, id, wall_time() + options_.lifetime));
  if (!response.headers().contains("Cache-Control")) {
    response.set_header("Cache-Control", "no-store");
  }
  return set_cookie(response, cookie);
}

Result<> SessionCore::drop(Response& response) const {
  if (!response.headers().contains("Cache-Control")) {
    response.set_header("Cache-Control", "no-store");
  }
  return remove_cookie(response, options_.cookie);
}

Response SessionCore::failed(std::error_code error) {
  if (error == Errc::limit_reached) {
    throw std::length_error("http::Sessions: the data of a session does not fit into the store");
  }
  Response response(Status::service_unavailable);
  response.set_cause(error);
  return response;
}

}  // namespace weir::http::detail
