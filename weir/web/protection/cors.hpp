// Cross-origin resource sharing: which scripts of other sites may read responses (Fetch standard,
// "HTTP extensions").
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// CorsOptions says which scripts of other origins may use a service.
struct CorsOptions {
  /// Origins whose scripts may read responses: "https://app.example.org", "https://*.example.org"
  /// for all subdomains, or "*" alone for all origins. A port is part of an origin, unless it is
  /// the default port of http or https.
  std::vector<std::string> origins = {};
  /// Methods that a preflight request allows, besides GET, HEAD and POST.
  std::vector<std::string> methods = {"PUT", "PATCH", "DELETE"};
  /// Request headers that a preflight request allows; "*" alone allows those that it names.
  std::vector<std::string> headers = {"Authorization", "Content-Type"};
  /// Response headers that scripts may read, in addition to the few that they always may.
  std::vector<std::string> exposed_headers = {};
  /// True if requests may carry cookies and other credentials. Origins must then be named: a "*" in
  /// `origins` or `headers` is an error.
  bool credentials = false;
  /// True if pages of public networks may send requests to this service in a private one.
  bool private_network = false;
  /// Time for which a browser may keep the answer to a preflight request; zero for its default.
  Duration max_age = std::chrono::minutes(10);
};

/// The middleware that cors() makes. It answers preflight requests, also those for paths whose
/// OPTIONS the router answers, and adds the headers to all other responses, including errors.
/// Headers by which a handler, or the upstream of a proxy, allows an origin or credentials are
/// removed. It belongs around authentication, since preflight requests have no credentials:
/// `router.use(http::cors({.origins = {"https://app.example.org"}}))`. In a group, it sees
/// preflight requests only if the group has a route for OPTIONS.
/// Threads: any.
class Cors {
 public:
  /// Errors: throws std::invalid_argument for an option that is not as CorsOptions says.
  explicit Cors(CorsOptions options);

  std::optional<Response> before(Request& request) const;
  void after(Request& request, Response& response) const;

  /// Returns true if scripts of this origin may read responses.
  bool allows(std::string_view origin) const noexcept;

 private:
  Response answer_preflight(const Request& request, std::string_view origin) const;
  void add_origin(Response& response, std::string_view origin) const;

  CorsOptions options_;
  bool any_origin_ = false;
  bool any_header_ = false;
  std::string methods_;  // as header values
  std::string headers_;
  std::string exposed_headers_;
  std::string max_age_;
};

/// Returns the middleware for these options.
/// Errors: those of the constructor of Cors.
inline Cors cors(CorsOptions options) {
  return Cors(std::move(options));
}

}  // namespace weir::http
