// Cases about methods.
#include <string>
#include <utility>
#include <vector>

#include "tests/messages/message_case.hpp"

namespace weir::tests::messages {

void add_method_cases(std::vector<MessageCase>& cases) {
  std::vector<Exchange> known;
  std::vector<Exchange> unknown;
  for (const std::string method : {"DELETE", "QUERY", "PROPFIND", "BREW"}) {
    known.push_back(
        {.request = {.method = method, .target = "/none"},
         .response = {.status = 405, .fields = {.present = {{"Allow", "GET, HEAD, OPTIONS"}}}},
         .handled = {}});
    // Only a method that no route has is not implemented, and only elsewhere.
    unknown.push_back({.request = {.method = method, .target = "/unknown"},
                       .response = {.status = method == "BREW" ? 501 : 404},
                       .handled = {}});
  }
  cases.push_back(in_order("AKnownResourceNamesItsMethods", std::move(known)));
  cases.push_back(in_order("AnUnknownResourceIsNotFound", std::move(unknown)));
  cases.push_back(in_order(
      "AnyTokenMayHaveARoute",
      {{.request = {.method = "QUERY", .target = "/found", .message = {.body = {"all"}}},
        .response = {.body = "found"},
        .handled = {}},
       {.request = {.method = "PROPFIND", .target = "/found"},
        .response = {.body = "properties"},
        .handled = {}},
       {.request = {.target = "/found"},
        .response = {.status = 405, .fields = {.present = {{"Allow", "OPTIONS, PROPFIND, QUERY"}}}},
        .handled = {}}}));
}

}  // namespace weir::tests::messages
