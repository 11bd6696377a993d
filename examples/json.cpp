// json: POST /invoices takes an order and answers with an invoice. Both are plain structs. Try it:
//
//   echo '{"customer":"Ann","items":[{"name":"tea","cents":250}]}' >order.json
//   curl localhost:8080/invoices -H 'Content-Type: application/json' -d @order.json
//
// The server answers an invalid order with 400 and the path of the invalid field.
#include <weir/http.hpp>

using namespace weir;

enum class Shipping { standard, express };

template <>
inline constexpr std::array json::enumerators<Shipping>{json::Named{Shipping::standard, "standard"},
                                                        json::Named{Shipping::express, "express"}};

struct Item {
  std::string name;
  std::int32_t cents;
  std::uint16_t count = 1;  // may be missing
};
struct Order {
  std::string customer;
  std::vector<Item> items;
  std::optional<Shipping> shipping;
};
struct Invoice {
  std::string customer;
  std::vector<std::string> lines;
  std::int64_t total_cents;
};

/// The body is read into the Order; what is returned is written as JSON.
Result<Invoice> make_invoice(Order order) {
  if (order.items.empty()) return fail(Errc::bad_input);  // 400
  Invoice invoice{order.customer, {}, order.shipping == Shipping::express ? 1499 : 499};
  for (const Item& item : order.items) {
    const std::int64_t cents = std::int64_t{item.cents} * item.count;
    invoice.total_cents += cents;
    invoice.lines.push_back(std::to_string(item.count) + " x " + item.name + ": " +
                            std::to_string(cents));
  }
  return invoice;
}

int main(int argc, char** argv) {
  http::Router routes;
  routes.post("/invoices", make_invoice);
  return http::run(routes, argc, argv);
}
