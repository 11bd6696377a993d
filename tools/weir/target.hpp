// What a load is aimed at: a URL, taken apart and resolved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"

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

/// The first address of the target. Blocks while a name is looked up, which is for the start of a
/// program only. Errors: Errc::not_found.
Result<Endpoint> resolve(const Target& target);

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
