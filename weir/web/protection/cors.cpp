#include "weir/web/protection/cors.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "weir/http/syntax/detail/char_class.hpp"

namespace weir::http {
namespace {

constexpr std::string_view wildcard = "//*.";  // between a scheme and the rest of a host

[[noreturn]] void reject(const std::string& what, const std::string& value) {
  throw std::invalid_argument("cors: " + what + ": \"" + value + "\"");
}

bool is_lower_host(char character) noexcept {
  return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
         character == '-' || character == '.';
}

void check_origin(const std::string& origin) {
  if (origin == "null") return;
  const std::size_t slashes = origin.find("://");
  const bool has_host = slashes != std::string::npos && slashes > 0 && slashes + 3 < origin.size();
  if (!has_host || origin.find('/', slashes + 3) != std::string::npos) {
    reject("an origin is a scheme and a host, such as https://app.example.org", origin);
  }
  const std::size_t star = origin.find('*');
  const bool is_subdomain = star == slashes + 3 && origin.substr(slashes + 1, 4) == wildcard;
  if (star != std::string::npos && (!is_subdomain || origin.rfind('*') != star)) {
    reject("a wildcard stands for whole subdomains, as in https://*.example.org", origin);
  }
  const std::string_view rest = std::string_view(origin).substr(slashes + 3);
  const std::string_view scheme = std::string_view(origin).substr(0, slashes);
  if ((scheme == "https" && rest.ends_with(":443")) ||
      (scheme == "http" && rest.ends_with(":80"))) {
    reject("a browser leaves out the default port of an origin", origin);  // RFC 6454 §6.2
  }
  for (const char each : origin) {
    if (each <= ' ' || each > '~' || each != to_lower(each))
      reject("an origin has lower-case letters", origin);
  }
}

bool matches(std::string_view pattern, std::string_view origin) noexcept {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == origin;
  const std::string_view suffix = pattern.substr(star + 1);  // begins with a dot
  if (!origin.starts_with(pattern.substr(0, star)) || !origin.ends_with(suffix)) return false;
  if (origin.size() <= star + suffix.size()) return false;
  const std::string_view name = origin.substr(star, origin.size() - star - suffix.size());
  return name.front() != '.' && name.back() != '.' && std::ranges::all_of(name, is_lower_host);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& each : names) {
    if (!is_token(each)) reject("a method or a header is a token", each);
    if (!text.empty()) text += ", ";
    text += each;
  }
  return text;
}

/// Returns true for a list of header names, as a browser sends it.
bool is_token_list(std::string_view text) noexcept {
  return std::ranges::all_of(
      text, [](char each) { return is_in(each, CharClass::token) || each == ',' || each == ' '; });
}

bool is_all(const std::vector<std::string>& names) {
  return names.size() == 1 && names.front() == "*";
}

/// Removes what a handler, or the upstream of a proxy, grants: only the options do.
void remove_grants(Response& response) {
  constexpr std::string_view grants[] = {"Access-Control-Allow-Origin",
                                         "Access-Control-Allow-Credentials"};
  const auto has = [&response](std::string_view name) { return response.headers().contains(name); };
  if (std::ranges::none_of(grants, has)) return;
  Headers kept = response.headers();
  for (const std::string_view name : grants) kept.remove(name);
  response.set_headers(kept);
}

}  // namespace

Cors::Cors(CorsOptions options) : options_(std::move(options)) {
  any_origin_ = is_all(options_.origins);
  any_header_ = is_all(options_.headers);
  if (options_.credentials && any_origin_) reject("credentials need named origins", "*");
  if (options_.credentials && any_header_) reject("credentials need named headers", "*");
  if (!any_origin_) std::ranges::for_each(options_.origins, check_origin);
  if (options_.credentials && allows("null")) reject("credentials need named origins", "null");
  methods_ = joined(options_.methods);
  if (!any_header_) headers_ = joined(options_.headers);
  exposed_headers_ = joined(options_.exposed_headers);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.max_age).count();
  if (seconds > 0) max_age_ = std::to_string(seconds);
}

bool Cors::allows(std::string_view origin) const noexcept {
  if (any_origin_) return true;
  return std::ranges::any_of(options_.origins,
                             [origin](const std::string& each) { return matches(each, origin); });
}

std::optional<Response> Cors::before(Request& request) const {
  if (request.method() != Method::options) [[likely]]
    return std::nullopt;
  const auto origin = request.header("Origin");
  if (!origin || !request.header("Access-Control-Request-Method")) return std::nullopt;
  return answer_preflight(request, *origin);
}

Response Cors::answer_preflight(const Request& request, std::string_view origin) const {
  Response response = no_content();
  if (!any_origin_) response.add_vary("Origin");
  if (any_header_) response.add_vary("Access-Control-Request-Headers");
  if (options_.private_network) response.add_vary("Access-Control-Request-Private-Network");
  if (!allows(origin)) return response;  // the browser does not send the request then
  add_origin(response, origin);
  if (!methods_.empty()) response.set_header("Access-Control-Allow-Methods", methods_);
  const auto asked = request.header("Access-Control-Request-Headers");
  if (!any_header_ && !headers_.empty()) {
    response.set_header("Access-Control-Allow-Headers", headers_);
  } else if (any_header_ && asked && is_token_list(*asked)) {
    response.set_header("Access-Control-Allow-Headers", *asked);
  }
  if (!max_age_.empty()) response.set_header("Access-Control-Max-Age", max_age_);
  if (options_.private_network &&
      request.header("Access-Control-Request-Private-Network") == "true") {
    response.set_header("Access-Control-Allow-Private-Network", "true");
  }
  return response;
}

void Cors::add_origin(Response& response, std::string_view origin) const {
  response.set_header("Access-Control-Allow-Origin", any_origin_ ? "*" : origin);
  if (options_.credentials) response.set_header("Access-Control-Allow-Credentials", "true");
}

void Cors::after(Request& request, Response& response) const {
  remove_grants(response);
  // A cache must not give the response for one origin to another, also if there was no origin. A
  // response for all origins has its headers always, so that a cache can give it to any request.
  if (!any_origin_) response.add_vary("Origin");
  const auto origin = request.header("Origin");
  if (!any_origin_ && (!origin || !allows(*origin))) return;
  add_origin(response, origin.value_or(""));
  if (!exposed_headers_.empty()) {
    response.set_header("Access-Control-Expose-Headers", exposed_headers_);
  }
}

}  // namespace weir::http
