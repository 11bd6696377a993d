// Cases about input that costs work and gives no output: empty blocks of DEFLATE and gzip.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/company.hpp"
#include "tools/weir/check/scripts.hpp"
#include "tools/weir/check/websocket_wire.hpp"
#include "weir/task/scope.hpp"

namespace weir::check {
namespace {

constexpr std::size_t attackers = 8;
constexpr std::size_t input_bytes = 1'000'000;  // of each attacker; below the usual limit of 1 MiB
constexpr std::size_t quiet_requests = 20;      // measure the latency without an attack

// ---- Empty blocks of DEFLATE --------------------------------------------------------------------

/// Appends bits as DEFLATE packs them: the first one is the lowest of its byte (RFC 1951, 3.1.1).
class BitWriter {
 public:
  /// Appends the lowest `count` bits of `value`, the lowest one first.
  void number(unsigned value, unsigned count) {
    for (unsigned bit = 0; bit < count; ++bit) {
      if (used_ % 8 == 0) bytes_ += '\0';
      if ((value >> bit & 1U) != 0) {
        bytes_.back() =
            static_cast<char>(static_cast<unsigned char>(bytes_.back()) | 1U << used_ % 8);
      }
      ++used_;
    }
  }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
  unsigned used_ = 0;  // bits
};

/// Appends a block whose only symbol is the end, with the longest description of its codes. They
/// are 0 for 256, the end, and 0 for the only distance (RFC 1951, 3.2.7).
void append_dynamic_block(BitWriter& bits) {
  constexpr std::array order{16U, 17U, 18U, 0U,  8U, 7U,  9U, 6U,  10U,
                             5U,  11U, 4U,  12U, 3U, 13U, 2U, 14U, 1U};
  bits.number(0, 1);  // not the last block
  bits.number(2, 2);  // dynamic codes
  bits.number(0, 5);  // 257 codes of literals
  bits.number(0, 5);  // one code of distances
  bits.number(static_cast<unsigned>(order.size()) - 4, 4);
  for (const unsigned symbol : order) bits.number(symbol == 18 || symbol == 1 ? 1 : 0, 3);
  // In the codes of the lengths, 0 stands for the length 1, and 1 for 11 to 138 lengths of 0.
  bits.number(1, 1);
  bits.number(138 - 11, 7);
  bits.number(1, 1);
  bits.number(118 - 11, 7);
  bits.number(0, 1);
  bits.number(0, 1);
  bits.number(0, 1);  // the end of the block
}

/// Eight of them fill whole bytes, whatever their size.
std::string dynamic_blocks() {
  BitWriter bits;
  for (int count = 0; count < 8; ++count) append_dynamic_block(bits);
  return bits.bytes();
}

std::string repeated_to(std::size_t size, std::string_view piece) {
  std::string all;
  all.reserve(size + piece.size());
  while (all.size() + piece.size() <= size) all += piece;
  return all;
}

constexpr std::string_view final_block("\x03\0", 2);           // with fixed codes
constexpr std::string_view stored_block("\0\0\0\xff\xff", 5);  // not the last one
constexpr std::string_view gzip_head("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
constexpr std::string_view gzip_end("\x03\0\0\0\0\0\0\0\0\0", 10);  // an empty block, CRC and size

constexpr std::size_t window_bytes = std::size_t{32} << 10;

/// Returns a stored block that fills the window. A decoder that begins anew behind each final block
/// has to keep it (RFC 7692 7.2.3.2).
std::string full_window() {
  return std::string("\0\x00\x80\xff\x7f", 5) + std::string(window_bytes, 'w');
}

struct WorkCase {
  std::string_view name;
  std::string_view why;
  std::string (*input)();
};

constexpr std::array message_cases{
    WorkCase{"empty-final-blocks", "messages of 480,000 final blocks without data",
             [] { return full_window() + repeated_to(input_bytes - window_bytes, final_block); }},
    WorkCase{"empty-stored-blocks", "messages of 200,000 stored blocks without data",
             [] { return repeated_to(input_bytes, stored_block); }},
    WorkCase{"empty-dynamic-blocks", "messages of blocks with codes and without data",
             [] { return repeated_to(input_bytes, dynamic_blocks()); }},
};
constexpr std::array body_cases{
    WorkCase{"gzip-empty-blocks", "bodies of 200,000 stored blocks without data",
             [] {
               return std::string(gzip_head) + repeated_to(input_bytes, stored_block) +
                      std::string(gzip_end);
             }},
    WorkCase{"gzip-dynamic-blocks", "bodies of blocks with codes and without data",
             [] {
               return std::string(gzip_head) + repeated_to(input_bytes, dynamic_blocks()) +
                      std::string(gzip_end);
             }},
    WorkCase{
        "gzip-empty-members", "bodies of 50,000 gzip members without data",
        [] { return repeated_to(input_bytes, std::string(gzip_head) + std::string(gzip_end)); }},
};

template <class Rows>
const WorkCase& row_of(const Rows& rows, const Case& test_case) {
  const std::string_view name =
      std::string_view(test_case.name).substr(test_case.rule->name.size() + 1);
  return *std::ranges::find(rows, name, &WorkCase::name);
}

// ---- The attack ---------------------------------------------------------------------------------

/// Clients that send the same bytes at the same time.
struct Attack {
  const CheckTarget& target;
  std::string bytes;
  Task<> (*send)(Attack& attack);
  std::size_t running = 0;
};

Task<> send_message(Attack& attack) {
  WebSocketWire wire(attack.target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(attack.bytes, attack.target.timeout);
  --attack.running;
}

Task<> send_body(Attack& attack) {
  CheckConnection connection(attack.target);
  StopCondition until;
  until.final_count = 1;
  until.wait_timeout = attack.target.timeout;
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(attack.bytes, until);
  --attack.running;
}

Task<CompanyReport> observe_attack(Scope& scope, Attack& attack) {
  attack.running = attackers;
  for (std::size_t count = 0; count < attackers; ++count) scope.spawn(attack.send(attack));
  CompanyReport report = co_await observe_company_while(attack.target, attack.running);
  co_return report;
}

std::string seconds_of_work(Duration time) {
  return milliseconds(time) + " of processor time";
}

/// Sends the bytes from all clients, and judges the latency of another one.
Task<Verdict> check_attack(const CheckTarget& target, std::string bytes,
                           Task<> (*send)(Attack& attack)) {
  const CompanyReport quiet = co_await observe_company(target, quiet_requests);
  const Duration latency_max = target.latency_max + quiet.worst;
  const std::string expected = "others wait at most " + milliseconds(latency_max);
  Attack attack{target, std::move(bytes), send};
  const auto before = target.processor_time ? target.processor_time() : std::nullopt;
  const auto observed = co_await with_scope(OnFailure::isolate, observe_attack, std::ref(attack));
  const auto after = target.processor_time ? target.processor_time() : std::nullopt;
  const CompanyReport report = observed ? *observed : CompanyReport();
  std::string actual = milliseconds(report.worst);
  if (before && after) actual += ", " + seconds_of_work(*after - *before);
  const bool served = report.trouble.empty() && report.worst <= latency_max;
  if (!report.trouble.empty()) actual += ", a GET beside the attack got: " + report.trouble;
  co_return with_sent(served ? passed(expected, actual) : failed(expected, actual), attack.bytes);
}

// ---- Messages of WebSockets ---------------------------------------------------------------------

Task<Verdict> check_messages(const CheckTarget& target, const Case& test_case) {
  const std::string expected = "others wait a short time";
  const std::string request = deflating_websocket_request(target);
  const std::string last = websocket_frame(0x89, websocket_last_ping);
  WebSocketWire asking(target);
  const bool opened = co_await asking.open();
  if (opened) co_await asking.exchange(request + last, target.timeout);
  if (auto verdict = asking.verdict_without_websocket(expected)) co_return *std::move(verdict);
  if (!asking.deflates()) co_return not_applicable(expected, "the server does not compress");
  const std::string input = row_of(message_cases, test_case).input();
  std::string bytes = request + websocket_frame(0xc2, input) + last;  // compressed bytes
  co_return co_await check_attack(target, std::move(bytes), send_message);
}

// ---- Bodies -------------------------------------------------------------------------------------

Task<Verdict> check_bodies(const CheckTarget& target, const Case& test_case) {
  const std::string body = row_of(body_cases, test_case).input();
  const std::string fields = "Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n";
  std::string bytes = post_head(target, fields) + body;
  co_return co_await check_attack(target, std::move(bytes), send_body);
}

}  // namespace

void add_work_scripts(CaseRegistry& registry) {
  for (const WorkCase& each : body_cases) {
    registry.add("limits", each.name, each.why, check_bodies).pace = CasePace::alone;
  }
  for (const WorkCase& each : message_cases) {
    registry.add("websocket", each.name, each.why, check_messages).pace = CasePace::alone;
  }
}

}  // namespace weir::check
