// Machine files: what is read, what is refused and in which words, and that what is written reads back the same.
#include "plan/machine_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "plan/machine_library.h"
#include "support/paths.h"

namespace hlat::test {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_machine(text, "m.yaml");
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

bool file_has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Quantity, HasUnits) {
  EXPECT_EQ(parse_quantity("139.8 GiB", Unit::bytes), 139.8 * 1073741824.0);
  EXPECT_EQ(parse_quantity("665 TFLOP/s", Unit::flops_per_s), 665e12);
  EXPECT_EQ(parse_quantity("50GB/s", Unit::bytes_per_s), 50e9);
  EXPECT_EQ(parse_quantity("800 Gbit/s", Unit::bytes_per_s), 100e9);
  EXPECT_DOUBLE_EQ(*parse_quantity("900 us", Unit::seconds), 900e-6);
  EXPECT_EQ(parse_quantity("2.5e9", Unit::bytes_per_s), 2.5e9);
  EXPECT_DOUBLE_EQ(*parse_quantity("35 %", Unit::share), 0.35);
  for (const char* wrong : {"", "GiB", "12 parsecs", "1e999", "nan", "5 GB", "0x10 B/s", "1,5 GB/s"})
    EXPECT_FALSE(parse_quantity(wrong, Unit::bytes_per_s)) << wrong;
}

TEST(Quantity, TextReadsBackAsTheSameValue) {
  for (const Unit unit : {Unit::bytes, Unit::seconds, Unit::bytes_per_s, Unit::flops_per_s, Unit::share, Unit::watts})
    for (const double v : {0.0, 0.1, 1.0 / 3, 2.34567e-7, 1536.0, 665e12, 139.8 * 1073741824.0, 3.337e11, 1e20})
      EXPECT_EQ(parse_quantity(quantity_text(v, unit), unit), v) << quantity_text(v, unit);
  EXPECT_EQ(quantity_text(665e12, Unit::flops_per_s), "665 TFLOP/s");
  EXPECT_EQ(quantity_text(139.8 * 1073741824.0, Unit::bytes), "139.8 GiB");
}

TEST(Quantity, MeasurementsHaveFourDigits) {
  EXPECT_EQ(quantity_text(rounded_quantity(64.17983e9, Unit::flops_per_s), Unit::flops_per_s), "64.18 GFLOP/s");
  EXPECT_EQ(quantity_text(rounded_quantity(2.18927e-8, Unit::seconds), Unit::seconds), "21.89 ns");
  EXPECT_EQ(rounded_quantity(0.617606, Unit::share), 0.6176);
  EXPECT_EQ(rounded_quantity(0, Unit::bytes), 0);
}

TEST(MachineFile, RefusesEverythingAtOnceWithLines) {
  const std::string said = refusal(
      "name: x\n"
      "memori: {value: 16 GB, source: s, date: d}\n"
      "memory: {value: 16 parsecs, source: s, date: d}\n"
      "peak:\n"
      "  bf16: 95 TFLOP/s\n"
      "  f32: {value: 20 TFLOP/s, date: d}\n"
      "links:\n"
      "  node: {latancy: {value: 1 us, source: s, date: d}}\n"
      "  algorithm: rings\n"
      "rates:\n"
      "  source: here\n"
      "  date: now\n"
      "  matmul_share: {value: 1.5, source: s, date: d}\n"
      "  matmul: [{type: bf16, out: bf16, form: nq, m: 8, n: 8, k: 8, flops_per_s: 0}]\n"
      "  memory_ops: [{op: ropes, type: f32, bytes: 1 MB, bytes_per_s: 1 GB/s}]\n"
      "prices: [{model: on_demnd, region: r, dollars_per_hour: 3, source: s, date: d}]\n"
      "ranks_per_node: -1\n");
  EXPECT_TRUE(file_has(said, "m.yaml:2: a machine file has no key 'memori'; did you mean memory?")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:3: memory.value = 16 parsecs: must be a number above 0, with or without a unit, such as 139.8 GiB"))
      << said;
  EXPECT_TRUE(file_has(said, "m.yaml:5: peak.bf16 = 95 TFLOP/s: must be {value, source, date}")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:6: peak.f32.value = 20 TFLOP/s: has no source")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:8: `links.node` has no key 'latancy'; did you mean latency?")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:9: algorithm cannot be 'rings'; did you mean ring?")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:13: rates.matmul_share.value = 1.5: must be a number from 0 to 1")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:14: form cannot be 'nq'")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:14: flops_per_s = 0: must be a number above 0")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:15: op cannot be 'ropes'; did you mean rope?")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:16: model cannot be 'on_demnd'; did you mean on_demand?")) << said;
  EXPECT_TRUE(file_has(said, "m.yaml:17: ranks_per_node must be at least 0")) << said;
}

