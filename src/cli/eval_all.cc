#include "cli/eval_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/json_text.h"
#include "checkpoint/find_checkpoint.h"
#include "checkpoint/listing.h"
#include "cli/eval_run.h"
#include "cli/eval_table.h"
#include "cli/print.h"
#include "data/reader/new_file.h"
#include "runtime/from_rank_0.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kCurveName = "curve.json";

fs::path out_folder(const EvalArgs& args, const fs::path& checkpoint) {
  const fs::path usual = default_folder(checkpoint);
  return args.out.empty() ? usual : fs::path(args.out) / usual.filename();
}

int64_t header_number(const Results& r, const char* key) { return r.header.value("config", Json::object()).value(key, int64_t{0}); }

std::string curve_text(const std::vector<Results>& curve) {
  std::vector<std::vector<std::string>> before;
  for (const Results& r : curve)
    before.push_back({std::to_string(header_number(r, "step")), format_count(static_cast<double>(header_number(r, "tokens_seen")))});
  return models_text(curve, {"step", "tokens"}, "rr", before);
}

Json curve_json(const std::vector<Results>& curve) {
  Json points = Json::array();
  for (const Results& r : curve) {
    const Json whole = to_json(r);
    points.push_back({{"step", header_number(r, "step")},
                      {"tokens_seen", header_number(r, "tokens_seen")},
                      {"folder", r.folder.string()},
                      {"table", whole["table"]},
                      {"results", whole["results"]}});
  }
  return {{"curve", points}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void tell_curve(const EvalArgs& args, const fs::path& folder, const std::vector<Results>& curve) {
  if (curve.empty()) return;
  const std::string json = json_text(curve_json(curve), 2) + "\n";
  const std::string file = (folder / kCurveName).string();
  reader::NewFile fresh(file);
  fresh.write(json);
  fresh.publish(file);
  print_out(args.json ? json : curve_text(curve));
}

}  // namespace

std::vector<fs::path> checkpoints_of(const std::string& run) {
  std::map<int64_t, fs::path> by_step;
  std::string problems;
  for (const fs::path& folder : checkpoint_folders(run))
    for (const ListedCheckpoint& c : list_checkpoints(folder)) {
      if (c.whole()) by_step.try_emplace(c.step, c.folder);
      if (!c.whole() && !c.leftover) problems += fmt::format("{} is not whole and left out: {}\n", c.folder.string(), c.problem);
    }
  print_err(problems);
  if (by_step.empty()) fail<UsageError>("{} has no whole checkpoint", run);
  std::vector<fs::path> all;
  for (const auto& [step, folder] : by_step) all.push_back(folder);
  return all;
}

bool evaluate_all(const EvalArgs& args, Session& session, EvalSignals& signals) {
  const auto from_0 = [&](const auto& work) { return from_rank_0(session.world(), work); };
  std::vector<std::string> checkpoints = lines_of(from_0([&] {
    std::string names;
    for (const fs::path& c : checkpoints_of(args.model.checkpoint)) names += c.string() + "\n";
    return names;
  }));
  EvalRun run(args, checkpoints.back(), session, signals);
  from_0([&] {  // a limit that is too small for one is told before the others are evaluated with it
    for (const std::string& checkpoint : checkpoints) run.find_done(checkpoint, out_folder(args, checkpoint));
    return std::string();
  });
  std::vector<Results> curve;
  bool good = true, stopped = false;
  for (const std::string& checkpoint : checkpoints) {
    const fs::path out = out_folder(args, checkpoint);
    const std::string done = from_0([&] {
      const std::optional<Results> found = run.find_done(checkpoint, out);
      print_err(fmt::format("{}{}\n", checkpoint, found ? ": done already" : ""));
      if (found) curve.push_back(*found);
      return std::string(found ? "done" : "");
    });
    if (!done.empty()) continue;
    try {
      Evaluated evaluated = run.run(checkpoint, out);
      stopped = evaluated.stopped;
      if (session.rank() == 0) {
        good = good && std::all_of(evaluated.results.tasks.begin(), evaluated.results.tasks.end(), [](auto& t) { return t.error.empty(); });
        evaluated.results.folder = out;
        if (!evaluated.results.tasks.empty()) curve.push_back(std::move(evaluated.results));
      }
    } catch (const UsageError& e) {  // the same on all ranks
      if (session.rank() == 0) print_err(fmt::format("hlat: {}: {}\n", checkpoint, e.what()));
      good = false;
    }
    if (stopped) break;
  }
  if (session.rank() == 0)
    tell_curve(args, args.out.empty() ? default_folder(checkpoints.back()).parent_path() : std::filesystem::path(args.out), curve);
  if (stopped) throw Interrupted(signals.asked(), "the same command continues", true);
  return good;
}

}  // namespace hlat
