#include "plan/machine_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "config/nearest_file.h"
#include "task/yaml_map.h"

namespace hlat {
namespace {

constexpr std::array<std::string_view, 2> kTypes = {"f32", "bf16"};
// Of the operands of a product; the last two have their rows by the first operand.
constexpr std::array<DType, 4> kOperands = {DType::f32, DType::bf16, DType::f8e4m3, DType::f8e5m2};
constexpr std::array<uint8_t, 10> kForms = {0, 1, 2, 3, 4, 5, 6, 7, 8 | 2, 8 | 6};  // FP8 has the form nt alone, and alone has fast sums
constexpr std::array<std::string_view, 3> kAlgorithms = {"ring", "tree", "fastest"};

template <class Names>
std::vector<std::string_view> listed(const Names& names) {
  return {names.begin(), names.end()};
}

// One file on its way into a Machine. Each map is asked for its keys; what is left over is refused.
class MachineReader {
 public:
  MachineReader(const YAML::Node& root, std::string file, Problems& problems)
      : file_(std::move(file)), problems_(problems), root_(map_of(root, "a machine file")) {}

  Machine read() {
    Machine m;
    m.file = file_;
    m.name = root_.required("name");
    m.title = root_.text("title");
    m.device = root_.text("device");
    m.cores = count(root_, "cores", 0);
    m.ranks_per_node = count(root_, "ranks_per_node", m.cores > 0 ? 0 : 1);
    m.threads = count(root_, "threads", 1);
    m.capability = count(root_, "capability", 0);
    if (m.ranks_per_node == 0 && m.cores == 0)
      root_.problem("ranks_per_node", "ranks_per_node = 0: any number of ranks is for a host whose `cores` they share");
    read_figures(m);
    read_rates(m.rates);
    read_thread_share(m);
    read_links(m.links);
    read_prices(m);
    for (auto& [name, part] : sections_) part.refuse_unknown();
    root_.refuse_unknown();
    return m;
  }

 private:
  YamlMap map_of(const YAML::Node& node, const std::string& title) { return {node, file_, title, problems_}; }

  // "links.node" of the file.
  YamlMap& section(const std::string& path) {
    if (path.empty()) return root_;
    const auto found = sections_.find(path);
    if (found != sections_.end()) return found->second;
    const size_t dot = path.rfind('.');
    YamlMap& parent = section(dot == std::string::npos ? "" : path.substr(0, dot));
    const YAML::Node node = parent.node(dot == std::string::npos ? path : path.substr(dot + 1));
    return sections_.emplace(path, map_of(node, fmt::format("`{}`", path))).first->second;
  }

  int count(YamlMap& map, const std::string& key, int fallback) {
    const int64_t n = map.integer(key, fallback, 0);
    if (n > 1 << 20) map.problem(key, fmt::format("{} = {}: must be at most {}", key, n, 1 << 20));
    return static_cast<int>(std::clamp<int64_t>(n, 0, 1 << 20));
  }

  void read_figures(Machine& m) {
    for (Figure* f : figures_of(m)) {
      const size_t dot = f->key.rfind('.');
      YamlMap& map = section(dot == std::string::npos ? "" : f->key.substr(0, dot));
      const std::string leaf = dot == std::string::npos ? f->key : f->key.substr(dot + 1);
      const YAML::Node node = map.node(leaf);
      if (!node.IsDefined()) continue;
      if (!node.IsMap()) {
        map.problem(leaf, fmt::format("{} = {}: must be {{value, source, date}}, as in {{value: {}, source: data sheet, date: 2026-11}}",
                                      f->key, node.IsScalar() ? node.Scalar() : "(a list)", example_of(f->unit)));
        continue;
      }
      YamlMap figure = map_of(node, fmt::format("`{}`", f->key));
      read_figure(figure, "value", *f);
      figure.refuse_unknown();
    }
  }

