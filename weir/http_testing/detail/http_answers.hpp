// Collects responses by the parser of the HTTP client.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::sim {

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool complete = false;     ///< true if all of its body has arrived
  bool until_close = false;  ///< true if its body ends with the connection

  /// Returns the value of the header of that name, in this letter case; empty if there is none.
  std::string header(std::string_view name) const;
};

/// Returns the responses in `text`, interim ones included; the last one may be incomplete.
/// `methods` are those of the requests, in order; a missing one is GET. A response to HEAD has no
/// body. A 408 and a first response with 503 may have one, because the server may not know the
/// method yet. Bytes that are not HTTP/1.1 become a response with status 0.
std::vector<HttpResponse> parse_http_responses(std::string_view text,
                                               const std::vector<std::string_view>& methods = {});

/// Returns their statuses, such as "200 404". A `-` follows the status of an incomplete response.
std::string statuses_of(const std::vector<HttpResponse>& answers);

}  // namespace weir::sim
