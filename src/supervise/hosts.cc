#include "supervise/hosts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/error.h"
#include "base/machine.h"

namespace hlat {
namespace {

constexpr int kMostSlots = 65536;       // of a host
constexpr size_t kMostHosts = 1 << 20;  // more are a slip in a range

constexpr const char* kHostfileVariables[] = {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"};

// A number of slots, or 0 when the text is none.
int slots_in(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0 && value <= kMostSlots ? value : 0;
}

// Pieces between commas that stand outside brackets.
std::vector<std::string_view> split_host_list(std::string_view text) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    pieces.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return pieces;
}

std::string_view without_spaces(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// "01-03" or "07": the numbers in it, as wide as the first.
std::vector<std::string> numbers_of_range(std::string_view range, const std::string& origin) {
  const auto number = [&](std::string_view text) {
    size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
      fail<UsageError>("{}: '{}' is not a number or a range like 01-16", origin, range);
    return value;
  };
  const size_t dash = range.find('-');
  const std::string_view first_text = range.substr(0, dash);
  const size_t first = number(first_text), last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
  if (last < first || last - first >= kMostHosts) fail<UsageError>("{}: the range '{}' names no hosts", origin, range);
  std::vector<std::string> numbers;
  for (size_t i = first; i <= last; ++i) numbers.push_back(fmt::format("{:0{}}", i, first_text.size()));
  return numbers;
}

// One name with brackets in it, of which there may be several: "rack[1-2]node[01-16]".
std::vector<std::string> expand_name(std::string_view name, const std::string& origin) {
  const size_t open = name.find('[');
  if (open == std::string_view::npos) {
    if (name.empty() || name.find(']') != std::string_view::npos) fail<UsageError>("{}: '{}' is not the name of a host", origin, name);
    return {std::string(name)};
  }
  const size_t close = name.find(']', open);
  if (close == std::string_view::npos) fail<UsageError>("{}: '{}' has a bracket that is not closed", origin, name);
  std::vector<std::string> numbers;
  for (const std::string_view range : split_host_list(name.substr(open + 1, close - open - 1)))
    std::ranges::move(numbers_of_range(range, origin), std::back_inserter(numbers));
  const std::string_view rest = name.substr(close + 1);
  const std::vector<std::string> ends = rest.empty() ? std::vector<std::string>{""} : expand_name(rest, origin);
  if (numbers.size() * ends.size() > kMostHosts) fail<UsageError>("{}: '{}' names {} hosts", origin, name, numbers.size() * ends.size());
  std::vector<std::string> names;
  for (const std::string& middle : numbers)
    for (const std::string& end : ends) names.push_back(std::string(name.substr(0, open)) + middle + end);
  return names;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) fail<UsageError>("cannot read the hostfile {}", path);
  return text;
}

bool names_a_file(const std::string& hosts) {
  std::error_code ignored;
  return hosts.find('/') != std::string::npos || std::filesystem::is_regular_file(hosts, ignored);
}

// The variable that names a hostfile, or null.
const char* hostfile_variable(const Environment& env) {
  for (const char* name : kHostfileVariables) {
    const char* value = env(name);
    if (value != nullptr && *value != 0) return name;
  }
  return nullptr;
}

// A batch script, an interactive allocation or a step in one.
const char* slurm_nodes(const Environment& env) {
  const char* nodes = env("SLURM_JOB_NODELIST");
  return nodes != nullptr && *nodes != 0 ? nodes : nullptr;
}

std::vector<Host> slurm_hosts(const Environment& env, int slots_here) {
  const std::vector<std::string> names = expand_node_list(slurm_nodes(env), "SLURM_JOB_NODELIST");
  const char* tasks = env("SLURM_TASKS_PER_NODE");
  std::vector<int> counts(names.size(), slots_here);
  if (tasks != nullptr && *tasks != 0) counts = expand_counts(tasks, "SLURM_TASKS_PER_NODE");
  if (counts.size() != names.size())
    fail<UsageError>("SLURM_JOB_NODELIST names {} hosts, SLURM_TASKS_PER_NODE ({}) has {} counts", names.size(), tasks, counts.size());
  std::vector<Host> hosts;
  for (size_t i = 0; i < names.size(); ++i) hosts.push_back({names[i], counts[i]});
  return hosts;
}

// One line of a hostfile without its comment; `where` is "file:line".
Host host_of_line(std::string_view line, const std::string& where) {
  std::istringstream words{std::string(line)};
  std::string name, word;
  words >> name;
  Host host{name, 1};
  if (const size_t colon = name.rfind(':'); colon != std::string::npos) {
    host = {name.substr(0, colon), slots_in(std::string_view(name).substr(colon + 1))};
    if (host.slots == 0) fail<UsageError>("{}: '{}' has no number of slots after its colon", where, name);
  }
  while (words >> word) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const int value = equals == std::string::npos ? 0 : slots_in(std::string_view(word).substr(equals + 1));
    const bool most = key == "max_slots" || key == "max-slots";
    if (key != "slots" && !most) fail<UsageError>("{}: '{}' is not known: a line is \"name slots=8\"", where, word);
    if (value == 0) fail<UsageError>("{}: '{}': the slots of a host are a number from 1 to {}", where, word, kMostSlots);
    if (!most) host.slots = value;
  }
  return host;
}

}  // namespace

