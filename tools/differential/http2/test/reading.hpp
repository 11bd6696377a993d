// How a server has read a conversation of HTTP/2, in a form that can be compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::differential {

/// A request as the server gives it to its handler. Both servers give the same text for it.
struct ParsedRequest {
  std::string method;
  std::string scheme;  ///< not part of the text
  std::string target;
  std::string host;            ///< of :authority, or else of Host
  bool several_hosts = false;  ///< true if it has more than one host; not part of the text
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  std::vector<std::pair<std::string, std::string>> trailers;

  /// Adds a field. A Host is kept apart, and crumbs of a cookie become one field.
  void add(std::string_view name, std::string_view value);
  /// Returns the request as text, with the cookie behind the other fields.
  std::string text() const;

 private:
  std::optional<std::string> cookie_;
};

/// The reaction of a server to one stream.
struct StreamOutcome {
  std::optional<std::string> request;  ///< the text of a request that was read to its end
  std::optional<std::uint32_t> reset;  ///< the code of RST_STREAM
  int rejected = 0;                    ///< the status of an answer without the handler

  bool operator==(const StreamOutcome&) const = default;
};

struct Reading {
  std::map<std::uint32_t, StreamOutcome> streams;
  std::optional<std::uint32_t> failed;  ///< the code of GOAWAY
  unsigned pings = 0;                   ///< number of answered pings

  std::string text() const;
};

}  // namespace weir::differential
