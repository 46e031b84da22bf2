// Hosts and slots from a config, a Slurm job, a hostfile or this machine, and the messages about what cannot be read.
#include "supervise/hosts.h"

#include <gtest/gtest.h>

#include <map>

#include "base/machine.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using Hosts = std::vector<Host>;
using Names = std::vector<std::string>;

Hosts found(const std::map<std::string, std::string>& vars, const std::string& hosts = "") {
  const Environment env = [&](const char* name) -> const char* {
    const auto place = vars.find(name);
    return place == vars.end() ? nullptr : place->second.c_str();
  };
  LaunchConfig launch;
  launch.hosts = hosts;
  return find_hosts(launch, env, 4);
}

TEST(Hosts, ListOfTheConfig) {
  EXPECT_EQ(parse_host_list("a:8, b:4", "launch.hosts"), (Hosts{{"a", 8}, {"b", 4}}));
  EXPECT_EQ(parse_host_list("n[09-11]:2,x:1", "launch.hosts"), (Hosts{{"n09", 2}, {"n10", 2}, {"n11", 2}, {"x", 1}}));
  const auto message = [](const char* text) { return message_of([&] { parse_host_list(text, "launch.hosts"); }); };
  EXPECT_EQ(message("a:8,b"), "launch.hosts: 'b' is neither a file nor a host with its slots, like node1:8");
  EXPECT_EQ(message("a:0"), "launch.hosts: 'a:0': the slots of a host are a number from 1 to 65536");
  EXPECT_EQ(message("a:8,,b:8"), "launch.hosts: '' is neither a file nor a host with its slots, like node1:8");
  EXPECT_EQ(message("a:8,b:8,a:8"), "launch.hosts: a is there twice");
  EXPECT_EQ(message(":8"), "launch.hosts: '' is not the name of a host");
}

TEST(Hosts, HostfileLines) {
  const char* text =
      "# the cluster\n"
      "node1 slots=8 max_slots=8\n"
      "\n"
      "  node2   slots=4  # the old one\r\n"
      "node3:2\n"
      "node4\n"
      "node1\n";
  EXPECT_EQ(parse_hostfile(text, "hosts"), (Hosts{{"node1", 9}, {"node2", 4}, {"node3", 2}, {"node4", 1}}));
  const auto message = [](const char* lines) { return message_of([&] { parse_hostfile(lines, "hosts"); }); };
  EXPECT_EQ(message("a slots=8\n\nb slot=8"), "hosts:3: 'slot=8' is not known: a line is \"name slots=8\"");
  EXPECT_EQ(message("a slots=many"), "hosts:1: 'slots=many': the slots of a host are a number from 1 to 65536");
  EXPECT_EQ(message("a\nb:x\n"), "hosts:2: 'b:x' has no number of slots after its colon");
  EXPECT_EQ(message("# nothing\n"), "hosts names no hosts");
}

TEST(Hosts, SlurmShortForms) {
  EXPECT_EQ(expand_node_list("node[01-03,07],login", "V"), (Names{"node01", "node02", "node03", "node07", "login"}));
  EXPECT_EQ(expand_node_list("r[1-2]n[8-10]x", "V"), (Names{"r1n8x", "r1n9x", "r1n10x", "r2n8x", "r2n9x", "r2n10x"}));
  EXPECT_EQ(expand_node_list("n[098-101]", "V"), (Names{"n098", "n099", "n100", "n101"}));
  EXPECT_EQ(expand_counts("8(x2),4", "V"), (std::vector<int>{8, 8, 4}));
  EXPECT_EQ(expand_counts("1", "V"), std::vector<int>{1});
  EXPECT_EQ(message_of([] { expand_node_list("n[1-", "V"); }), "V: 'n[1-' has a bracket that is not closed");
  EXPECT_EQ(message_of([] { expand_node_list("n[3-1]", "V"); }), "V: the range '3-1' names no hosts");
  EXPECT_EQ(message_of([] { expand_node_list("n[a]", "V"); }), "V: 'a' is not a number or a range like 01-16");
  EXPECT_EQ(message_of([] { expand_node_list("n1]", "V"); }), "V: 'n1]' is not the name of a host");
  EXPECT_EQ(message_of([] { expand_counts("8(x2", "V"); }), "V: '8(x2' is not a count like 8 or 8(x2)");
}

TEST(Hosts, ConfigBeforeSlurmBeforeHostfileBeforeThisHost) {
  const test::TempDir dir;
  const std::string file = dir.write("hosts", "worker-0 slots=8\nworker-1 slots=8\n");
  std::map<std::string, std::string> vars;
  EXPECT_EQ(found(vars), (Hosts{{host_name(), 4}}));
  vars["OMPI_MCA_orte_default_hostfile"] = file;
  EXPECT_EQ(found(vars), (Hosts{{"worker-0", 8}, {"worker-1", 8}}));
  vars["SLURM_JOB_NODELIST"] = "n[1-2]";
  EXPECT_EQ(found(vars), (Hosts{{"n1", 4}, {"n2", 4}}));
  vars["SLURM_TASKS_PER_NODE"] = "2(x2)";
  EXPECT_EQ(found(vars), (Hosts{{"n1", 2}, {"n2", 2}}));
  EXPECT_EQ(found(vars, "a:1"), (Hosts{{"a", 1}}));
  EXPECT_EQ(found(vars, file), (Hosts{{"worker-0", 8}, {"worker-1", 8}}));
  vars["SLURM_TASKS_PER_NODE"] = "2";
  EXPECT_EQ(message_of([&] { found(vars); }), "SLURM_JOB_NODELIST names 2 hosts, SLURM_TASKS_PER_NODE (2) has 1 counts");
  EXPECT_EQ(message_of([&] { found(vars, dir.path("none")); }), "cannot read the hostfile " + dir.path("none"));
}

TEST(Hosts, SlotsOfThisHost) {
  Config c;
  EXPECT_EQ(slots_of_this_host(c, 0), 1);
  EXPECT_EQ(slots_of_this_host(c, 8), 8);
  c.parallel.tp = 2;
  EXPECT_EQ(slots_of_this_host(c, 0), 2);
  c.parallel.dp = 3;
  EXPECT_EQ(slots_of_this_host(c, 0), 6);
  c.launch.ranks = 12;
  EXPECT_EQ(slots_of_this_host(c, 8), 12);
}

}  // namespace
}  // namespace hlat
