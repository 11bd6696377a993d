#include "weir/profile/detail/pprof.hpp"

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "weir/base/text/detail/protobuf_writer.hpp"

namespace weir::profile {
namespace {

using weir::detail::ProtobufWriter;

// The numbers of the fields in profile.proto.
namespace field {
enum Profile : std::uint32_t {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
};
enum ValueType : std::uint32_t { type = 1, unit = 2 };
enum Sample : std::uint32_t { location_id = 1, value = 2, label = 3 };
enum Label : std::uint32_t { key = 1, str = 2, num = 3 };
enum Mapping : std::uint32_t {
  mapping_id = 1,
  memory_start = 2,
  memory_limit = 3,
  file_offset = 4,
  filename = 5,
  build_id = 6,
  has_functions = 7,
};
enum Location : std::uint32_t { id = 1, mapping_of_location = 2, address = 3, line = 4 };
enum Line : std::uint32_t { function_id = 1 };
enum Function : std::uint32_t { id_of_function = 1, name = 2, system_name = 3 };
}  // namespace field

/// Writes the messages of one profile.
class PprofWriter {
 public:
  explicit PprofWriter(const Profile& profile) : profile_(profile) { text(""); }

  std::string write() {
    add_value_type(field::sample_type, "samples", "count");
    add_value_type(field::sample_type, "cpu", "nanoseconds");
    for (const auto& [stack, weight] : profile_.stacks) add_sample(stack, weight);
    add_mappings();
    add_locations();
    add_value_type(field::period_type, "cpu", "nanoseconds");
    out_.add_signed(field::period, nanoseconds(profile_.period()));
    out_.add_signed(field::time_nanos, nanoseconds(profile_.started.time_since_epoch()));
    out_.add_signed(field::duration_nanos, nanoseconds(profile_.length));
    if (profile_.dropped > 0) {
      out_.add_always(field::comment, text("dropped samples: " + std::to_string(profile_.dropped)));
    }
    // The table comes last: the parts above have filled it.
    for (const std::string_view each : texts_) out_.add_always(field::string_table, each);
    return out_.bytes();
  }

 private:
  template <class Length>
  static std::int64_t nanoseconds(Length length) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(length).count();
  }

  /// Returns the index of a text in the table of strings.
  std::uint64_t text(std::string_view value) {
    const auto [at, added] = text_indexes_.try_emplace(std::string(value), texts_.size());
    if (added) texts_.push_back(at->first);  // the key of a map does not move
    return at->second;
  }

  void add_value_type(std::uint32_t number, std::string_view type, std::string_view unit) {
    ProtobufWriter message;
    message.add(field::type, text(type));
    message.add(field::unit, text(unit));
    out_.add(number, message);
  }

  void add_label(ProtobufWriter& sample, std::string_view key, std::string_view value) {
    ProtobufWriter label;
    label.add(field::key, text(key));
    label.add(field::str, text(value));
    sample.add(field::label, label);
  }

  void add_sample(const Stack& stack, std::uint64_t weight) {
    ProtobufWriter ids;
    for (const std::uintptr_t each : stack.addresses) ids.append_varint(location_id(each));
    ProtobufWriter values;
    values.append_varint(weight);
    values.append_varint(weight * static_cast<std::uint64_t>(nanoseconds(profile_.period())));
    ProtobufWriter sample;
    sample.add(field::location_id, ids);
    sample.add(field::value, values);
    if (stack.core == loop::CpuSample::no_core) {
      add_label(sample, "thread", stack.thread);
    } else {
      ProtobufWriter core;
      core.add(field::key, text("core"));
      core.add_always(field::num, stack.core);
      sample.add(field::label, core);
    }
    if (!stack.route.empty()) add_label(sample, "route", stack.route);
    if (stack.activity != 0)
      add_label(sample, "coroutine", profile_.name_of(stack.activity).function);
    out_.add(field::sample, sample);
  }

  // Identifiers begin with 1. Those of functions are indexes of their names.
  std::uint64_t location_id(std::uintptr_t address) const { return profile_.index_of(address) + 1; }

  void add_mappings() {
    std::uint64_t id = 0;
    for (const os::LoadedCode& code : profile_.symbols.code) {
      ProtobufWriter mapping;
      mapping.add(field::mapping_id, ++id);
      mapping.add(field::memory_start, code.begin);
      mapping.add(field::memory_limit, code.end);
      mapping.add(field::file_offset, code.file_offset);
      mapping.add(field::filename, text(code.path));
      mapping.add(field::build_id, text(code.build_id));
      mapping.add(field::has_functions, std::uint64_t{1});
      out_.add(field::mapping, mapping);
    }
  }

  void add_locations() {
    for (std::size_t index = 0; index < profile_.addresses.size(); ++index) {
      const os::AddressName& name = profile_.symbols.names[index];
      ProtobufWriter line;
      line.add(field::function_id, function_id(name));
      ProtobufWriter location;
      location.add(field::id, index + 1);
      if (name.code != os::AddressName::no_code)
        location.add(field::mapping_of_location, name.code + 1);
      location.add(field::address, profile_.addresses[index]);
      location.add(field::line, line);
      out_.add(field::location, location);
    }
  }

  std::uint64_t function_id(const os::AddressName& name) {
    const auto [at, added] = functions_.try_emplace(name.function, functions_.size() + 1);
    if (added) {
      ProtobufWriter function;
      function.add(field::id_of_function, at->second);
      function.add(field::name, text(name.function));
      function.add(field::system_name, text(name.symbol));
      out_.add(field::function, function);
    }
    return at->second;
  }

  const Profile& profile_;
  ProtobufWriter out_;
  std::map<std::string, std::uint64_t> text_indexes_;
  std::vector<std::string_view> texts_;
  std::map<std::string_view, std::uint64_t> functions_;
};

}  // namespace

std::string to_pprof(const Profile& profile) {
  return PprofWriter(profile).write();
}

}  // namespace weir::profile