int slots_of_this_host(const Config& config, int gpus) {
  const int64_t layout = config.parallel.dp > 0 ? config.parallel.ranks() : config.parallel.tp * config.parallel.pp;
  if (config.launch.ranks > 0) return static_cast<int>(std::max<int64_t>(config.launch.ranks, gpus));
  return gpus > 0 ? gpus : static_cast<int>(layout);
}

std::vector<std::string> expand_node_list(std::string_view text, const std::string& origin) {
  std::vector<std::string> names;
  for (const std::string_view piece : split_host_list(text))
    std::ranges::move(expand_name(without_spaces(piece), origin), std::back_inserter(names));
  return names;
}

std::vector<int> expand_counts(std::string_view text, const std::string& origin) {
  std::vector<int> counts;
  for (const std::string_view piece : split_host_list(text)) {
    const size_t open = piece.find("(x");
    const int value = slots_in(piece.substr(0, open));
    int times = 1;
    if (open != std::string_view::npos) times = piece.back() == ')' ? slots_in(piece.substr(open + 2, piece.size() - open - 3)) : 0;
    if (value == 0 || times == 0) fail<UsageError>("{}: '{}' is not a count like 8 or 8(x2)", origin, piece);
    counts.insert(counts.end(), static_cast<size_t>(times), value);
  }
  return counts;
}

std::vector<Host> parse_host_list(std::string_view text, const std::string& origin) {
  std::vector<Host> hosts;
  for (const std::string_view piece : split_host_list(text)) {
    const std::string_view word = without_spaces(piece);
    const size_t colon = word.rfind(':');
    if (colon == std::string_view::npos)
      fail<UsageError>("{}: '{}' is neither a file nor a host with its slots, like node1:8", origin, word);
    const int slots = slots_in(word.substr(colon + 1));
    if (slots == 0) fail<UsageError>("{}: '{}': the slots of a host are a number from 1 to {}", origin, word, kMostSlots);
    for (std::string& name : expand_name(word.substr(0, colon), origin)) {
      if (std::ranges::any_of(hosts, [&](const Host& h) { return h.name == name; }))
        fail<UsageError>("{}: {} is there twice", origin, name);
      hosts.push_back({std::move(name), slots});
    }
  }
  return hosts;
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& file) {
  std::vector<Host> hosts;
  int number = 0;
  for (size_t begin = 0; begin <= text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    line = without_spaces(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    Host host = host_of_line(line, fmt::format("{}:{}", file, number + 1));
    const auto before = std::ranges::find(hosts, host.name, &Host::name);
    if (before == hosts.end())
      hosts.push_back(std::move(host));
    else
      before->slots += host.slots;
  }
  if (hosts.empty()) fail<UsageError>("{} names no hosts", file);
  return hosts;
}

std::vector<Host> find_hosts(const LaunchConfig& launch, const Environment& env, int slots_here) {
  if (!launch.hosts.empty())
    return names_a_file(launch.hosts) ? parse_hostfile(file_text(launch.hosts), launch.hosts)
                                      : parse_host_list(launch.hosts, "launch.hosts");
  if (slurm_nodes(env) != nullptr) return slurm_hosts(env, slots_here);
  if (const char* variable = hostfile_variable(env)) return parse_hostfile(file_text(env(variable)), env(variable));
  return {{host_name(), slots_here}};
}

}  // namespace hlat
