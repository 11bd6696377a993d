#include "weir/net/hosts_file.hpp"

#include <algorithm>
#include <utility>

#include "weir/net/dns/detail/host_name.hpp"
#include "weir/net/text_fields.hpp"

namespace weir::names {

HostsFile HostsFile::parse(std::string_view text) {
  HostsFile file;
  while (!text.empty()) {
    std::string_view rest = take_line(text);
    std::string_view line = take_until(rest, "#");
    const auto address = parse_ip_address(take_field(line), 0);
    if (!address) continue;
    for (auto field = take_field(line); !field.empty(); field = take_field(line)) {
      auto name = parse_host_name(field);
      if (!name) continue;
      auto& addresses = file.addresses_[std::move(name->text)];
      if (std::ranges::find(addresses, *address) == addresses.end()) addresses.push_back(*address);
    }
  }
  return file;
}

const std::vector<Endpoint>* HostsFile::find(std::string_view name) const {
  const auto found = addresses_.find(name);
  return found == addresses_.end() ? nullptr : &found->second;
}

}  // namespace weir::names
