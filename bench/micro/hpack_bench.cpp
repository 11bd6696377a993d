// Measures how long HPACK takes: the fields of a request of a load generator and of a browser, each
// as the first and as a later request of a connection, and the fields of a response.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/request_fields.hpp"

namespace weir::http {
namespace {

using Fields = std::vector<HeaderField>;

const Fields short_get{{":method", "GET"},
                       {":path", "/plaintext"},
                       {":scheme", "http"},
                       {":authority", "127.0.0.1:8080"},
                       {"user-agent", "h2load nghttp2/1.52.0"}};
const Fields browser_get{
    {":method", "GET"},
    {":authority", "www.example.com"},
    {":scheme", "https"},
    {":path", "/articles/2026/11/protocols?page=2"},
    {"sec-ch-ua", "\"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\""},
    {"sec-ch-ua-mobile", "?0"},
    {"sec-ch-ua-platform", "\"Linux\""},
    {"upgrade-insecure-requests", "1"},
    {"user-agent",
     "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 "
     "Safari/537.36"},
    {"accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*"},
    {"sec-fetch-site", "none"},
    {"sec-fetch-mode", "navigate"},
    {"accept-encoding", "gzip, deflate, br, zstd"},
    {"accept-language", "en-US,en;q=0.9"},
    {"cookie", "session=0123456789abcdef0123456789abcdef"},
    {"cookie", "theme=dark"}};

/// Returns a block of these fields, which inserts each of them into the table.
std::string inserting_block(const Fields& fields) {
  std::string block;
  for (const HeaderField& each : fields) {
    std::string out(hpack_field_size_max(each.name, each.value), '\0');
    const char* const end = write_hpack_field(each.name, each.value, out.data());
    out.resize(static_cast<std::size_t>(end - out.data()));
    const bool literal = (out[0] & 0x80) == 0;
    if (literal && out[0] != 0x0f) out[0] = static_cast<char>(out[0] | 0x40);
    if (literal && out[0] == 0x0f) {  // an index of 15 and more has its own byte
      out.erase(0, 1);
      out[0] = static_cast<char>((out[0] + 15) | 0x40);
    }
    block += out;
  }
  return block;
}

/// Returns the block of a later request with the same fields.
std::string indexed_block(const Fields& fields) {
  std::string block;
  std::size_t inserted = 0;
  for (const HeaderField& each : fields) {
    std::string out(hpack_field_size_max(each.name, each.value), '\0');
    write_hpack_field(each.name, each.value, out.data());
    inserted += (out[0] & 0x80) == 0 ? 1 : 0;
  }
  for (const HeaderField& each : fields) {
    std::string out(hpack_field_size_max(each.name, each.value), '\0');
    write_hpack_field(each.name, each.value, out.data());
    block += (out[0] & 0x80) != 0 ? out[0] : static_cast<char>(0x80 | (61 + inserted--));
  }
  return block;
}

void read(benchmark::State& state, RequestFieldReader& reader, HpackTable& table,
          std::string_view block) {
  RequestHead head;
  const FieldsResult result = reader.read_request(table, to_bytes(block), head);
  if (result.kind != FieldsResult::Kind::complete) state.SkipWithError("another result");
  benchmark::DoNotOptimize(head);
}

void first_request(benchmark::State& state, const Fields& fields) {
  RequestFieldReader reader;
  HpackTable table;
  const std::string block = inserting_block(fields);
  for (auto _ : state) {
    read(state, reader, table, block);
    table.clear();
  }
}

void later_request(benchmark::State& state, const Fields& fields) {
  RequestFieldReader reader;
  HpackTable table;
  read(state, reader, table, inserting_block(fields));
  const std::string block = indexed_block(fields);
  for (auto _ : state) read(state, reader, table, block);
}

void response(benchmark::State& state) {
  std::array<char, 256> out;
  for (auto _ : state) {
    char* end = write_hpack_status(Status::ok, out.data());
    end = write_hpack_field("date", "Thu, 26 Nov 2026 19:45:00 GMT", end);
    end = write_hpack_field("content-type", "text/plain; charset=utf-8", end);
    end = write_hpack_field("content-length", "13", end);
    benchmark::DoNotOptimize(end);
    benchmark::ClobberMemory();
  }
}

BENCHMARK_CAPTURE(first_request, short_get, short_get);
BENCHMARK_CAPTURE(later_request, short_get, short_get);
BENCHMARK_CAPTURE(first_request, browser_get, browser_get);
BENCHMARK_CAPTURE(later_request, browser_get, browser_get);
BENCHMARK(response);

}  // namespace
}  // namespace weir::http
