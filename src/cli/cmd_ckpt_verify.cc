// hlat ckpt verify: reads everything; each file and piece that is not what was saved is named.
#include <fmt/format.h>

#include <memory>

#include "base/format.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "checkpoint/scan_cache.h"
#include "checkpoint/verify.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/work_shown.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

struct Verified {
  std::filesystem::path folder;
  std::vector<std::string> problems = {};
  size_t files = 0, pieces = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};

Verified verify(const std::filesystem::path& folder) {
  Verified v{.folder = folder};
  const double begin = now_s();
  try {
    const std::unique_ptr<CheckpointReader> reader = open_for_scan(folder);
    v.files = reader->index().files.size();
    for (const SavedFile& file : reader->index().files) v.pieces += file.pieces.size();
    v.bytes = reader->index().bytes();
    WorkShown shown("verifying " + folder.string(), v.bytes);
    v.problems = find_damage(*reader, scan_threads(), shown.done());
  } catch (const DamagedCheckpoint& e) {  // of the index: the other checkpoints are still looked at
    v.problems.emplace_back(e.what());
  }
  v.seconds = now_s() - begin;
  return v;
}

std::string text_of(const Verified& v) {
  std::string text;
  for (const std::string& problem : v.problems) text += problem + "\n";
  if (!v.problems.empty()) return text;
  return fmt::format("{}: whole; {} in {} pieces and {} files read in {}\n", v.folder.string(), format_bytes(v.bytes), v.pieces, v.files,
                     format_duration(v.seconds));
}

Json json_of(const Verified& v) {
  return {{"folder", v.folder.string()}, {"whole", v.problems.empty()},
          {"problems", v.problems},      {"files", v.files},
          {"pieces", v.pieces},          {"bytes", v.bytes},
          {"seconds", v.seconds}};
}

void run_verify(const CheckpointArgs& args) {
  Json json = Json::array();
  std::vector<std::string> damaged;
  for (const std::filesystem::path& folder : args.find()) {
    const Verified v = verify(folder);
    if (!v.problems.empty()) damaged.push_back(folder.string());
    if (args.json)
      json.push_back(json_of(v));
    else
      print_out(text_of(v));
  }
  if (args.json) print_out(json_text(Json{{"whole", damaged.empty()}, {"checkpoints", json}}, 2) + "\n");
  if (damaged.size() == 1) fail<DamagedCheckpoint>("{} is damaged", damaged.front());
  if (!damaged.empty()) fail<DamagedCheckpoint>("{} of {} checkpoints are damaged", damaged.size(), args.given.size());
}

}  // namespace

void add_ckpt_verify(CLI::App& ckpt) {
  const auto args = std::make_shared<CheckpointArgs>();
  CLI::App* command = ckpt.add_subcommand("verify", "read all of a checkpoint and name every file and piece that is not what was saved");
  add_checkpoint_args(*command, *args, 1, 1 << 20);
  show_example_and_memory(*command, "hlat ckpt verify runs/default/checkpoints/step_*", "the index and 64 MiB, whatever the size");
  command->callback([args] { run_verify(*args); });
}

}  // namespace hlat