TEST(MachineFile, SharesOfThreadsAreOfMoreThreadsThanTheRates) {
  const std::string share = "rates:\n  thread_share:\n    threads: 4\n    products: {value: 0.9, source: s, date: d}\n";
  const Machine m = parse_machine("name: a\ncores: 4\nthreads: 2\n" + share, "m.yaml");
  EXPECT_EQ(m.rates.thread_share.threads, 4);
  EXPECT_EQ(m.rates.thread_share.products.value, 0.9);
  EXPECT_FALSE(m.rates.thread_share.others.known());
  EXPECT_TRUE(file_has(refusal("name: a\ncores: 4\nthreads: 4\n" + share),
                       "m.yaml:6: rates.thread_share.threads = 4: must be above `threads` = 4, which the rates were measured with"));
  EXPECT_TRUE(file_has(refusal("name: a\n" + share), "m.yaml:4: rates.thread_share is for a host whose `cores` ranks share"));
  EXPECT_TRUE(file_has(refusal("name: a\ncores: 4\nrates:\n  thread_share:\n    others: {value: 0.9, source: s, date: d}\n"),
                       "rates.thread_share.threads = 0: must be above `threads` = 1"));
  EXPECT_TRUE(file_has(refusal("name: a\ncores: 4\nrates:\n  thread_share:\n    threads: 4\n    others: {value: 0, source: s, date: d}\n"),
                       "rates.thread_share.others.value = 0"));
}

TEST(MachineFile, RefusesWhatIsNoMachine) {
  EXPECT_TRUE(file_has(refusal("- a\n- b\n"), "must hold `key: value` lines"));
  EXPECT_TRUE(file_has(refusal("name: [\n"), "is not valid YAML"));
  EXPECT_TRUE(file_has(refusal("title: x\n"), "has no `name`"));
  EXPECT_TRUE(file_has(refusal("name: a\nname: b\n"), "name is there twice"));
  EXPECT_TRUE(file_has(refusal("name: a\nranks_per_node: 0\n"), "is for a host whose `cores` they share"));
  EXPECT_TRUE(
      file_has(refusal("name: a\nrates:\n  memory_ops: [{op: rope, type: f32, bytes: 8, bytes_per_s: 8}]\n"), "rates has no source"));
  EXPECT_TRUE(
      file_has(refusal("name: a\nlinks:\n  measured: [{op: all_redce, ranks: 2, bytes: 8, seconds: 0}]\n"), "did you mean all_reduce?"));
  EXPECT_THROW(read_machine("no/such/machine.yaml"), UsageError);
}

TEST(MachineFile, EmptyFiguresAreAskedForByTheirKey) {
  const Machine m = parse_machine("name: a\npeak:\n  bf16: {value: }\nprices: [{model: spot, region: r, dollars_per_hour: }]\n", "m.yaml");
  EXPECT_FALSE(m.peak_bf16.known());
  try {
    m.need(m.peak_bf16);
    FAIL() << "an empty figure was used";
  } catch (const UsageError& e) {
    EXPECT_TRUE(file_has(e.what(), "m.yaml: peak.bf16 is empty: the bf16 peak of a rank, dense is not known")) << e.what();
    EXPECT_TRUE(file_has(e.what(), "such as 665 TFLOP/s")) << e.what();
  }
  EXPECT_THROW(price_of(m, PriceModel::spot), UsageError);
  try {
    price_of(m, PriceModel::on_demand, "mars-1");
    FAIL() << "a price that is not there was used";
  } catch (const UsageError& e) {
    EXPECT_TRUE(file_has(e.what(), "prices has none for on_demand in mars-1; there is spot in r")) << e.what();
  }
}

