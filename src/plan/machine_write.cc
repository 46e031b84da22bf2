// The text of a machine file, with every key: those that are empty say what belongs there.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/machine_file.h"

namespace hlat {
namespace {

// As YAML: a word as it is, everything else in JSON's quotes, which YAML reads.
std::string yaml_text(const std::string& text) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; };
  const bool word = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 && std::all_of(text.begin(), text.end(), plain);
  return word && text != "null" && text != "true" && text != "false" ? text : nlohmann::json(text).dump();
}

std::string source_and_date(const Figure& f) {
  std::string s;
  if (!f.source.empty()) s += ", source: " + yaml_text(f.source);
  if (!f.date.empty()) s += ", date: " + yaml_text(f.date);
  return s;
}

std::string figure_text(const Figure& f) {
  if (!f.known()) return fmt::format("{{value: null{}}}  # {}", source_and_date(f), f.meaning);
  return fmt::format("{{value: {}{}}}", quantity_text(*f.value, f.unit), source_and_date(f));
}

std::vector<std::string> split_key(const std::string& key) {
  std::vector<std::string> parts(1);
  for (const char c : key) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back().push_back(c);
  }
  return parts;
}

std::string tables_text(const Rates& r) {
  std::string s;
  const auto begin = [&](const char* name, bool empty) { s += fmt::format("  {}:{}\n", name, empty ? " []" : ""); };
  begin("matmul", r.matmul.empty());
  for (const MatmulRow& w : r.matmul)
    s += fmt::format("    - {{type: {}, out: {}, form: {}, m: {}, n: {}, k: {}, flops_per_s: {}}}\n", name_of(w.type), name_of(w.out),
                     form_text(w.form), w.m, w.n, w.k, quantity_text(w.flops_per_s, Unit::flops_per_s));
  begin("attention", r.attention.empty());
  for (const AttentionRow& w : r.attention)
    s += fmt::format("    - {{op: {}, type: {}, heads: {}, tokens: {}, head_dim: {}, flops_per_s: {}}}\n",
                     name_of(w.backward ? OpKind::attention_bwd : OpKind::attention), name_of(w.type), w.heads, w.tokens, w.head_dim,
                     quantity_text(w.flops_per_s, Unit::flops_per_s));
  begin("memory_ops", r.memory_ops.empty());
  for (const MemoryRow& w : r.memory_ops)
    s += fmt::format("    - {{op: {}, type: {}, bytes: {}, bytes_per_s: {}}}\n", name_of(w.op), name_of(w.type),
                     quantity_text(w.bytes, Unit::bytes), quantity_text(w.bytes_per_s, Unit::bytes_per_s));
  return s;
}

std::string collectives_text(const Links& l) {
  std::string s = fmt::format("  measured:{}\n", l.measured.empty() ? " []" : "");
  for (const CollectiveRow& r : l.measured)
    s += fmt::format("    - {{op: {}, ranks: {}, bytes: {}, seconds: {}}}\n", name_of(r.op), r.ranks, quantity_text(r.bytes, Unit::bytes),
                     quantity_text(r.seconds, Unit::seconds));
  return s;
}

std::string prices_text(const Machine& m) {
  std::string s = m.prices.empty() ? "prices: []  # of {model, region, dollars_per_hour, source, date}\n" : "prices:\n";
  for (const Price& p : m.prices)
    s += fmt::format("  - {{model: {}, region: {}, dollars_per_hour: {}{}}}\n", name_of(p.model), yaml_text(p.region),
                     p.dollars_per_hour.known() ? fmt::format("{}", *p.dollars_per_hour.value) : "null",
                     source_and_date(p.dollars_per_hour));
  s += m.carbon.empty() ? "carbon: []  # of {region, grams_per_kwh, source, date}\n" : "carbon:\n";
  for (const Carbon& c : m.carbon)
    s += fmt::format("  - {{region: {}, grams_per_kwh: {}{}}}\n", yaml_text(c.region),
                     c.grams_per_kwh.known() ? fmt::format("{}", *c.grams_per_kwh.value) : "null", source_and_date(c.grams_per_kwh));
  return s;
}

}  // namespace

std::string machine_text(const Machine& m) {
  std::string s =
      fmt::format("name: {}\ntitle: {}\ndevice: {}\nranks_per_node: {}\ncores: {}\nthreads: {}\ncapability: {}\n", yaml_text(m.name),
                  yaml_text(m.title), yaml_text(m.device), m.ranks_per_node, m.cores, m.threads, m.capability);
  std::vector<std::string> open;  // sections of the figure before
  for (const Figure* f : figures_of(m)) {
    std::vector<std::string> parts = split_key(f->key);
    const std::string leaf = parts.back();
    parts.pop_back();
    if (!open.empty() && open[0] == "rates" && (parts.empty() || parts[0] != "rates")) s += tables_text(m.rates);
    if (!open.empty() && open[0] == "links" && (parts.empty() || parts[0] != "links")) s += collectives_text(m.links);
    size_t same = 0;
    while (same < parts.size() && same < open.size() && parts[same] == open[same]) ++same;
    for (size_t i = same; i < parts.size(); ++i) {
      s += fmt::format("{:{}}{}:\n", "", 2 * i, parts[i]);
      if (parts[i] == "rates") s += fmt::format("  source: {}\n  date: {}\n", yaml_text(m.rates.source), yaml_text(m.rates.date));
      if (parts[i] == "thread_share") s += fmt::format("    threads: {}\n", m.rates.thread_share.threads);
      constexpr std::string_view algorithms[] = {"ring", "tree", "fastest"};
      if (parts[i] == "links")
        s += fmt::format("  source: {}\n  date: {}\n  algorithm: {}\n", yaml_text(m.links.source), yaml_text(m.links.date),
                         algorithms[static_cast<size_t>(m.links.algorithm)]);
    }
    s += fmt::format("{:{}}{}: {}\n", "", 2 * parts.size(), leaf, figure_text(*f));
    open = parts;
  }
  return s + prices_text(m);
}

}  // namespace hlat
