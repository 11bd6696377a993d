// Decodes any bytes as field blocks of one connection. nghttp2 judges the decoder. The limit of a
// list does not change the table, and a head that is accepted keeps its meaning in HTTP/1.1.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "weir/base/text/detail/ascii_case.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/request_fields.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/test/nghttp2_decoder.hpp"

namespace {

using weir::to_bytes;
using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using namespace weir::http;
using Kind = FieldsResult::Kind;

using Fields = std::vector<TextField>;

/// No input has a longer list.
constexpr std::uint32_t list_bytes_max = 16 * 1024 * 1024;

std::optional<Fields> decode(HpackTable& table, std::string_view block, std::uint32_t limit,
                             bool* exceeded = nullptr) {
  static std::vector<char> scratch(HpackDecoder::scratch_size(list_bytes_max));
  HpackDecoder decoder(table, to_bytes(block), limit,
                       {scratch.data(), HpackDecoder::scratch_size(limit)});
  Fields fields;
  HpackDecoder::Step step;
  std::uint64_t list_bytes = 0;
  while ((step = decoder.next()) == HpackDecoder::Step::field) {
    const HpackDecoder::Field& field = decoder.field();
    list_bytes += hpack_size({field.name, field.value});
    require(list_bytes <= limit);
    fields.push_back({std::string(field.name), std::string(field.value), field.never_indexed});
  }
  require(table.memory() <= HpackTable::memory_max && table.size() <= table.size_max());
  if (exceeded != nullptr) *exceeded = decoder.exceeded();
  if (step == HpackDecoder::Step::error) return std::nullopt;
  return fields;
}

void require_equal(const HpackTable& one, const HpackTable& other) {
  require(one.count() == other.count() && one.size() == other.size());
  for (std::uint32_t index = 0; index < one.count(); ++index) {
    require(one[index].name == other[index].name && one[index].value == other[index].value);
  }
}

/// Encodes the fields and decodes the result.
void check_encoder(const Fields& fields) {
  std::string block;
  Fields expected = fields;
  for (TextField& each : expected) {
    std::string out(hpack_field_size_max(each.name, each.value), '\0');
    const auto indexing = each.never_indexed ? HpackIndexing::never : HpackIndexing::allowed;
    const char* const end = write_hpack_field(each.name, each.value, out.data(), indexing);
    block.append(out, 0, static_cast<std::size_t>(end - out.data()));
    std::transform(each.name.begin(), each.name.end(), each.name.begin(), weir::to_lower);
  }
  HpackTable table;
  require(decode(table, block, list_bytes_max) == expected);
  require(table.memory() == 0);
}

std::string value_of(const Fields& fields, std::string_view name) {
  for (const TextField& each : fields) {
    if (each.name == name) return each.value;
  }
  return "";
}

/// Checks what an accepted head promises: each field is in it once, and no other.
void check_head(const Fields& fields, const RequestHead& head, const FieldsResult& result) {
  const ExactCopy text(head.bytes());
  HeadParser parser;
  RequestHead again;
  const ParseResult parsed = parser.parse(text.view(), again);
  require(parsed.kind == ParseResult::Kind::complete && parsed.consumed == text.view().size());
  require(!head.chunked() && head.keep_alive());
  require(head.requests_upgrade() == result.is_extended_connect);
  const std::string method = value_of(fields, ":method");
  if (!result.is_extended_connect) require(head.method_text() == method);
  require(head.target() ==
          value_of(fields,
                   method == "CONNECT" && !result.is_extended_connect ? ":authority" : ":path"));
  std::size_t others = 0;
  std::string cookie;
  for (const TextField& each : fields) {
    if (each.name.starts_with(':') || each.name == "host") continue;
    if (each.name == "cookie") {
      cookie += (cookie.empty() ? "" : "; ") + each.value;
      continue;
    }
    ++others;
    require(std::none_of(each.name.begin(), each.name.end(),
                         [](char letter) { return letter >= 'A' && letter <= 'Z'; }));
  }
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    require(is_valid_header(header.name, header.value));
    if (header.name == "host" || header.name == "cookie") continue;
    if (result.is_extended_connect && (header.name == "connection" || header.name == "upgrade")) {
      continue;
    }
    require(others-- > 0);
  }
  require(others == 0);
}

/// The tables of both ends of the same connection, with different limits.
struct Connection {
  Nghttp2Decoder judge;
  HpackTable table;
  HpackTable limited;
  HpackTable of_requests;
};

RequestFieldReader& reader() {
  static RequestFieldReader made(
      {.head = {}, .list_bytes_max = 64 * 1024, .extended_connect = true});
  return made;
}

/// Returns false if the block is invalid, which ends the connection.
bool check_block(Connection& connection, std::string_view block) {
  const std::optional<Fields> expected = connection.judge.decode(block);
  const std::optional<Fields> fields = decode(connection.table, block, list_bytes_max);
  require(fields == expected);
  bool exceeded = false;
  const std::optional<Fields> some = decode(connection.limited, block, 100, &exceeded);
  require(some.has_value() == fields.has_value());
  RequestHead head;
  const FieldsResult result = reader().read_request(connection.of_requests, to_bytes(block), head);
  require((result.kind == Kind::invalid_block) == !fields.has_value());
  require((result.kind == Kind::rejected) == (result.error != ParseError::none));
  if (!fields) return false;
  require(exceeded || *some == *fields);
  require(std::equal(some->begin(), some->end(), fields->begin(),
                     fields->begin() + static_cast<std::ptrdiff_t>(some->size())));
  require(connection.table.size() == connection.judge.table_size());
  require_equal(connection.table, connection.limited);
  require_equal(connection.table, connection.of_requests);
  check_encoder(*fields);
  if (result.kind == Kind::complete) check_head(*fields, head, result);
  HpackTable none;
  Headers trailers;
  if (reader().read_trailers(none, to_bytes(block), trailers).kind != Kind::complete) return true;
  for (const HeaderField header : trailers) require(is_valid_header(header.name, header.value));
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Each block has its length before it, in one byte; 255 is the rest of the input.
  Connection connection;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const auto length = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    const ExactCopy block(length == 255 ? rest : rest.substr(0, length));
    rest.remove_prefix(block.view().size());
    if (!check_block(connection, block.view())) break;
  }
  return 0;
}