  // The value at `key` with its source and date beside it.
  void read_figure(YamlMap& map, const std::string& key, Figure& f) {
    f.source = map.text("source");
    f.date = map.text("date");
    if (!map.has(key)) return;
    const std::string name = key == "value" ? f.key + ".value" : key;
    const bool divides =
        f.unit == Unit::flops_per_s || f.unit == Unit::bytes_per_s || f.key == "memory" || f.key.find("_share") != std::string::npos;
    f.value = quantity(map, key, name, f.unit, divides);
    if (f.value && f.source.empty())
      map.problem(key, fmt::format("{} = {}: has no source; a value says where it is from", name, map.text(key)));
    if (f.value && f.date.empty()) map.problem(key, fmt::format("{} = {}: has no date; a value says of when it is", name, map.text(key)));
  }

  std::optional<double> quantity(YamlMap& map, const std::string& key, const std::string& name, Unit unit, bool positive = false) {
    const std::string text = map.required(key);
    const std::optional<double> value = parse_quantity(text, unit);
    if (value && *value >= 0 && !(positive && *value == 0) && !(unit == Unit::share && *value > 1)) return value;
    map.problem(key, fmt::format("{} = {}: must be a number{}, with or without a unit, such as {}", name, text,
                                 unit == Unit::share ? " from 0 to 1"
                                 : positive          ? " above 0"
                                                     : " of at least 0",
                                 example_of(unit)));
    return std::nullopt;
  }

  void read_rates(Rates& rates) {
    YamlMap& map = section("rates");
    rates.source = map.text("source");
    rates.date = map.text("date");
    for (YamlMap& row : map.maps("matmul")) {
      MatmulRow r{.type = operand(row), .out = type(row, "out")};
      r.form = form(row);
      if ((is_fp8(r.type) && (r.form & 3) != 2) || (!is_fp8(r.type) && (r.form & 8) != 0))
        row.problem("form", fmt::format("form = {}: {}", form_text(r.form),
                                        is_fp8(r.type) ? "products of FP8 are nt" : "fast sums are those of FP8"));
      r.m = size(row, "m"), r.n = size(row, "n"), r.k = size(row, "k");
      r.flops_per_s = rate(row, "flops_per_s", Unit::flops_per_s);
      row.refuse_unknown();
      rates.matmul.push_back(r);
    }
    for (YamlMap& row : map.maps("attention")) {
      AttentionRow r{.backward = row.choice("op", {"attention", "attention_bwd"}, 0) == 1, .type = type(row, "type")};
      r.heads = size(row, "heads"), r.tokens = size(row, "tokens"), r.head_dim = size(row, "head_dim");
      r.flops_per_s = rate(row, "flops_per_s", Unit::flops_per_s);
      row.refuse_unknown();
      rates.attention.push_back(r);
    }
    for (YamlMap& row : map.maps("memory_ops")) {
      MemoryRow r{.op = op(row), .type = type(row, "type")};
      r.bytes = quantity(row, "bytes", "bytes", Unit::bytes, true).value_or(1);
      r.bytes_per_s = rate(row, "bytes_per_s", Unit::bytes_per_s);
      row.refuse_unknown();
      rates.memory_ops.push_back(r);
    }
    const bool rows = !rates.matmul.empty() || !rates.attention.empty() || !rates.memory_ops.empty();
    if (rows && rates.source.empty()) map.problem("source", "rates has no source; measured rates say where they are from");
    if (rows && rates.date.empty()) map.problem("date", "rates has no date; measured rates say of when they are");
  }

  void read_thread_share(Machine& m) {
    ThreadShare& share = m.rates.thread_share;
    YamlMap& map = section("rates.thread_share");
    share.threads = count(map, "threads", 0);
    const bool known = share.products.known() || share.attention.known() || share.others.known();
    if (known && m.cores == 0) map.problem("threads", "rates.thread_share is for a host whose `cores` ranks share");
    if ((known || share.threads > 0) && share.threads <= m.threads)
      map.problem("threads",
                  fmt::format("rates.thread_share.threads = {}: must be above `threads` = {}, which the rates were measured with",
                              share.threads, m.threads));
  }