TEST(MachineFile, WrittenFilesReadBackTheSame) {
  for (const std::string& name : machine_names()) {
    const Machine m = find_machine(name);
    EXPECT_EQ(m.name, name);
    Machine again = parse_machine(machine_text(m), m.file);
    EXPECT_TRUE(again == m) << machine_text(m);
  }
  Machine m;
  m.file = "m.yaml";
  m.name = "odd \"name\": #1";
  m.cores = 2;
  m.ranks_per_node = 0;
  m.memory.set(1.0 / 3, "a, b: {c}", "2026-11");
  m.links.algorithm = CollectiveAlgorithm::tree;
  m.rates.source = m.rates.date = m.links.source = m.links.date = "x";
  m.links.measured.push_back({CommKind::all_gather, 2, 4096, 1.7e-6});
  m.rates.matmul.push_back({DType::bf16, DType::f32, 5, 3, 4, 5, 1.23456789e11});
  m.rates.matmul.push_back({DType::f8e4m3, DType::bf16, 2 | 8, 16, 32, 48, 5e14});
  m.rates.matmul.push_back({DType::f8e5m2, DType::f32, 2 | 4, 16, 32, 48, 4e14});
  m.rates.fp8_share.set(0.6, "a test", "2026-11");
  m.rates.attention.push_back({true, DType::f32, 8, 16, 64, 7e9});
  m.rates.memory_ops.push_back({OpKind::adamw, DType::bf16, 12345, 6.7e8});
  m.rates.thread_share.threads = 2;
  m.rates.thread_share.attention.set(0.875, "steps", "2026-11");
  Carbon c{.region = "north"};
  c.grams_per_kwh.set(28, "operator", "2025");
  m.carbon.push_back(c);
  EXPECT_TRUE(parse_machine(machine_text(m), "m.yaml") == m) << machine_text(m);
}

TEST(MachineFile, FormsOfProductsFitTheirTypes) {
  const auto said = [](const std::string& row) {
    try {
      parse_machine("name: m\nrates: {source: s, date: d, matmul: [{" + row + ", m: 16, n: 16, k: 16, flops_per_s: 1}]}\n", "m.yaml");
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(said("type: f8e5m2, out: bf16, form: nt fast"), "");
  EXPECT_NE(said("type: f8e4m3, out: bf16, form: nn").find("form = nn: products of FP8 are nt"), std::string::npos);
  EXPECT_NE(said("type: bf16, out: bf16, form: nt fast").find("form = nt fast: fast sums are those of FP8"), std::string::npos);
  EXPECT_NE(said("type: bf16, out: f8e4m3, form: nt").find("f8e4m3"), std::string::npos);
}

// Every shipped value has a source and a date by the reader's own rule; what is not known is empty, not 0.
TEST(MachineFile, ShippedMachines) {
  const std::vector<std::string> names = machine_names();
  for (const char* name : {"trn1.32xlarge", "trn2", "p4d", "p5", "p5en", "cpu-2core"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  for (const std::string& name : names) {
    const Machine m = find_machine(name);
    EXPECT_EQ(read_machine(source_path("machines/" + name + ".yaml")).name, name);
    for (const Figure* f : figures_of(m)) EXPECT_TRUE(!f->known() || *f->value > 0) << name << " " << f->key;
  }
  EXPECT_EQ(price_of(find_machine("trn1.32xlarge"), PriceModel::on_demand), 21.50);
  EXPECT_EQ(price_of(find_machine("p4d"), PriceModel::on_demand), 32.77);
  EXPECT_THROW(price_of(find_machine("p5en"), PriceModel::on_demand), UsageError);
  const Machine trn1 = find_machine("trn1.32xlarge");
  EXPECT_EQ(trn1.need(trn1.peak_bf16) * trn1.ranks_per_node, 3040e12);
}

TEST(MachineLibrary, UnknownNamesListTheKnownOnes) {
  try {
    find_machine("p5enn");
    FAIL() << "found";
  } catch (const UsageError& e) {
    EXPECT_TRUE(file_has(e.what(), "did you mean p5en?")) << e.what();
    EXPECT_TRUE(file_has(e.what(), "trn1.32xlarge")) << e.what();
  }
  EXPECT_EQ(find_machine(source_path("machines/p4d.yaml")).name, "p4d");
}

}  // namespace
}  // namespace hlat::test
