#include "config/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/run_length.h"
#include "config/value.h"

namespace hlat {
namespace {

// Free text is always quoted: no reader then takes a folder called `123`, `null` or `a: b` for something else.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "\"";
}

std::string yaml_value(const Field& f) {
  if (is_map(f)) {
    std::vector<std::string> parts;
    for (const auto& [name, weight] : *std::get<Weights*>(f.value)) parts.push_back(fmt::format("{}: {}", quoted(name), weight));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  const bool free_text = std::holds_alternative<std::string*>(f.value) && f.limits.choices.empty();
  const std::string text = text_of(f);
  return free_text || text.empty() ? quoted(text) : text;
}

nlohmann::ordered_json json_value(const Field& f) {
  const auto write = [&](const auto* v) -> nlohmann::ordered_json {
    using T = std::decay_t<decltype(*v)>;
    if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, Weights>) return *v;
    if constexpr (kIsItemList<T>) return nlohmann::ordered_json::array();
    if constexpr (std::is_arithmetic_v<T>) {
      if (!(f.limits.zero_is_auto && *v == 0)) return *v;
    }
    return text_of(f);
  };
  return std::visit(write, f.value);
}

std::string steps_comment(const TrainConfig& train) {
  if (!steps_known(train)) return fmt::format("follow from {} when the data is known", length_key(train));
  return fmt::format("{}, from {}", train.steps, length_key(train));
}

}  // namespace

std::string to_yaml(const Config& config) { return run_record(config, config); }

std::string run_record(const Config& given, const Config& resolved) {
  Config copy = given, found = resolved;
  const std::vector<Field> list = all_fields(copy), values = all_fields(found);
  HLAT_CHECK(list.size() == values.size(), "{} and {} keys", list.size(), values.size());
  std::string text, section, item;
  for (size_t i = 0; i < list.size(); ++i) {
    const Field& f = list[i];
    if (f.section != section) text += fmt::format("{}:\n", section = f.section);
    if (f.key() == "train.steps" && length_key(copy.train) != f.key()) {
      text += fmt::format("  # steps: {}\n", steps_comment(found.train));
      continue;
    }
    const bool full = is_item_list(f) && items(f) > 0;
    const std::string_view indent = f.item.empty() ? "  " : f.item != item ? "    - " : "      ";
    const std::string was = text_of(f), is = text_of(values[i]);
    const std::string comment = f.limits.zero_is_auto && was == "auto" && is != was ? fmt::format("  # {} in this run", is) : "";
    text += fmt::format("{}{}:{}{}\n", indent, f.leaf, full ? "" : " " + yaml_value(f), comment);
    item = f.item;
  }
  return text;
}

nlohmann::ordered_json to_json(const Config& config) {
  Config copy = config;
  nlohmann::ordered_json out;
  for (const Field& f : all_fields(copy)) {
    nlohmann::ordered_json& section = out[std::string(f.section)];
    if (f.item.empty()) {
      const bool unknown = f.key() == "train.steps" && !steps_known(copy.train);
      section[std::string(f.leaf)] = unknown ? nlohmann::ordered_json() : json_value(f);
      continue;
    }
    nlohmann::ordered_json& list = section[f.item.substr(0, f.item.find('['))];
    const size_t index = std::stoul(f.item.substr(f.item.find('[') + 1));
    list[index][std::string(f.leaf)] = json_value(f);
  }
  return out;
}

}  // namespace hlat
