#include "tests/limited_server.hpp"

#include <csignal>
#include <sstream>
#include <stdexcept>

namespace weir::tests {
namespace {

std::vector<std::string> arguments_of(BackendName backend, const std::vector<std::string>& limits) {
  std::vector<std::string> all{"--listen=127.0.0.1:0", "--runtime.cores=2", "--runtime.pin=false",
                               "--runtime.backend=" + std::string(backend.option)};
  all.insert(all.end(), limits.begin(), limits.end());
  return all;
}

}  // namespace

LimitedServer::LimitedServer(BackendName backend, const std::vector<std::string>& limits)
    : process_(Process::example("limits", arguments_of(backend, limits))) {
  const auto port = process_.wait_for_port();
  if (!port) throw std::runtime_error("limits: " + process_.errors());
  port_ = *port;
  if (!eventually([&] { return process_.sockets() >= 2; })) {
    throw std::runtime_error("limits does not listen on every core");
  }
  const auto bound = Client(port_).exchange(get("/bound"));
  if (!bound || bound->status != 200) throw std::runtime_error("limits does not report its bound");
  memory_bound_ = std::stoull(bound->body);
  if (!eventually([&] { return total("http connections open") == 1; })) {
    throw std::runtime_error("limits keeps a closed connection");
  }
  descriptors_ = process_.descriptors();
}

std::optional<std::uint64_t> LimitedServer::total(Client& client, std::string_view name) {
  const auto answer = client.exchange(get("/report"));
  if (!answer || answer->status != 200) return std::nullopt;
  std::istringstream lines(answer->body);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name) || !line.substr(name.size()).starts_with("  ")) continue;
    std::istringstream words(line.substr(name.size()));
    std::string grouped;  // "1,234,567"
    words >> grouped;
    std::erase(grouped, ',');
    return std::stoull(grouped);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> LimitedServer::total(std::string_view name) const {
  auto client = Client::connect(os::Address::loopback(port_));
  if (!client) return std::nullopt;
  return total(*client, name);
}

bool LimitedServer::wait_until_recovered() const {
  return eventually([&] {
    return total("http connections open") == 1 && process_.descriptors() <= descriptors_;
  });
}

std::optional<int> LimitedServer::stop() {
  process_.signal(SIGTERM);
  return process_.wait_for_exit();
}

}  // namespace weir::tests
