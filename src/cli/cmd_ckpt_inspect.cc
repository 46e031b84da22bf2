// hlat ckpt inspect: what a checkpoint holds: its header, its tensors with statistics, and where their pieces lie.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "base/table.h"
#include "checkpoint/checksum.h"
#include "checkpoint/scan_cache.h"
#include "checkpoint/tensor_stats.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/health_shown.h"
#include "cli/print.h"
#include "cli/work_shown.h"
#include "config/nearest.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;
using Stats = std::vector<std::optional<TensorStats>>;

struct InspectArgs {
  CheckpointArgs checkpoints;
  std::string tensor;  // empty: all
  bool slices = false;
  bool no_stats = false;
};

uint64_t bytes_of(const SavedTensor& t) { return static_cast<uint64_t>(t.shape.numel()) * size_of(t.dtype); }

// Tensors of a name, or of all names below it: layers.3 has layers.3.norm1.
std::vector<bool> choose(const CheckpointIndex& index, const std::string& name) {
  std::vector<bool> chosen(index.tensors.size(), name.empty());
  std::vector<std::string_view> names;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const std::string& has = index.tensors[i].name;
    if (has == name || has.starts_with(name + ".")) chosen[i] = true;
    names.push_back(has);
  }
  if (std::find(chosen.begin(), chosen.end(), true) != chosen.end()) return chosen;
  const std::string_view best = nearest(name, names);
  fail<UsageError>("--tensor {}: there is no such tensor{}", name,
                   best.empty() ? "; without --tensor all are listed" : fmt::format("; did you mean {}?", best));
}

Stats stats_of(CheckpointReader& reader, const std::vector<bool>& chosen, const std::string& what) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) bytes += bytes_of(reader.index().tensors[i]);
  WorkShown shown("reading " + what, bytes);
  return tensor_stats(reader, chosen, scan_threads(), shown.done());
}

// "layers 4, hidden 128" of the keys that the config has.
std::string summary(const Json& config, const std::string& section, const std::vector<std::string>& keys) {
  std::vector<std::string> words;
  if (config.contains(section))
    for (const std::string& key : keys)
      if (const Json& values = config[section]; values.is_object() && values.contains(key))
        words.push_back(fmt::format("{} {}", key, values[key].is_string() ? values[key].get<std::string>() : json_text(values[key])));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string header_text(const CheckpointReader& reader) {
  const CheckpointIndex& index = reader.index();
  const Json config = Json::parse(index.config, nullptr, false);
  std::string text = fmt::format("{}\n", reader.folder().string());
  const auto line = [&](const char* name, const std::string& words) {
    if (!words.empty()) text += fmt::format("  {:<9} {}\n", name, words);
  };
  line("content",
       fmt::format("{}, step {}, {} tokens{}", name_of(index.content), index.step, format_count(static_cast<double>(index.tokens)),
                   index.loss ? fmt::format(", loss {:.4f}", *index.loss) : ""));
  line("health", health_text(health_of(index), index.step));
  line("saved", fmt::format("{} by run {}, hlat {}", index.created, index.run, index.hlat));
  line("size", fmt::format("{} in {} file{}", format_bytes(index.bytes()), index.files.size(), index.files.size() == 1 ? "" : "s"));
  line("model", summary(config, "model", {"preset", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "tied", "rope_theta"}));
  line("train", summary(config, "train", {"precision", "global_batch", "seq_len", "steps"}));
  line("parallel", summary(config, "parallel", {"tp", "pp", "dp", "sequence", "zero1", "chunks"}));
  std::vector<std::string> records;
  for (const Record& r : index.records) records.push_back(fmt::format("{} v{} ({})", r.name, r.version, format_bytes(r.json.size())));
  line("records", fmt::format("{}", fmt::join(records, ", ")));
  return text;
}

std::string tensors_text(const CheckpointIndex& index, const std::vector<bool>& chosen, const Stats& stats) {
  std::vector<std::vector<std::string>> rows = {{"tensor", "kind", "type", "shape", "size"}};
  if (!stats.empty()) rows[0].insert(rows[0].end(), {"min", "max", "mean", "rms", "deviation", "zeros", "not finite"});
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    const SavedTensor& t = index.tensors[i];
    rows.push_back({t.name, std::string(name_of(t.kind)), std::string(name_of(t.dtype)), t.shape.str(), format_bytes(bytes_of(t))});
    if (stats.empty()) continue;
    const TensorStats& s = *stats[i];
    for (const double x : {s.min, s.max, s.mean, s.rms, s.deviation}) rows.back().push_back(fmt::format("{:.4g}", x));
    for (const int64_t n : {s.zeros, s.not_finite}) rows.back().push_back(std::to_string(n));
  }
  return table_text(rows, "llllrrrrrrrr");
}

// Calls f(file, piece) for the pieces of chosen tensors.
template <class F>
void for_slices(const CheckpointIndex& index, const std::vector<bool>& chosen, const F& f) {
  for (const SavedFile& file : index.files)
    for (const Piece& p : file.pieces)
      if (chosen[static_cast<size_t>(p.tensor)]) f(file, p);
}

