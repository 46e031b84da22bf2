#include "config/load.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "config/hints.h"
#include "config/precision_row.h"
#include "config/read.h"
#include "config/run_length.h"
#include "config/unknown_name.h"
#include "config/validate.h"
#include "config/value.h"

namespace hlat {

std::string Origin::str() const {
  switch (kind) {
    case Kind::fallback: return "default";
    case Kind::preset: return "preset " + name;
    case Kind::file: break;
    case Kind::command_line:
      if (name.empty()) return "command line";
  }
  return line > 0 ? fmt::format("{}:{}", name, line) : name;
}

namespace {

class Loader {
 public:
  explicit Loader(Reading reading, Config base = {}, std::set<std::string> open = {})
      : reading_(std::move(reading)),
        loaded_{.config = std::move(base), .origins = {}},
        fields_(all_fields(loaded_.config)),
        failed_(std::move(open)) {
    size_lists();
  }

  LoadedConfig run() {
    if (!reading_.complete) distrust("");
    apply_preset();
    for (const Entry& e : reading_.entries) assign(e);
    settle_length();
    for (const Violation& v : validate(loaded_.config, failed_)) report(v);
    if (!reading_.problems.empty()) throw UsageError(all_problems());
    return std::move(loaded_);
  }

 private:
  Field* find(const std::string& key) {
    const auto place = std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key() == key; });
    return place == fields_.end() ? nullptr : &*place;
  }

  Origin origin_of(const std::string& key) const {
    const auto place = loaded_.origins.find(key);
    if (place != loaded_.origins.end()) return place->second;
    // A key that an item lacks is missing where its list stands.
    const size_t bracket = key.find('[');
    return bracket == std::string::npos ? Origin{} : origin_of(key.substr(0, bracket));
  }

  // Lists get their items before any key is looked at: the file gives a list its length, a key of the item after the last one adds it.
  void size_lists() {
    for (size_t i = 0; i < reading_.entries.size(); ++i) {
      const Entry& e = reading_.entries[i];
      const std::string list = e.key().substr(0, e.key().find('['));
      const Field* f = find(list);
      if (!f || !is_item_list(*f)) continue;
      const size_t count = items(*f);
      if (e.kind == Entry::Kind::items) {
        resize_items(*f, e.count);
      } else if (e.key() == list && e.text == "[]") {
        // What was said about the items before has nothing to apply to.
        const auto here = reading_.entries.begin() + static_cast<std::ptrdiff_t>(i);
        const auto kept =
            std::remove_if(reading_.entries.begin(), here, [&](const Entry& other) { return other.key().starts_with(list + "["); });
        i -= static_cast<size_t>(here - kept);
        reading_.entries.erase(kept, here);
        resize_items(*f, 0);
      } else if (e.key().starts_with(fmt::format("{}[{}].", list, count))) {
        resize_items(*f, count + 1);
      }
      fields_ = all_fields(loaded_.config);
    }
  }

  // Takes a section's values (all for "") out of the rules between fields, because they are not what was meant.
  void distrust(std::string_view section) {
    for (const Field& f : fields_) {
      if (section.empty() || f.section == section) failed_.insert(f.key());
    }
  }

  // A preset comes before all written keys, wherever it stands; the last one written counts.
  void apply_preset() {
    const Entry* chosen = nullptr;
    for (const Entry& e : reading_.entries) {
      if (e.key() == "model.preset" && e.kind == Entry::Kind::scalar) chosen = &e;
    }
    if (!chosen || chosen->text.empty()) return;
    const ModelConfig* preset = find_preset(chosen->text);
    if (!preset) return distrust("model");
    loaded_.config.model = *preset;
    for (const Field& f : fields_) {
      if (f.section == "model") loaded_.origins[f.key()] = {Origin::Kind::preset, chosen->text};
    }
  }

  void assign(const Entry& e) {
    const Field* f = find(e.key());
    if (!f) return problem(e, unknown_key(e.section, e.name));
    const bool scalar = e.kind == Entry::Kind::scalar, map = e.kind == Entry::Kind::map;
    const bool fitting = scalar || (e.kind == Entry::Kind::list && is_list(*f)) || (map && is_map(*f));
    const bool sized = is_item_list(*f) && (e.kind == Entry::Kind::items || e.text == "[]");
    if (!sized && (!fitting || !parse_value(*f, e.text))) {
      failed_.insert(f->key());
      Entry shown = e;
      if (map && !is_map(*f)) shown.text = "(a map)";
      return problem(shown, fmt::format("must be {}{}", expectation(*f), scalar ? hint(*f, e.text) : ""));
    }
    loaded_.origins[f->key()] = e.origin;
  }

