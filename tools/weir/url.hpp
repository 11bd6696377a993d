// What a load is aimed at: a URL, taken apart and resolved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::bench {

struct Target {
  std::string authority;  ///< for the Host field: "localhost:8080"
  std::string resource;   ///< path and query, "/" where the URL has none
  std::string host;       ///< without brackets
  std::uint16_t port = 80;
};

/// Takes `http://host[:port][/path][?query]` apart. Errors: Errc::bad_input for anything else, be
/// it https; Errc::unsupported for a scheme that is well-formed.
Result<Target> parse_target(std::string_view url);

/// The addresses of the target, in the system's order of preference (RFC 6724), at least one.
/// Blocks while a name is looked up, which is for the start of a program only. Errors:
/// Errc::not_found.
Result<std::vector<Endpoint>> resolve(const Target& target);

/// The first of these that accepts a connection; the first of all if none does.
/// Cancel: as if the others did not accept.
Task<Endpoint> first_reachable(std::vector<Endpoint> endpoints);

struct RequestOptions {
  std::string method = "GET";
  std::vector<std::string> fields;  ///< "Name: value"
  std::string body;
  bool close = false;  ///< with Connection: close
};

/// One whole request for `target`: Content-Length where there is a body or the method wants one,
/// and Host unless a field of that name is given. Errors: Errc::bad_input for a method that is no
/// token, a field that is none, or a Content-Length that is given and not the body's.
Result<std::string> make_request(const Target& target, const RequestOptions& options);

}  // namespace weir::bench
