// hlat ckpt prune: removes checkpoints beyond a rule of retention, and what dead processes have left over. The run folder's lease is held
// meanwhile: a live run is never pruned, and none begins.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/format.h"
#include "base/json_text.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/prune.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "record/folder_lease.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kPruneLease = 60;  // seconds

struct PruneArgs {
  std::string dir;
  int64_t keep = 0, keep_every = 0;
  bool dry_run = false, json = false;
};

// Copies of weights are kept for good: a run folder means its checkpoints.
std::filesystem::path folder_to_prune(const std::string& given) {
  const std::filesystem::path folder = checkpoint_folders(given).front();
  if (folder == std::filesystem::path(given) / kWeightsName)
    fail<UsageError>("{} has copies of weights alone; to prune these give {}", given, folder.string());
  return folder;
}

void hold(std::optional<FolderLease>& lease, const std::filesystem::path& folder) {
  const std::filesystem::path run = run_folder_of(folder);
  if (!run.empty()) lease.emplace(run, kPruneLease, [](const std::string& text) { print_err(text + "\n"); });
}

uint64_t bytes_of(const std::vector<ListedCheckpoint>& list) {
  uint64_t sum = 0;
  for (const ListedCheckpoint& c : list) sum += c.bytes;
  return sum;
}

Json json_of(const std::vector<ListedCheckpoint>& list) {
  Json out = Json::array();
  for (const ListedCheckpoint& c : list) {
    out.push_back({{"step", c.step}, {"folder", c.folder.string()}, {"bytes", c.bytes}});
    if (!c.problem.empty()) out.back()["problem"] = c.problem;
  }
  return out;
}

std::string text_of(const PrunePlan& plan, bool dry_run) {
  const char* verb = dry_run ? "would remove" : "removed";
  std::string text;
  for (const ListedCheckpoint& c : plan.removed) text += fmt::format("{} {}, {}\n", verb, c.folder.string(), format_bytes(c.bytes));
  for (const ListedCheckpoint& c : plan.leftovers)
    text += fmt::format("{} {}, {}: {}\n", verb, c.folder.string(), format_bytes(c.bytes), c.problem);
  for (const ListedCheckpoint& c : plan.damaged) text += fmt::format("left {}, which is not whole: {}\n", c.folder.string(), c.problem);
  const size_t gone = plan.removed.size() + plan.leftovers.size();
  const std::string freed = format_bytes(bytes_of(plan.removed) + bytes_of(plan.leftovers));
  return text + (dry_run ? fmt::format("{} would stay, {} go: {}\n", plan.kept.size(), gone, freed)
                         : fmt::format("{} kept, {} removed: {}\n", plan.kept.size(), gone, freed));
}

void run_prune(const PruneArgs& args) {
  const std::filesystem::path folder = folder_to_prune(args.dir);
  std::optional<FolderLease> lease;
  hold(lease, folder);
  const PrunePlan plan = plan_prune(folder, args.keep, args.keep_every);
  if (!args.dry_run) prune(plan);
  if (!args.json) {
    print_out(text_of(plan, args.dry_run));
    return;
  }
  print_out(json_text(Json{{"folder", folder.string()},
                           {"dry_run", args.dry_run},
                           {"removed", json_of(plan.removed)},
                           {"leftovers", json_of(plan.leftovers)},
                           {"kept", json_of(plan.kept)},
                           {"damaged", json_of(plan.damaged)},
                           {"freed_bytes", bytes_of(plan.removed) + bytes_of(plan.leftovers)}},
                      2) +
            "\n");
}

}  // namespace

void add_ckpt_prune(CLI::App& ckpt) {
  const auto args = std::make_shared<PruneArgs>();
  CLI::App* command = ckpt.add_subcommand("prune", "remove old checkpoints and leftovers of dead processes; not while the run is live");
  command->add_option("dir", args->dir, "a run folder, or one with checkpoints")->required()->type_name("DIR");
  command->add_option("--keep", args->keep, "how many of the latest complete ones are kept")
      ->required()
      ->check(within(int64_t{1}, int64_t{1} << 56))
      ->type_name("N");
  command->add_option("--keep-every", args->keep_every, "also keep the first at or after each multiple of this many steps")
      ->check(within(int64_t{1}, int64_t{1} << 56))
      ->type_name("M");
  command->add_flag("--dry-run", args->dry_run, "only list what would be removed");
  command->add_flag("--json", args->json, "print one JSON object");
  show_example_and_memory(*command, "hlat ckpt prune runs/default --keep 3 --keep-every 1000 --dry-run", "that of one index");
  command->callback([args] { run_prune(*args); });
}

}  // namespace hlat