  // One key says how long the run is. One on the command line takes the place of those in the file, whichever of the three they are.
  void settle_length() {
    const auto given = [&](Origin::Kind kind) {
      std::vector<std::string> keys;
      for (const std::string_view key : kLengthKeys)
        if (origin_of(std::string(key)).kind == kind && text_of(*find(std::string(key))) != "0") keys.emplace_back(key);
      return keys;
    };
    std::vector<std::string> keys = given(Origin::Kind::command_line);
    if (keys.empty()) keys = given(Origin::Kind::file);
    // The last of the lines is the one that is too much.
    std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return origin_of(a).line > origin_of(b).line; });
    if (keys.size() > 1) {
      const Field& other = *find(keys[1]);
      reading_.problems.push_back(
          {origin_of(keys[0]),
           fmt::format("{} = {}: the length of the run is also given as {} = {} ({}); give one of {}", keys[0], text_of(*find(keys[0])),
                       keys[1], text_of(other), origin_of(keys[1]).str(), fmt::join(kLengthKeys, ", "))});
      failed_.insert("train.steps");
      return;
    }
    if (keys == std::vector<std::string>{"train.steps"}) return keep_length(loaded_.config.train, keys[0]);
    for (const char* key : {"train.tokens", "train.epochs"})
      if (failed_.contains(key)) failed_.insert("train.steps");
    if (keys.empty()) return;
    for (const char* key : {"train.seq_len", "train.global_batch"})
      if (failed_.contains(key)) failed_.insert("train.steps");
    if (failed_.contains("train.steps")) return;
    keep_length(loaded_.config.train, keys[0]);
    resolve_steps(loaded_.config.train);
    loaded_.origins["train.steps"] = origin_of(keys[0]);
  }

  void problem(const Entry& e, const std::string& what) {
    reading_.problems.push_back({e.origin, fmt::format("{} = {}: {}", e.key(), e.text, what)});
  }

  // Points at the line of the key at fault or, when nobody wrote that key, at the written key it disagrees with.
  void report(const Violation& v) {
    const Origin own = origin_of(v.keys.front());
    Origin place = own;
    for (const std::string& key : v.keys) {
      if (!place.written()) place = origin_of(key);
    }
    if (!place.written()) place = own;
    const std::string& key = v.keys.front();
    const std::string chosen = policy_choice(loaded_.config, key);
    const std::string value = chosen.empty() ? text_of(*find(key)) : chosen;
    const std::string note = !chosen.empty() ? fmt::format(" (of train.precision {})", name_of(loaded_.config.train.precision))
                             : own.written() ? ""
                                             : fmt::format(" ({})", own.str());
    reading_.problems.push_back({place, fmt::format("{} = {}{}: {}", key, value, note, v.message)});
  }

  std::string all_problems() {
    const auto order = [](const Problem& p) { return std::pair(p.origin.kind, p.origin.line); };
    std::stable_sort(reading_.problems.begin(), reading_.problems.end(),
                     [&](const Problem& a, const Problem& b) { return order(a) < order(b); });
    std::string text;
    for (const Problem& p : reading_.problems) text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", p.origin.str(), p.text);
    return text;
  }

  Reading reading_;
  LoadedConfig loaded_;
  std::vector<Field> fields_;  // points into loaded_
  std::set<std::string> failed_;
};

}  // namespace

LoadedConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  Reading reading;
  if (!path.empty()) read_yaml(path, reading);
  for (const std::string& word : overrides) read_override(word, reading);
  return Loader(std::move(reading)).run();
}

LoadedConfig load_config_with(const std::string& path, std::vector<Entry> entries) {
  Reading reading;
  if (!path.empty()) read_yaml(path, reading);
  for (Entry& entry : entries) reading.entries.push_back(std::move(entry));
  return Loader(std::move(reading)).run();
}

LoadedConfig override_config(Config base, const std::vector<std::string>& overrides, std::set<std::string> open) {
  Reading reading;
  for (const std::string& word : overrides) read_override(word, reading);
  return Loader(std::move(reading), std::move(base), std::move(open)).run();
}

}  // namespace hlat
