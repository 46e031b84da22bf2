#include "config/unknown_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "config/fields.h"
#include "config/foreign.h"
#include "config/nearest.h"

namespace hlat {
namespace {

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const Section& s : all_sections()) names.push_back(s.name);
  return names;
}

bool is_section(std::string_view name) {
  const std::vector<std::string_view> names = section_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "sources[12].weight" as "sources[0].weight" and the 12 apart.
std::string without_index(const std::string& name, std::string& index) {
  const size_t open = name.find('['), close = name.find(']');
  if (open == std::string::npos || close == std::string::npos || close <= open + 1) return name;
  index = name.substr(open + 1, close - open - 1);
  return name.substr(0, open + 1) + "0" + name.substr(close);
}

struct Guess {
  std::string key;
  int cost = 0;  // 0 and 1: the right name, here or in another section
};

// The nearest of our keys, or none.
Guess nearest_key(const std::string& section, const std::string& name, const std::string& index) {
  Config any = with_items(1);
  Guess best;
  for (const Field& f : all_fields(any)) {
    const std::string known = f.name();
    const int distance = edit_distance(name, known);
    // In another section only a name that is nearly right is meant: not run.tensorboard for parallel.tensor.
    const bool close = f.section == section ? is_typo_of(name, known) : 4 * distance <= static_cast<int>(known.size());
    if (!close) continue;
    // The right name in the wrong section is nearer than any other name.
    const int cost = 2 * distance + (f.section == section ? 0 : 1);
    if (!best.key.empty() && cost >= best.cost) continue;
    best = {f.key(), cost};
    if (!f.item.empty()) best.key.replace(best.key.find('[') + 1, 1, index);
  }
  return best;
}

// Whether the written key belongs to an item that its list does not have.
bool names_missing_item(const std::string& section, const std::string& name) {
  Config any = with_items(1);
  const std::vector<Field> list = all_fields(any);
  return std::any_of(list.begin(), list.end(), [&](const Field& f) { return !f.item.empty() && f.key() == section + "." + name; });
}

std::vector<std::string_view> keys_of(const std::string& section) {
  Config any;
  std::vector<std::string_view> keys;
  for (const Field& f : all_fields(any))
    if (f.section == section) keys.push_back(f.leaf);
  return keys;
}

}  // namespace

std::string unknown_section(const std::string& name) {
  if (const std::string ours = foreign_key(name); !ours.empty() && foreign_section(name).empty())
    return fmt::format("unknown section; {}", ours);
  const std::vector<std::string_view> names = section_names();
  std::string_view best = foreign_section(name);
  if (best.empty()) best = nearest(name, names);
  if (!best.empty()) return fmt::format("unknown section; did you mean {}?", best);
  Config any;
  for (const Field& f : all_fields(any)) {
    if (name == f.leaf || name == f.key())
      return fmt::format("unknown section; did you mean the key {0} in section {1}?", f.leaf, f.section);
  }
  return fmt::format("unknown section; there are {}", fmt::join(names, ", "));
}

std::string unknown_key(const std::string& section, const std::string& written) {
  std::string index = "0";
  const std::string name = without_index(written, index);
  if (names_missing_item(section, name))
    return fmt::format("there is no {}.{}; items are counted from 0 and added one by one", section,
                       written.substr(0, written.find(']') + 1));
  if (is_section(name))
    return section.empty() ? fmt::format("is a section; give its keys as {}.key=value", name)
                           : fmt::format("unknown key; {} is a section of its own", name);
  const Guess guess = nearest_key(section, name, index);
  if (!guess.key.empty() && guess.cost <= 1) return fmt::format("unknown key; did you mean {}?", guess.key);
  // Programs with deeper sections write model.optim.lr.
  const std::string leaf = name.substr(name.rfind('.') + 1);
  if (const std::string ours = foreign_key(leaf); !ours.empty()) return fmt::format("unknown key; {}", ours);
  if (!guess.key.empty()) return fmt::format("unknown key; did you mean {}?", guess.key);
  const Guess deeper = leaf == name ? Guess{} : nearest_key("", leaf, index);
  if (!deeper.key.empty()) return fmt::format("unknown key; did you mean {}?", deeper.key);
  if (const std::vector<std::string_view> here = keys_of(section); !here.empty())
    return fmt::format("unknown key; {} has {}", section, fmt::join(here, ", "));
  if (section.empty())
    return fmt::format("unknown key; keys are written section.key, and the sections are {}", fmt::join(section_names(), ", "));
  return unknown_section(section);
}

}  // namespace hlat
