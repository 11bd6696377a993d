// Cases about methods.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {

void add_method_cases(std::vector<MessageCase>& cases) {
  const auto add = [&cases](MessageCase test) { cases.push_back(std::move(test)); };
  for (const std::string method : {"DELETE", "QUERY", "PROPFIND"}) {
    add({.name = "AKnownResourceNamesItsMethodsTo" + method,
         .request = {.method = method, .target = "/none"},
         .response = {.status = 405, .fields = {.present = {{"Allow", "GET, HEAD, OPTIONS"}}}},
         .handled = {}});
  }
}

}  // namespace weir::tests::messages
