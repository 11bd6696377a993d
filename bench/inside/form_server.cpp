// form_server: POST /form reads a multipart form and answers the number of bytes of its parts.
// The work M1 of ./dev bench compares it with bench/peers/form-go.
#include <cstdint>
#include <string>

#include "weir/web.hpp"

using namespace weir;

Task<Result<http::Response>> form(http::Multipart form) {
  std::uint64_t bytes = 0;
  for (;;) {
    WEIR_CO_TRY(http::Part* const part, co_await form.next_part());
    if (part == nullptr) co_return http::text(std::to_string(bytes));
    for (;;) {
      WEIR_CO_TRY(const Bytes piece, co_await part->read());
      if (piece.empty()) break;
      bytes += piece.size();
    }
  }
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.post("/form", form, {.timeout = std::chrono::minutes(10), .body_max = 1 << 30});
  return http::run(routes, argc, argv);
}