  double rate(YamlMap& row, const std::string& key, Unit unit) { return quantity(row, key, key, unit, true).value_or(1); }
  DType operand(YamlMap& row) {
    std::vector<std::string_view> names;
    for (const DType t : kOperands) names.push_back(name_of(t));
    return kOperands[row.choice("type", names, 0)];
  }
  uint8_t form(YamlMap& row) {
    std::vector<std::string> names;
    for (const uint8_t f : kForms) names.push_back(form_text(f));
    return kForms[row.choice("form", listed(names), 0)];
  }
  DType type(YamlMap& row, const std::string& key) { return static_cast<DType>(row.choice(key, listed(kTypes), 0)); }
  int64_t size(YamlMap& row, const std::string& key) {
    if (!row.has(key)) row.problem(key, fmt::format("a row has no {}", key));
    return row.integer(key, 1, 1);
  }
  OpKind op(YamlMap& row) {
    std::vector<std::string_view> names;
    for (int k = 0; k < kOpKinds; ++k) names.push_back(name_of(static_cast<OpKind>(k)));
    return static_cast<OpKind>(row.choice("op", names, static_cast<size_t>(OpKind::cast)));
  }

  void read_links(Links& links) {
    YamlMap& map = section("links");
    links.algorithm = static_cast<CollectiveAlgorithm>(map.choice("algorithm", listed(kAlgorithms), 0));
    links.source = map.text("source");
    links.date = map.text("date");
    std::vector<std::string_view> names;
    for (int k = 0; k < kCommKinds; ++k) names.push_back(name_of(static_cast<CommKind>(k)));
    for (YamlMap& row : map.maps("measured")) {
      CollectiveRow r{.op = static_cast<CommKind>(row.choice("op", names, 0)), .ranks = static_cast<int>(size(row, "ranks"))};
      r.bytes = quantity(row, "bytes", "bytes", Unit::bytes, true).value_or(1);
      r.seconds = rate(row, "seconds", Unit::seconds);
      row.refuse_unknown();
      links.measured.push_back(r);
    }
    if (!links.measured.empty() && links.source.empty())
      map.problem("source", "links has no source; measured rows say where they are from");
    if (!links.measured.empty() && links.date.empty()) map.problem("date", "links has no date; measured rows say of when they are");
  }

  void read_prices(Machine& m) {
    std::vector<std::string_view> models;
    for (int i = 0; i < kPriceModels; ++i) models.push_back(name_of(static_cast<PriceModel>(i)));
    for (YamlMap& item : root_.maps("prices")) {
      Price p{.model = static_cast<PriceModel>(item.choice("model", models, 0)), .region = item.required("region")};
      read_figure(item, "dollars_per_hour", p.dollars_per_hour);
      item.refuse_unknown();
      m.prices.push_back(p);
    }
    for (YamlMap& item : root_.maps("carbon")) {
      Carbon c{.region = item.required("region")};
      read_figure(item, "grams_per_kwh", c.grams_per_kwh);
      item.refuse_unknown();
      m.carbon.push_back(c);
    }
  }

  std::string file_;
  Problems& problems_;
  YamlMap root_;
  std::map<std::string, YamlMap> sections_;
};

}  // namespace

Machine parse_machine(const std::string& text, const std::string& file) {
  Problems problems;
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& e) {
    fail<UsageError>("machine file {}:{}: is not valid YAML: {}", file, e.mark.line + 1, e.msg);
  }
  const Machine m = MachineReader(root, file, problems).read();
  problems.refuse(fmt::format("machine file {}", file));
  return m;
}

Machine read_machine(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) fail<UsageError>("machine file {} cannot be read{}", path, file_hint(path));
  return parse_machine(text.str(), path);
}

}  // namespace hlat
