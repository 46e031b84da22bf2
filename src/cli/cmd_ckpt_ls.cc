// hlat ckpt ls: the checkpoints of a run, with what is left over and what is not whole.
#include <fmt/format.h>

#include <ctime>
#include <iomanip>
#include <memory>
#include <sstream>

#include "base/format.h"
#include "base/json_text.h"
#include "base/table.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/listing.h"
#include "checkpoint/scan_cache.h"
#include "checkpoint/verify.h"
#include "cli/ckpt_args.h"
#include "cli/ckpt_commands.h"
#include "cli/commands.h"
#include "cli/health_shown.h"
#include "cli/print.h"
#include "cli/work_shown.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

struct LsArgs {
  std::string dir = ".";
  bool verify = false;
  bool json = false;
};

struct Folder {
  std::filesystem::path path;
  std::vector<ListedCheckpoint> checkpoints;
  std::optional<int64_t> latest;  // that is whole
};

// Seconds since a time as indexes have it, "2026-11-16T04:45:27Z"; none: it is none.
std::optional<double> age_s(const std::string& created) {
  std::tm tm{};
  std::istringstream in(created);
  in >> std::get_time(&tm, "%Y-%m-%dT%H:%M:%S");
  if (!in) return {};
  return std::difftime(std::time(nullptr), timegm(&tm));
}

void verify_all(std::vector<ListedCheckpoint>& list) {
  for (ListedCheckpoint& c : list) {
    if (!c.whole()) continue;
    WorkShown shown("verifying " + c.folder.string(), c.bytes);
    const std::vector<std::string> problems = find_damage(*open_for_scan(c.folder), scan_threads(), shown.done());
    if (problems.empty()) continue;
    c.problem = problems.front() + (problems.size() > 1 ? fmt::format(" (and {} more)", problems.size() - 1) : "");
  }
}

Folder read_folder(const std::filesystem::path& path, bool verify) {
  Folder folder{path, list_checkpoints(path), {}};
  if (verify) verify_all(folder.checkpoints);
  for (const ListedCheckpoint& c : folder.checkpoints)
    if (c.whole()) folder.latest = c.step;
  return folder;
}

std::string folder_text(const Folder& folder, bool verified) {
  std::vector<std::vector<std::string>> rows = {{"step", "tokens", "loss", "size", "age", "content", "health", "state"}};
  for (const ListedCheckpoint& c : folder.checkpoints) {
    const std::optional<double> age = age_s(c.created);
    const std::string state = !c.whole() ? (c.leftover ? "" : "NOT WHOLE: ") + c.problem : verified ? "verified" : "whole";
    rows.push_back({c.leftover ? c.folder.filename().string() : std::to_string(c.step),
                    c.content ? format_count(static_cast<double>(c.tokens)) : "", c.loss ? fmt::format("{:.4f}", *c.loss) : "",
                    format_bytes(c.bytes), age ? format_duration(*age) : "", c.content ? std::string(name_of(*c.content)) : "",
                    health_text(c.health, c.step), state + (!c.leftover && folder.latest == c.step ? ", latest" : "")});
  }
  return fmt::format("{}\n{}", folder.path.string(), table_text(rows, "rrrrrlll"));
}

Json folder_json(const Folder& folder) {
  Json list = Json::array();
  for (const ListedCheckpoint& c : folder.checkpoints) {
    Json j{{"step", c.step}, {"folder", c.folder.string()}, {"bytes", c.bytes}, {"whole", c.whole()}, {"leftover", c.leftover}};
    if (!c.problem.empty()) j["problem"] = c.problem;
    if (c.content) {
      j.update({{"content", name_of(*c.content)}, {"run", c.run}, {"created", c.created}, {"tokens", c.tokens}});
      j["loss"] = c.loss ? Json(*c.loss) : Json();
      j["health"] = health_json(c.health, c.step);
    }
    list.push_back(std::move(j));
  }
  return {{"folder", folder.path.string()}, {"latest", folder.latest ? Json(*folder.latest) : Json()}, {"checkpoints", std::move(list)}};
}

void run_ls(const LsArgs& args) {
  Json json = Json::array();
  std::string text;
  for (const std::filesystem::path& path : checkpoint_folders(args.dir)) {
    const Folder folder = read_folder(path, args.verify);
    json.push_back(folder_json(folder));
    text += (text.empty() ? "" : "\n") + folder_text(folder, args.verify);
  }
  print_out(args.json ? json_text(Json{{"verified", args.verify}, {"folders", json}}, 2) + "\n" : text);
}

}  // namespace

void add_ckpt_ls(CLI::App& ckpt) {
  const auto args = std::make_shared<LsArgs>();
  CLI::App* command = ckpt.add_subcommand("ls", "list the checkpoints of a run: step, tokens, loss, size, age, complete or not");
  command->add_option("dir", args->dir, "a run folder, or one with checkpoints; default: the working folder")->type_name("DIR");
  command->add_flag("--verify", args->verify, "read everything and compare it with the checksums");
  command->add_flag("--json", args->json, "print one JSON object");
  show_example_and_memory(*command, "hlat ckpt ls runs/default", "that of one index; with --verify 64 MiB more");
  command->callback([args] { run_ls(*args); });
}

}  // namespace hlat
