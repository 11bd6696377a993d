// The reports of `weir bench`: text and JSON.
#include "tools/weir/bench_report.hpp"

#include <array>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace weir::bench {
namespace {

constexpr std::array<std::pair<const char*, double>, 4> percentiles{
    {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}}};

[[gnu::format(printf, 2, 3)]] void print(std::string& out, const char* format, ...) {
  std::array<char, 512> line;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  out += line.data();
}

double seconds_of(Duration length) {
  return std::chrono::duration<double>(length).count();
}

std::string in_words(std::uint64_t nanoseconds) {
  std::string text;
  const auto value = static_cast<double>(nanoseconds);
  if (value < 1e6) {
    print(text, "%.1f us", value / 1e3);
  } else if (value < 1e9) {
    print(text, "%.2f ms", value / 1e6);
  } else {
    print(text, "%.2f s", value / 1e9);
  }
  return text;
}

/// Escapes everything except printable ASCII, for a JSON string or a terminal.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      (out += '\\') += each;
    } else if (byte < 0x20 || byte >= 0x7f) {
      print(out, "\\u%04x", byte);
    } else {
      out += each;
    }
  }
  return out;
}

/// Responses per second of CPU time of the server, and its share of the measured time.
struct ServerShare {
  double per_cpu_second = 0;
  double busy = 0;
};
std::optional<ServerShare> server_share(const LoadResult& result) {
  if (!result.server_cpu_time || result.server_cpu_time->count() <= 0) return std::nullopt;
  const double used = seconds_of(*result.server_cpu_time);
  return ServerShare{.per_cpu_second = static_cast<double>(result.responses) / used,
                     .busy = used / seconds_of(result.length)};
}

}  // namespace

bool is_clean(const LoadResult& result) noexcept {
  return result.errors.total() == 0 && result.unanswered == 0 && result.unsent == 0 &&
         result.starved == 0 && result.responses + result.late != 0;
}

std::string to_text(const LoadPlan& plan, const LoadResult& result) {
  std::string out;
  print(out, "%u connections%s, depth %u, %.2f s, on %s\n", plan.connections,
        plan.new_connections ? ", one request each" : "", plan.depth, seconds_of(result.length),
        result.backend.c_str());
  print(out, "  rate       %.0f responses/s", result.per_second);
  if (plan.rate > 0) print(out, " (requested: %.0f requests/s)", plan.rate);
  print(out, "\n  verified   %" PRIu64 " responses, status %u, body of %" PRIu64 " bytes",
        result.responses + result.late, plan.rules.status, result.body_bytes);
  if (plan.tls != nullptr) {
    print(out, "\n  handshakes %" PRIu64 " of TLS, %" PRIu64 " resumed a session",
          result.handshakes, result.resumed);
  }
  print(out, "\n  latency   ");
  for (const auto& [name, percent] : percentiles) {
    print(out, " %s %s ", name, in_words(result.latency.percentile(percent)).c_str());
  }
  print(out, " max %s\n", in_words(result.latency.max()).c_str());
  if (const auto share = server_share(result)) {
    print(out, "  server     %.0f requests per second of server CPU time, %.1f %% busy\n",
          share->per_cpu_second, share->busy * 100);
  }
  if (result.closed_by_server != 0) {
    print(out, "  closed     %" PRIu64 " connections, after Connection: close\n",
          result.closed_by_server);
  }
  if (result.unanswered != 0) print(out, "  unanswered %" PRIu64 " requests\n", result.unanswered);
  if (result.abandoned != 0) print(out, "  abandoned  %" PRIu64 " requests\n", result.abandoned);
  if (result.starved != 0) {
    print(out, "  starved    %" PRIu64 " connections got no response in the whole time\n",
          result.starved);
  }
  if (result.unsent != 0) print(out, "  unsent     %" PRIu64 " requests were due\n", result.unsent);
  if (result.errors.total() == 0) out += "  errors     none\n";
  result.errors.visit([&](std::string_view name, std::uint64_t count, std::string_view first) {
    print(out, "  errors     %" PRIu64 " × %s: ", count, std::string(name).c_str());
    out += escaped(first) + "\n";
  });
  return out;
}

std::string to_json(const LoadPlan& plan, const LoadResult& result) {
  std::string out;
  print(out, "{\"connections\": %u, \"depth\": %u, \"new_connections\": %s, \"rate\": %.3f, ",
        plan.connections, plan.depth, plan.new_connections ? "true" : "false", plan.rate);
  print(out, "\"backend\": \"%s\", \"seconds\": %.9f, \"responses\": %" PRIu64 ", ",
        result.backend.c_str(), seconds_of(result.length), result.responses);
  print(out, "\"late\": %" PRIu64 ", \"unanswered\": %" PRIu64 ", \"abandoned\": %" PRIu64 ", ",
        result.late, result.unanswered, result.abandoned);
  print(out, "\"starved\": %" PRIu64 ", \"unsent\": %" PRIu64 ", ", result.starved, result.unsent);
  print(out, "\"opened\": %" PRIu64 ", \"closed_by_server\": %" PRIu64 ", ", result.connections,
        result.closed_by_server);
  if (plan.tls != nullptr) {
    print(out, "\"handshakes\": %" PRIu64 ", \"resumed\": %" PRIu64 ", ", result.handshakes,
          result.resumed);
  }
  print(out, "\"bytes_received\": %" PRIu64 ", \"body_bytes\": %" PRIu64 ", ",
        result.bytes_received, result.body_bytes);
  print(out, "\"responses_per_second\": %.3f, \"latency_ns\": {", result.per_second);
  print(out, "\"min\": %" PRIu64 ", \"mean\": %.1f, ", result.latency.min(), result.latency.mean());
  for (const auto& [name, percent] : percentiles) {
    print(out, "\"%s\": %" PRIu64 ", ", name, result.latency.percentile(percent));
  }
  print(out, "\"max\": %" PRIu64 "}, \"histogram_ns\": [", result.latency.max());
  bool separate = false;
  result.latency.visit([&](std::uint64_t top, std::uint64_t count) {
    if (std::exchange(separate, true)) out += ", ";
    print(out, "[%" PRIu64 ", %" PRIu64 "]", top, count);
  });
  out += "], ";
  if (const auto share = server_share(result)) {
    print(out, "\"server\": {\"cpu_seconds\": %.9f, ", seconds_of(*result.server_cpu_time));
    print(out, "\"busy\": %.6f, \"responses_per_cpu_second\": %.3f}, ", share->busy,
          share->per_cpu_second);
  }
  print(out, "\"error_count\": %" PRIu64 ", \"errors\": {", result.errors.total());
  separate = false;
  result.errors.visit([&](std::string_view name, std::uint64_t count, std::string_view first) {
    if (std::exchange(separate, true)) out += ", ";
    print(out, "\"%s\": {\"count\": %" PRIu64 ", \"first\": \"", std::string(name).c_str(), count);
    out += escaped(first) + "\"}";
  });
  return out + "}}\n";
}

}  // namespace weir::bench
