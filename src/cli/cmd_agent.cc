// hlat agent: what hlat launch starts on each host. Not for people: the launcher gives it a token and a name on its standard input.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/version.h"
#include "supervise/agent.h"

namespace hlat {

namespace {

// "name1,address2:port"
AgentOptions agent_options(const std::string& connect) {
  AgentOptions options{.addresses = {}, .port = 0, .token = {}, .name = {}, .version = version()};
  const size_t colon = connect.rfind(':');
  std::istringstream addresses(connect.substr(0, colon));
  for (std::string one; std::getline(addresses, one, ',');) options.addresses.push_back(one);
  try {
    options.port = std::stoi(connect.substr(colon + 1));
  } catch (const std::exception&) {
    fail<UsageError>("--connect {}: must be addresses, a colon and a port", connect);
  }
  if (!(std::cin >> options.token >> options.name)) throw UsageError("hlat agent is started by hlat launch, which gives it a token");
  return options;
}

}  // namespace

void add_agent_command(CLI::App& app) {
  const auto connect = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("agent", "watch the ranks of a host; started by hlat launch");
  command->group("");  // not shown
  command->add_option("--connect", *connect, "where the launcher listens")->required();
  command->callback([connect] { run_agent(agent_options(*connect)); });
}

}  // namespace hlat
