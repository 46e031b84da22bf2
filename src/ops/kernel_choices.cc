#include "ops/kernel_choices.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace hlat {

namespace {

using Json = nlohmann::json;

constexpr size_t kMaxChoices = size_t{1} << 16;  // of one rank: a run meets tens of shapes
constexpr size_t kMaxName = 1024;

// Names are shown in logs, and compared with names that this program made.
void check_name(const std::string& name) {
  const auto printable = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  if (name.empty() || name.size() > kMaxName) fail("a name of {} characters", name.size());
  if (!std::all_of(name.begin(), name.end(), printable)) fail("a name with control characters");
}

const Json& object(const Json& j, const char* what) {
  if (!j.is_object()) fail("{} must be an object, not {}", what, j.type_name());
  return j;
}

KernelChoices choices_from(const Json& j) {
  KernelChoices choices;
  size_t count = 0;
  for (const auto& [device, libraries] : object(j, "kernel choices").items()) {
    check_name(device);
    for (const auto& [library, calls] : object(libraries, "a device").items()) {
      check_name(library);
      for (const auto& [call, kernel] : object(calls, "a library").items()) {
        check_name(call);
        if (!kernel.is_string()) fail("a kernel must be text, not {}", kernel.type_name());
        check_name(kernel.get_ref<const std::string&>());
        if (++count > kMaxChoices) fail("more than {} choices", kMaxChoices);
        choices[device][library][call] = kernel.get_ref<const std::string&>();
      }
    }
  }
  return choices;
}

// Calls `read` with the parsed text; what it or the parser throws becomes one kind of Error.
template <class Read>
auto reading(std::string_view text, const Read& read) {
  try {
    return read(Json::parse(text));
  } catch (const Json::exception& e) {
    fail("the record of kernel choices cannot be read: {}", e.what());
  } catch (const Error& e) {
    fail("the record of kernel choices cannot be used: {}", e.what());
  }
}

template <class Do>
void for_each_choice(const KernelChoices& choices, const Do& act) {
  for (const auto& [device, libraries] : choices)
    for (const auto& [library, calls] : libraries)
      for (const auto& [call, kernel] : calls) act(device, library, call, kernel);
}

// Ascending ranks as [[first, last], ...].
Json runs_of(const std::vector<int>& ranks) {
  Json runs = Json::array();
  for (const int rank : ranks) {
    if (!runs.empty() && runs.back()[1] == rank - 1)
      runs.back()[1] = rank;
    else
      runs.push_back({rank, rank});
  }
  return runs;
}

bool has_rank(const Json& runs, int rank) {
  if (!runs.is_array()) fail("ranks must be an array, not {}", runs.type_name());
  return std::any_of(runs.begin(), runs.end(), [&](const Json& run) {
    if (!run.is_array() || run.size() != 2 || !run[0].is_number_integer() || !run[1].is_number_integer())
      fail("ranks must be pairs of numbers");
    return run[0].get<int64_t>() <= rank && rank <= run[1].get<int64_t>();
  });
}

std::string counted(size_t n) { return n == 1 ? "1 kernel choice" : fmt::format("{} kernel choices", n); }

}  // namespace

std::string kernel_choices_text(const KernelChoices& choices) { return json_text(Json(choices)); }

KernelChoices parse_kernel_choices(std::string_view json) {
  if (json.empty()) return {};
  return reading(json, choices_from);
}

std::string merge_kernel_choices(const std::vector<std::string>& by_rank) {
  std::map<std::string_view, std::vector<int>> ranks_of;  // equal texts are read once
  std::vector<std::string_view> texts;                    // each once, in the order of their first rank
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    std::vector<int>& ranks = ranks_of[by_rank[rank]];
    if (ranks.empty()) texts.push_back(by_rank[rank]);
    ranks.push_back(static_cast<int>(rank));
  }
  std::vector<KernelChoices> each;
  KernelChoices common;
  for (const std::string_view text : texts)
    for_each_choice(each.emplace_back(parse_kernel_choices(text)),
                    [&](const auto& device, const auto& library, const auto& call, const auto& kernel) {
                      common[device][library].emplace(call, kernel);
                    });
  std::map<KernelChoices, std::vector<int>> differing;
  for (size_t i = 0; i < texts.size(); ++i) {
    KernelChoices own;
    for_each_choice(each[i], [&](const auto& device, const auto& library, const auto& call, const auto& kernel) {
      if (common[device][library][call] != kernel) own[device][library][call] = kernel;
    });
    std::vector<int>& ranks = differing[own];
    ranks.insert(ranks.end(), ranks_of[texts[i]].begin(), ranks_of[texts[i]].end());
  }
  Json groups = Json::array();
  for (auto& [own, ranks] : differing) {
    std::sort(ranks.begin(), ranks.end());
    if (!own.empty()) groups.push_back({{"ranks", runs_of(ranks)}, {"choices", own}});
  }
  return json_text(Json{{"common", common}, {"differing", groups}});
}

std::string kernel_choices_for(int rank, std::string_view merged) {
  if (merged.empty()) return {};
  return reading(merged, [&](const Json& j) {
    KernelChoices choices = choices_from(object(j, "kernel choices of all ranks").at("common"));
    const Json& groups = j.at("differing");
    if (!groups.is_array()) fail("differing must be an array, not {}", groups.type_name());
    for (const Json& group : groups)
      if (has_rank(object(group, "a group of ranks").at("ranks"), rank))
        for_each_choice(choices_from(group.at("choices")),
                        [&](const auto& device, const auto& library, const auto& call, const auto& kernel) {
                          choices[device][library].insert_or_assign(call, kernel);
                        });
    return kernel_choices_text(choices);
  });
}

FittingChoices fitting_choices(const KernelChoices& recorded, const std::string& device, const std::vector<std::string>& libraries) {
  FittingChoices fitting;
  std::vector<std::string> left_out;
  size_t used = 0;
  for (const auto& [of_device, by_library] : recorded)
    for (const auto& [library, calls] : by_library) {
      if (of_device != device) {
        left_out.push_back(fmt::format("{} of the checkpoint made for {} ({}): this device is {}; results can differ in their last bits",
                                       counted(calls.size()), of_device, library, device));
      } else if (std::find(libraries.begin(), libraries.end(), library) == libraries.end()) {
        left_out.push_back(fmt::format("{} of the checkpoint made with {}: here are {}; results can differ in their last bits",
                                       counted(calls.size()), library, fmt::join(libraries, ", ")));
      } else {
        used += calls.size();
        fitting.kernels[library] = calls;
      }
    }
  if (used > 0) fitting.lines.push_back(fmt::format("{} of the checkpoint used again", counted(used)));
  fitting.lines.insert(fitting.lines.end(), left_out.begin(), left_out.end());
  return fitting;
}

}  // namespace hlat
