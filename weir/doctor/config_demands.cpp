#include "weir/doctor/config_demands.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/config/source/detail/raw_value.hpp"
#include "weir/config/source/detail/toml.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/json/text/units.hpp"
#include "weir/runtime/options.hpp"

namespace weir::doctor {
namespace {

using config::RawValue;
using Kind = RawValue::Kind;

const RawValue* find(const RawValue& table, std::string_view name) {
  const auto found = std::ranges::find(table.items, name, &RawValue::name);
  return found == table.items.end() ? nullptr : &*found;
}

/// Returns the text of an item; empty if there is none.
std::string text_in(const RawValue& table, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const RawValue* const item = find(table, name);
    if (item != nullptr && item->kind == Kind::string) return item->text;
  }
  return {};
}

std::optional<std::uint64_t> number_of(const RawValue& value) {
  if (value.kind == Kind::integer && value.integer >= 0) {
    return static_cast<std::uint64_t>(value.integer);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_of(const RawValue& value) {
  if (value.kind != Kind::string) return number_of(value);
  const auto size = json::parse_byte_size(value.text);
  if (!size) return std::nullopt;
  return size->bytes();
}

/// Returns the texts of a string or of an array of strings.
std::vector<std::string> texts_of(const RawValue& value) {
  if (value.kind == Kind::string) return {value.text};
  std::vector<std::string> texts;
  if (value.kind != Kind::array) return texts;
  for (const RawValue& each : value.items) {
    if (each.kind == Kind::string) texts.push_back(each.text);
  }
  return texts;
}

std::optional<BackendChoice> backend_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, BackendChoice>, 5> choices = {{
      {"automatic", BackendChoice::automatic},
      {"uring", BackendChoice::uring},
      {"uring_6_1", BackendChoice::uring_6_1},
      {"epoll", BackendChoice::epoll},
      {"poll", BackendChoice::poll},
  }};
  for (const auto& [known, choice] : choices) {
    if (known == name) return choice;
  }
  return std::nullopt;
}

/// Walks over all tables of a file and collects what they ask for.
class Collector {
 public:
  DoctorOptions take() {
    checks::Demands& demands = options_.demands;
    if (limits_.connections_max != 0) {
      const unsigned cores = demands.cores.value_or(1);
      demands.connections_max = limits_.connections_max;
      memory_.cores = cores;
      demands.memory_bytes = http::memory_bound(limits_, memory_).total();
    }
    return std::move(options_);
  }

  /// `of_client` is true below a table of a client, whose limits concern no server.
  void visit_table(const RawValue& table, bool of_client) {
    take_certificates(table);
    take_address(table);
    for (const RawValue& item : table.items) {
      const bool client = of_client || item.name.find("client") != item.name.npos;
      take_number(item, client);
      if (!client) take_features(item);
      take_texts(item);
      if (item.name == "real_time" && item.kind == Kind::table) take_real_time(item);
      if (item.kind == Kind::table) visit_table(item, client);
      if (item.kind != Kind::array) continue;
      for (const RawValue& each : item.items) {
        if (each.kind == Kind::table) visit_table(each, client);
      }
    }
  }

 private:
  void take_number(const RawValue& item, bool client) {
    checks::Demands& demands = options_.demands;
    const auto number = number_of(item);
    if (item.name == "body_max" && !client) limits_.body_max = bytes_of(item).value_or(0);
    if (!number || *number == 0) return;
    constexpr std::uint64_t largest = std::uint64_t{1} << 31;
    const std::uint64_t value = std::min(*number, largest);
    if (item.name == "connections_max" && !client) {
      limits_.connections_max = std::max<std::size_t>(limits_.connections_max, value);
    } else if (item.name == "cores") {
      demands.cores = static_cast<unsigned>(value);
    } else if (item.name == "backlog") {
      demands.backlog = static_cast<std::int64_t>(value);
    } else if (item.name == "connections_per_origin_max" || item.name == "outgoing_connections") {
      demands.outgoing_connections =
          std::max(demands.outgoing_connections.value_or(0), static_cast<std::int64_t>(value));
    }
  }

  /// Takes the features of a server that need more memory for each connection.
  void take_features(const RawValue& item) {
    const bool is_on = item.kind == Kind::boolean ? item.boolean
                                                  : !(item.kind == Kind::string &&
                                                      (item.text.empty() || item.text == "off"));
    if (!is_on) return;
    if (item.name == "http2" || item.name == "plain_http2") memory_.http2 = true;
    if (item.name == "websockets" || item.name == "websocket") memory_.websockets = true;
    if (item.name == "proxy_protocol") memory_.proxy_protocol = true;
  }

  void take_texts(const RawValue& item) {
    const std::string& name = item.name;
    if (name == "backend" && item.kind == Kind::string) {
      if (const auto choice = backend_of(item.text)) options_.demands.backend = choice;
    }
    if (name == "log_file") options_.demands.writes_files = true;
    if (name == "url" || name == "dsn" || name.ends_with("_url") || name == "urls" ||
        name == "upstreams") {
      append(options_.stores, texts_of(item));
    }
    if (name == "host_names") append(options_.names, texts_of(item));
    if (name == "listen" || name == "endpoint" || name == "endpoints") {
      for (const std::string& each : texts_of(item)) {
        if (const auto endpoint = Endpoint::parse(each)) {
          options_.demands.endpoints.push_back(*endpoint);
        }
      }
    }
  }

  static void append(std::vector<std::string>& to, std::vector<std::string> texts) {
    for (std::string& each : texts) {
      if (std::ranges::find(to, each) == to.end()) to.push_back(std::move(each));
    }
  }

  void take_real_time(const RawValue& table) {
    options_.demands.real_time_priority = RealTime().priority;
    options_.demands.lock_memory = RealTime().lock_memory;
    if (const RawValue* const priority = find(table, "priority")) {
      if (const auto number = number_of(*priority)) {
        options_.demands.real_time_priority =
            static_cast<int>(std::min<std::uint64_t>(*number, 99));
      }
    }
    const RawValue* const lock = find(table, "lock_memory");
    if (lock != nullptr && lock->kind == Kind::boolean)
      options_.demands.lock_memory = lock->boolean;
  }

  /// A table has one certificate, or two lists of the same length.
  void take_certificates(const RawValue& table) {
    std::string chain = text_in(table, {"chain", "certificate", "cert", "tls_cert"});
    std::string key = text_in(table, {"key", "tls_key"});
    if (!chain.empty() && !key.empty()) {
      options_.certificates.push_back({std::move(chain), std::move(key)});
    }
    const RawValue* const chains = find(table, "certificates");
    const RawValue* const keys = find(table, "keys");
    if (chains == nullptr || keys == nullptr) return;
    const auto chain_texts = texts_of(*chains);
    const auto key_texts = texts_of(*keys);
    for (std::size_t index = 0; index < std::min(chain_texts.size(), key_texts.size()); ++index) {
      options_.certificates.push_back({chain_texts[index], key_texts[index]});
    }
  }

  /// A table of a server may have an address and a port of its own.
  void take_address(const RawValue& table) {
    const RawValue* const port = find(table, "port");
    if (port == nullptr || port->kind != Kind::integer) return;
    const std::string address = text_in(table, {"address", "bind"});
    const bool any = address.empty() && text_in(table, {"host"}).empty();
    if (address.empty() && !any) return;
    const bool ipv6 = address.find(':') != address.npos;
    const std::string text =
        (ipv6 ? "[" + address + "]" : address) + ":" + std::to_string(port->integer);
    if (const auto endpoint = Endpoint::parse(text)) {
      options_.demands.endpoints.push_back(*endpoint);
    }
  }

  DoctorOptions options_;
  http::Limits limits_;
  http::MemoryBoundOptions memory_;
};

}  // namespace

std::expected<DoctorOptions, config::Errors> demands_of(const config::FileText& file) {
  config::Errors errors;
  if (auto error = config::error_of(file)) {
    errors.add(std::move(*error));
  } else if (file.text) {
    auto table = config::parse_toml(*file.text, file.path);
    if (table) {
      Collector collector;
      collector.visit_table(*table, false);
      return collector.take();
    }
    errors.add(std::move(table.error()));
  } else {
    errors.add({.source = file.path, .key = {}, .what = "the file does not exist"});
  }
  return std::unexpected(std::move(errors));
}

}  // namespace weir::doctor
