// errors: returns failures as values, which become statuses. Try:
//   curl -i localhost:8080/accounts/7; curl -i localhost:8080/broken
//   curl localhost:8080/accounts/1/payments -H Content-Type:application/json -d '{"cents":70}'
#include <weir/http.hpp>
#include <weir/net/files.hpp>

#include <expected>
#include <stdexcept>

using namespace weir;

struct Account {
  int number, cents;
};
struct Payment {
  int cents;
};

Result<Account> find_account(int number) {
  if (number < 1 || number > 3) return fail(Errc::not_found);
  return Account{number, number * 100};
}

/// The answer is the account as JSON, or the status of the error.
Result<Account> show(int number) {
  return find_account(number);
}

Task<std::expected<Account, http::Response>> pay(int number, Payment payment) {
  WEIR_CO_TRY(auto account, find_account(number));          // 404
  if (payment.cents <= 0) co_return fail(Errc::bad_input);  // 400
  if (payment.cents > account.cents)                        // 409, with a text
    co_return std::unexpected(http::problem(http::Status::conflict, "the account has less money"));
  account.cents -= payment.cents;
  auto writing = files::write_file("receipts/last.txt", std::to_string(payment.cents));
  WEIR_CO_TRY(co_await timeout(2s, std::move(writing)));  // 500 if the folder is missing
  co_return account;
}

http::Response broken() {
  throw std::logic_error("a fault of this program");  // 500
}

Task<http::Response> forbid_caching(http::Request& request, http::Next next) {
  auto response = co_await next(request);
  if (http::code_of(response.status()) >= 400) response.set_header("Cache-Control", "no-store");
  co_return response;
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.use(forbid_caching);
  routes.get("/accounts/{number}", show);
  routes.post("/accounts/{number}/payments", pay);
  routes.get("/broken", broken);
  return http::run(routes, argc, argv);
}
