// Parses and resolves the URL that a load is aimed at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::bench {

struct Url {
  bool secure = false;         ///< true: https
  std::string authority;       ///< value of the Host header: "localhost:8080"
  std::string path_and_query;  ///< path and query; "/" if the URL has none
  std::string host;            ///< name or address, without brackets
  std::uint16_t port = 80;
};

/// Parses `http://host[:port][/path][?query]`, or the same with `https`.
/// Errors: Errc::unsupported for another scheme, such as ftp; Errc::bad_input for anything else
/// that is not such a URL.
Result<Url> parse_url(std::string_view url);

/// Returns the addresses of the target, at least one, in the system's order of preference (RFC
/// 6724). It blocks while it resolves a name, so it is only for the start of a program.
/// Errors: Errc::not_found.
Result<std::vector<Endpoint>> resolve(const Url& url);

/// Returns the first endpoint that accepts a connection within 2 s, or the first of all if none
/// does.
/// Cancel: like a failure of the remaining endpoints to accept.
Task<Endpoint> first_reachable(std::vector<Endpoint> endpoints);

struct RequestOptions {
  std::string method = "GET";
  std::vector<std::string> headers;  ///< lines of the form "Name: value"
  std::string body;
  bool close = false;  ///< true: adds `Connection: close`
};

/// Returns one whole request for `url`. It has a Content-Length if it has a body or the method
/// requires one. It has a Host unless the options contain a header of that name.
/// Errors: Errc::bad_input if the method is not a token, a header is malformed, or a given
/// Content-Length is not the size of the body.
Result<std::string> make_request(const Url& url, const RequestOptions& options);

}  // namespace weir::bench
