// Reading what an HTTP/1.1 server sent, strictly: framed responses, one after the other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  bool whole = false;      ///< its framing is complete
  bool until_end = false;  ///< its body has no framing but the connection's end

  /// The value of the field of that name, in this letter case; empty when there is none.
  std::string field(std::string_view name) const;
};

/// The responses in `text`, interim ones too; the last one may be cut. `methods`: of the requests,
/// in order, where one is not GET; those to HEAD have no body. A byte that does not belong to any
/// response makes one with the status 0.
std::vector<HttpAnswer> read_http_answers(std::string_view text,
                                          const std::vector<std::string_view>& methods = {});

/// Their statuses, such as "200 404"; one that is cut is followed by '-'.
std::string statuses_of(const std::vector<HttpAnswer>& answers);

}  // namespace weir