std::string slices_text(const CheckpointIndex& index, const std::vector<bool>& chosen) {
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "kind", "file", "at byte", "elements", "first", "run", "stride", "offset", "checksum"}};
  for_slices(index, chosen, [&](const SavedFile& file, const Piece& p) {
    const SavedTensor& t = index.tensors[static_cast<size_t>(p.tensor)];
    rows.push_back({t.name, std::string(name_of(t.kind)), file.name});
    for (const uint64_t n : {p.offset, static_cast<uint64_t>(p.count)}) rows.back().push_back(std::to_string(n));
    for (const int64_t n : {p.map.first, p.map.run, p.map.stride, p.map.offset}) rows.back().push_back(std::to_string(n));
    rows.back().push_back(checksum_text(p.checksum));
  });
  return table_text(rows, "lllrrrrrrl");
}

Json tensor_json(const SavedTensor& t, const TensorStats* s) {
  Json shape = Json::array();
  for (int d = 0; d < t.shape.rank; ++d) shape.push_back(t.shape[d]);
  Json j{{"name", t.name}, {"kind", name_of(t.kind)}, {"dtype", name_of(t.dtype)}, {"shape", shape}, {"bytes", bytes_of(t)}};
  if (s != nullptr)
    j["stats"] = {{"elements", s->elements}, {"min", s->min},
                  {"max", s->max},           {"mean", s->mean},
                  {"rms", s->rms},           {"deviation", s->deviation},
                  {"zeros", s->zeros},       {"not_finite", s->not_finite}};
  return j;
}

Json tensors_json(const CheckpointIndex& index, const std::vector<bool>& chosen, const Stats& stats, bool slices) {
  std::vector<Json> of_tensor(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) of_tensor[i] = tensor_json(index.tensors[i], stats.empty() ? nullptr : &*stats[i]);
  if (slices)
    for_slices(index, chosen, [&](const SavedFile& file, const Piece& p) {
      of_tensor[static_cast<size_t>(p.tensor)]["slices"].push_back({{"file", file.name},
                                                                    {"at_byte", p.offset},
                                                                    {"elements", p.count},
                                                                    {"first", p.map.first},
                                                                    {"run", p.map.run},
                                                                    {"stride", p.map.stride},
                                                                    {"offset", p.map.offset},
                                                                    {"checksum", checksum_text(p.checksum)}});
    });
  Json list = Json::array();
  for (Json& t : of_tensor)
    if (!t.is_null()) list.push_back(std::move(t));
  return list;
}

Json header_json(const CheckpointReader& reader) {
  const CheckpointIndex& index = reader.index();
  Json records = Json::array();
  for (const Record& r : index.records)
    records.push_back({{"name", r.name}, {"version", r.version}, {"value", Json::parse(r.json, nullptr, false)}});
  return {{"folder", reader.folder().string()},
          {"content", name_of(index.content)},
          {"run", index.run},
          {"hlat", index.hlat},
          {"created", index.created},
          {"step", index.step},
          {"tokens", index.tokens},
          {"loss", index.loss ? Json(*index.loss) : Json()},
          {"health", health_json(health_of(index), index.step)},
          {"bytes", index.bytes()},
          {"files", index.files.size()},
          {"config", Json::parse(index.config, nullptr, false)},
          {"records", records}};
}

void run_inspect(const InspectArgs& args) {
  const std::filesystem::path folder = args.checkpoints.find().front();
  CheckpointReader reader(folder);
  const std::vector<bool> chosen = choose(reader.index(), args.tensor);
  const Stats stats = args.no_stats ? Stats() : stats_of(reader, chosen, folder.string());
  if (args.checkpoints.json) {
    Json json = header_json(reader);
    json["tensors"] = tensors_json(reader.index(), chosen, stats, args.slices);
    print_out(json_text(json, 2) + "\n");
    return;
  }
  print_out(header_text(reader) + "\n" + tensors_text(reader.index(), chosen, stats) +
            (args.slices ? "\n" + slices_text(reader.index(), chosen) : ""));
}

}  // namespace

void add_ckpt_inspect(CLI::App& ckpt) {
  const auto args = std::make_shared<InspectArgs>();
  CLI::App* command = ckpt.add_subcommand("inspect", "what a checkpoint holds: header, tensors with statistics, pieces");
  add_checkpoint_args(*command, args->checkpoints, 1, 1);
  command->add_option("--tensor", args->tensor, "only this tensor, or those below it: layers.3")->type_name("NAME");
  command->add_flag("--slices", args->slices, "list the pieces: file, and which elements of the tensor they have");
  command->add_flag("--no-stats", args->no_stats, "read the index alone");
  show_example_and_memory(*command, "hlat ckpt inspect runs/default --tensor layers.0", "the index and 64 MiB, whatever the size");
  command->callback([args] { run_inspect(*args); });
}

}  // namespace hlat
