// One request of a TestClient with headers. For tests only.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "weir/http_testing/test_client.hpp"

namespace weir::http {

using HeaderList = std::vector<std::pair<std::string_view, std::string_view>>;

/// Sends a request with these headers, which may have one name twice.
inline TestResponse ask(TestClient& client, Method method, std::string_view path,
                        const HeaderList& headers = {}) {
  ClientRequest request = client.request(method, path);
  for (const auto& [name, value] : headers) request.add_header(name, value);
  return client.send(std::move(request));
}

/// Returns the value of a header of a response; "-" if there is none.
inline std::string_view header_of(const TestResponse& response, std::string_view name) {
  return response.header(name).value_or("-");
}

}  // namespace weir::http
