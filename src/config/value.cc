#include "config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hlat {
namespace {

constexpr int64_t kMaxEvery = 65536;  // as many as blocks

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

template <class Enum, size_t N>
bool read_name(std::string_view text, const std::array<std::string_view, N>& names, Enum& out) {
  for (size_t i = 0; i < N; ++i) {
    if (text != names[i]) continue;
    out = static_cast<Enum>(i);
    return true;
  }
  return false;
}

bool read(std::string_view text, int64_t& out) { return read_number(text, out); }
bool read(std::string_view text, uint64_t& out) { return read_number(text, out); }
bool read(std::string_view text, double& out) { return read_number(text, out) && std::isfinite(out); }
bool read(std::string_view text, PrecisionKind& out) { return read_name(text, kPrecisionNames, out); }
bool read(std::string_view text, ScheduleKind& out) { return read_name(text, kScheduleNames, out); }
bool read(std::string_view text, Recompute& out) { return parse_recompute(text, out); }
bool read(std::string_view text, bool& out) {
  out = text == "true";
  return out || text == "false";
}
bool read(std::string_view text, std::string& out) {
  out = text;
  return true;
}

void trim(std::string_view& s) {
  while (s.starts_with(' ')) s.remove_prefix(1);
  while (s.ends_with(' ')) s.remove_suffix(1);
}

// "[8, 16]" or "8,16". Blanks may stand around items; only "[]" is the empty list.
bool read(std::string_view text, std::vector<int64_t>& out) {
  out.clear();
  if (text.starts_with('[') != text.ends_with(']')) return false;
  if (text.starts_with('[')) {
    text = text.substr(1, text.size() - 2);
    trim(text);
    if (text.empty()) return true;
  }
  for (;;) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    trim(item);
    if (!read_number(item, out.emplace_back())) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

// "{web: 0.7, books: 0.3}", the braces optional. Names end at the last colon of their item.
bool read(std::string_view text, Weights& out) {
  out.clear();
  if (text.starts_with('{') != text.ends_with('}')) return false;
  if (text.starts_with('{')) text = text.substr(1, text.size() - 2);
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    const size_t colon = item.rfind(':');
    if (colon == std::string_view::npos) return false;
    std::string_view name = item.substr(0, colon), number = item.substr(colon + 1);
    trim(name), trim(number);
    double weight = 0;
    if (name.empty() || !read(number, weight) || !out.emplace(name, weight).second) return false;
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return true;
}

// Items are read key by key; as a whole only the empty list has a text.
template <class Item>
bool read(std::string_view text, std::vector<Item>& out) {
  out.clear();
  return text == "[]";
}

bool within(double v, const Limits& l) {
  if (l.zero_is_auto && v == 0) return true;
  return (l.lo_open ? v > l.lo : v >= l.lo) && (l.hi_open ? v < l.hi : v <= l.hi);  // false for NaN
}
bool within(int64_t v, const Limits& l) { return within(static_cast<double>(v), l); }
bool within(uint64_t v, const Limits& l) { return within(static_cast<double>(v), l); }
bool within(const std::string& v, const Limits& l) {
  if (v.empty()) return l.optional;
  return l.choices.empty() || std::find(l.choices.begin(), l.choices.end(), v) != l.choices.end();
}
bool within(const std::vector<int64_t>& v, const Limits& l) {
  return std::all_of(v.begin(), v.end(), [&](int64_t item) { return within(item, l); });
}
bool within(const Weights& v, const Limits&) {
  return std::all_of(v.begin(), v.end(), [](const auto& item) { return item.second >= 0 && std::isfinite(item.second); });
}
template <class Item>
bool within(const std::vector<Item>&, const Limits&) {
  return true;
}
bool within(bool, const Limits&) { return true; }
bool within(PrecisionKind v, const Limits&) { return static_cast<size_t>(v) < kPrecisionNames.size(); }
bool within(ScheduleKind v, const Limits&) { return static_cast<size_t>(v) < kScheduleNames.size(); }
bool within(const Recompute& v, const Limits&) { return v.every >= 0 && v.every <= kMaxEvery; }

std::string interval(const Limits& l) {
  const bool has_lo = std::isfinite(l.lo), has_hi = std::isfinite(l.hi);
  std::string text;
  if (has_lo) text += fmt::format(" {} {}", l.lo_open ? "above" : has_hi ? "from" : "of at least", l.lo);
  if (has_hi)
    text += fmt::format(" {} {}", l.hi_open ? "to below" : has_lo && !l.lo_open ? "to" : has_lo ? "and at most" : "of at most", l.hi);
  return text;
}

std::string interval_of_integers(const Limits& l) {
  // Bounds of integers are whole and small enough to be exact in a double.
  const auto whole = [](double v) { return static_cast<int64_t>(v); };
  if (!std::isfinite(l.lo)) return "";
  return fmt::format(" from {} to {}", whole(l.lo), whole(l.hi));
}

// The keys of a list's items.
std::vector<std::string_view> item_keys(const Field& list) {
  Config one = with_items(1);
  std::vector<std::string_view> keys;
  for (const Field& f : all_fields(one))
    if (f.section == list.section && f.item == std::string(list.leaf) + "[0]") keys.push_back(f.leaf);
  return keys;
}

struct Writer {
  const Limits& limits;
  std::string operator()(const int64_t* v) const { return limits.zero_is_auto && *v == 0 ? "auto" : fmt::format("{}", *v); }
  std::string operator()(const uint64_t* v) const { return fmt::format("{}", *v); }
  std::string operator()(const double* v) const { return fmt::format("{}", *v); }  // the shortest text that reads back exactly
  std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
  std::string operator()(const std::string* v) const { return *v; }
  std::string operator()(const std::vector<int64_t>* v) const { return fmt::format("[{}]", fmt::join(*v, ", ")); }
  std::string operator()(const Weights* v) const {
    std::vector<std::string> parts;
    for (const auto& [name, weight] : *v) parts.push_back(fmt::format("{}: {}", name, weight));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  template <class Item>
  std::string operator()(const std::vector<Item>* v) const {
    return v->empty() ? "[]" : fmt::format("[{} item{}]", v->size(), v->size() == 1 ? "" : "s");
  }
  std::string operator()(const PrecisionKind* v) const { return std::string(name_of(*v)); }
  std::string operator()(const ScheduleKind* v) const { return std::string(name_of(*v)); }
  std::string operator()(const Recompute* v) const { return v->str(); }
};

// Stores what the text says in `out`, a copy of the field's value.
template <class T>
bool parse(const Field& f, std::string_view text, T& out) {
  const bool is_auto = f.limits.zero_is_auto && text == "auto";
  return read(is_auto ? "0" : text, out) && within(out, f.limits);
}

}  // namespace

std::vector<std::string_view> words_of(const Field& f) {
  if (std::holds_alternative<bool*>(f.value)) return {"true", "false"};
  if (std::holds_alternative<PrecisionKind*>(f.value)) return {kPrecisionNames.begin(), kPrecisionNames.end()};
  if (std::holds_alternative<ScheduleKind*>(f.value)) return {kScheduleNames.begin(), kScheduleNames.end()};
  if (std::holds_alternative<Recompute*>(f.value)) return {"none", "selective", "full", "every:K"};
  return f.limits.choices;
}

bool parse_value(const Field& f, std::string_view text) {
  const auto store = [&](auto* value) {
    auto fresh = *value;
    if (!parse(f, text, fresh)) return false;
    *value = std::move(fresh);
    return true;
  };
  return std::visit(store, f.value);
}

bool accepts(const Field& f, std::string_view text) {
  const auto check = [&](const auto* value) {
    auto fresh = *value;
    return parse(f, text, fresh);
  };
  return std::visit(check, f.value);
}

bool is_list(const Field& f) { return std::holds_alternative<std::vector<int64_t>*>(f.value); }

bool is_map(const Field& f) { return std::holds_alternative<Weights*>(f.value); }

bool within_limits(const Field& f) {
  return std::visit([&](const auto* value) { return within(*value, f.limits); }, f.value);
}

std::string expectation(const Field& f) {
  const std::vector<std::string_view> list = words_of(f);
  if (std::holds_alternative<bool*>(f.value)) return "true or false";
  if (std::holds_alternative<Recompute*>(f.value)) return fmt::format("one of {} (K from 1 to {})", fmt::join(list, ", "), kMaxEvery);
  if (!list.empty()) return fmt::format("one of {}", fmt::join(list, ", "));
  if (std::holds_alternative<std::string*>(f.value)) return f.limits.optional ? "a text" : "a text that is not empty";
  if (std::holds_alternative<double*>(f.value)) return "a number" + interval(f.limits);
  if (std::holds_alternative<uint64_t*>(f.value)) return fmt::format("an integer from 0 to {}", std::numeric_limits<uint64_t>::max());
  if (is_map(f)) return "a map of names to numbers of at least 0, such as {web: 0.7, books: 0.3}";
  if (is_item_list(f)) return fmt::format("a list of items with the keys {}, or []", fmt::join(item_keys(f), ", "));
  if (is_list(f)) return fmt::format("a list of integers{}, such as [8, 16] or []", interval_of_integers(f.limits));
  return (f.limits.zero_is_auto ? "auto or an integer" : "an integer") + interval_of_integers(f.limits);
}

std::string text_of(const Field& f) { return std::visit(Writer{f.limits}, f.value); }

}  // namespace hlat
