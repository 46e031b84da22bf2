// hlat ckpt diff: what two checkpoints differ in, tensor by tensor.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/exit_code.h"
#include "base/format.h"
#include "base/json_text.h"
#include "base/table.h"
#include "checkpoint/difference.h"
#include "checkpoint/scan_cache.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/work_shown.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

struct DiffArgs {
  CheckpointArgs checkpoints;
  bool weights = false;
  bool exit_code = false;
};

// (row, column) of an element.
std::vector<int64_t> place_in(const Shape& shape, int64_t element) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank));
  for (int d = shape.rank - 1; d >= 0; --d) {
    place[static_cast<size_t>(d)] = element % shape[d];
    element /= shape[d];
  }
  return place;
}

double relative(double difference, double rms) { return rms > 0 ? difference / rms : 0; }

std::string named(const SavedTensor& t) { return fmt::format("{} {}", name_of(t.kind), t.name); }

std::string types_of(const TensorDifference& t) {
  return t.a.dtype == t.b.dtype ? std::string(name_of(t.a.dtype)) : fmt::format("{}, {}", name_of(t.a.dtype), name_of(t.b.dtype));
}

std::string header_text(const char* letter, const CheckpointReader& reader) {
  const CheckpointIndex& index = reader.index();
  return fmt::format("{} {}: step {}, {} tokens, run {}\n", letter, reader.folder().string(), index.step,
                     format_count(static_cast<double>(index.tokens)), index.run);
}

std::string tensors_text(const CheckpointDifference& d) {
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "kind", "type", "differing", "largest", "at", "mean", "largest/rms", "mean/rms", "not finite"}};
  std::string shapes;
  size_t identical = 0;
  for (const TensorDifference& t : d.tensors) {
    identical += t.identical() ? 1 : 0;
    if (t.a.shape != t.b.shape) shapes += fmt::format("{}: shape {} in A, {} in B\n", named(t.a), t.a.shape.str(), t.b.shape.str());
    if (t.identical() || t.a.shape != t.b.shape) continue;
    rows.push_back({t.a.name, std::string(name_of(t.a.kind)), types_of(t), fmt::format("{}", t.differing), fmt::format("{:.4g}", t.largest),
                    fmt::format("({})", fmt::join(place_in(t.a.shape, t.largest_at), ", ")), fmt::format("{:.4g}", t.mean),
                    fmt::format("{:.3g}", relative(t.largest, t.rms)), fmt::format("{:.3g}", relative(t.mean, t.rms)),
                    fmt::format("{}", t.not_comparable)});
  }
  std::string text = rows.size() > 1 ? table_text(rows, "lllrrlrrrr") : "";
  text += shapes;
  for (const SavedTensor& t : d.only_a) text += fmt::format("{}: only in A\n", named(t));
  for (const SavedTensor& t : d.only_b) text += fmt::format("{}: only in B\n", named(t));
  return text + fmt::format("{} of {} tensors that both have are identical\n", identical, d.tensors.size());
}

std::string rest_text(const CheckpointDifference& d) {
  std::string text;
  for (const ConfigDifference& c : d.config)
    text += fmt::format("config {}: {} in A, {} in B\n", c.key, c.a.empty() ? "not there" : c.a, c.b.empty() ? "not there" : c.b);
  if (!d.records.empty()) text += fmt::format("records that differ: {}\n", fmt::join(d.records, ", "));
  return text;
}

Json names_json(const std::vector<SavedTensor>& tensors) {
  Json list = Json::array();
  for (const SavedTensor& t : tensors) list.push_back({{"name", t.name}, {"kind", name_of(t.kind)}});
  return list;
}

Json tensor_json(const TensorDifference& t) {
  const auto dims = [](const Shape& s) { return std::vector<int64_t>(s.dim.begin(), s.dim.begin() + s.rank); };
  Json j{{"name", t.a.name}, {"kind", name_of(t.a.kind)}, {"dtype", {name_of(t.a.dtype), name_of(t.b.dtype)}}, {"shape", dims(t.a.shape)}};
  j["identical"] = t.identical();
  if (t.a.shape != t.b.shape) {
    j["shape_b"] = dims(t.b.shape);
    return j;
  }
  j.update({{"differing", t.differing},
            {"not_comparable", t.not_comparable},
            {"largest", t.largest},
            {"largest_at", place_in(t.a.shape, t.largest_at)},
            {"mean", t.mean},
            {"rms", t.rms},
            {"largest_relative", relative(t.largest, t.rms)},
            {"mean_relative", relative(t.mean, t.rms)}});
  return j;
}

Json json_of(const CheckpointReader& a, const CheckpointReader& b, const CheckpointDifference& d) {
  const auto header = [](const CheckpointReader& r) {
    return Json{{"folder", r.folder().string()}, {"step", r.index().step}, {"tokens", r.index().tokens}, {"run", r.index().run}};
  };
  Json tensors = Json::array(), config = Json::array();
  for (const TensorDifference& t : d.tensors) tensors.push_back(tensor_json(t));
  const auto value = [](const std::string& text) { return text.empty() ? Json() : Json::parse(text); };
  for (const ConfigDifference& c : d.config) config.push_back({{"key", c.key}, {"a", value(c.a)}, {"b", value(c.b)}});
  return {{"a", header(a)},
          {"b", header(b)},
          {"identical", d.identical_tensors()},
          {"tensors", tensors},
          {"only_a", names_json(d.only_a)},
          {"only_b", names_json(d.only_b)},
          {"config", config},
          {"records", d.records}};
}

void run_diff(const DiffArgs& args) {
  const std::vector<std::filesystem::path> found = args.checkpoints.find();
  const std::unique_ptr<CheckpointReader> a = open_for_scan(found[0]), b = open_for_scan(found[1]);
  const DiffWhat what = args.weights ? DiffWhat::weights : DiffWhat::all;
  CheckpointDifference difference;
  {
    WorkShown shown("comparing", diff_bytes(a->index(), b->index(), what));
    difference = compare_checkpoints(*a, *b, what, scan_threads(), shown.done());
  }
  print_out(args.checkpoints.json ? json_text(json_of(*a, *b, difference), 2) + "\n"
                                  : header_text("A", *a) + header_text("B", *b) + tensors_text(difference) + rest_text(difference));
  if (args.exit_code && !difference.identical_tensors()) throw CLI::RuntimeError(kFailed);
}

}  // namespace

void add_ckpt_diff(CLI::App& ckpt) {
  const auto args = std::make_shared<DiffArgs>();
  CLI::App* command = ckpt.add_subcommand("diff", "largest and mean difference of two checkpoints, tensor by tensor, and of their configs");
  add_checkpoint_args(*command, args->checkpoints, 2, 2);
  command->add_flag("--weights", args->weights, "compare weights alone, not the optimizer's state");
  command->add_flag("--exit-code", args->exit_code, "end with 1 when a tensor differs or only one has it");
  show_example_and_memory(*command, "hlat ckpt diff runs/a runs/b --step 1000",
                          "128 MiB, and for each checkpoint its index and 8 MiB for each tensor parallel rank\n"
                          "that saved it, at most 256 MiB; whatever the size");
  command->callback([args] { run_diff(*args); });
}

}  // namespace hlat
