// Launcher and agents by the lines they exchange: each side against a test that plays the other.
#include "supervise/agents.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/machine.h"
#include "flight/flight_recorder.h"
#include "supervise/agent.h"
#include "supervise/agent_news.h"
#include "supervise/host_processes.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using Json = nlohmann::json;

template <class Condition>
bool comes_true(const Condition& condition) {
  for (int tries = 0; tries < 3000; ++tries) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Until a line has this key; what came before is passed over.
std::optional<Json> next_line(LineSocket& line, const char* key) {
  std::optional<Json> found;
  comes_true([&] {
    for (const std::string& text : line.receive())
      if (const Json json = Json::parse(text); json.contains(key) && !found) found = json;
    return found.has_value() || line.closed();
  });
  return found;
}

TEST(AgentCalls, StrangersAreSentAwayAndSilentOnesDropped) {
  AgentCalls calls;
  const auto call = [&] { return LineSocket::connect({"127.0.0.1"}, calls.port(), 10); };
  LineSocket wrong = call(), other = call(), silent = call(), right = call();
  wrong.send(R"({"hello": 1, "name": []})");
  other.send("GET / HTTP/1.1");
  right.send(R"({"hello": "word", "name": "a", "version": "1"})");
  std::vector<AgentCall> taken;
  ASSERT_TRUE(comes_true([&] {
    for (AgentCall& c : calls.take(100)) taken.push_back(std::move(c));
    return !taken.empty() && calls.waiting() == 1;
  }));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].token, "word");
  EXPECT_EQ(taken[0].name, "a");
  EXPECT_EQ(taken[0].version, "1");
  for (LineSocket* line : {&wrong, &other}) EXPECT_TRUE(comes_true([&] { return line->receive(), line->closed(); }));
  calls.take(104);
  EXPECT_EQ(calls.waiting(), 1u);
  calls.take(106);
  EXPECT_EQ(calls.waiting(), 0u);
  EXPECT_TRUE(comes_true([&] { return silent.receive(), silent.closed(); }));
}

TEST(AgentCalls, NoMoreThanSomeWait) {
  AgentCalls calls;
  std::vector<LineSocket> lines;
  for (int i = 0; i < 300; ++i) {
    lines.push_back(LineSocket::connect({"127.0.0.1"}, calls.port(), 10));
    calls.take(1);
  }
  EXPECT_LE(calls.waiting(), 256u);
}

TEST(AgentNews, OnlyReportsOfTheJobCountAndDelaysAreHandedOutOnce) {
  AgentNews news;
  news.watch("/dev/shm/hlat-1");
  news.take(R"({"job": "/dev/shm/hlat-0", "ranks": [], "late_s": 9, "oom_kills": 4})", 10);
  EXPECT_FALSE(news.reported());
  news.take(R"({"job": "/dev/shm/hlat-1", "ranks": [], "late_s": 3, "oom_kills": 4})", 10);
  EXPECT_TRUE(news.reported());
  news.take(R"({"job": "/dev/shm/hlat-1", "ranks": [], "late_s": 0, "oom_kills": 6})", 10);
  EXPECT_EQ(news.oom_kills(), 2);
  EXPECT_EQ(news.late.take(), 3);
  EXPECT_EQ(news.late.take(), 0);
  news.take(R"({"idle": 1})", 11);
  for (const char* wrong : {"nothing", "[1]", R"({"job": 1, "ranks": 7})", R"({"job": "/dev/shm/hlat-1", "ranks": [5], "late_s": 0})",
                            R"({"ended": "x", "left": [1]})"})
    EXPECT_THROW(news.take(wrong, 12), Error) << wrong;
}

TEST(LateCount, EverySecondOfASilenceCountsOnce) {
  LateCount late;
  late.silent(0.5, 1);
  EXPECT_EQ(late.take(), 0);
  double sum = 0;
  for (int look = 1; look <= 50; ++look) late.silent(0.1 * look, 1), sum += late.take();
  EXPECT_NEAR(sum, 4, 1e-9) << "5 s of silence, of which 1 is usual";
  late.silent(0.1, 1);
  EXPECT_EQ(late.take(), 0) << "it was heard again";
  late.silent(3, 1);
  EXPECT_NEAR(late.take(), 2, 1e-9);
}

// The next two: what holds up the launcher's own thread does not hold up its signs of life.
TEST(PingThread, PingsWhileTheOwnerDoesNothing) {
  LineListener listener;
  LineSocket agent = LineSocket::connect({"127.0.0.1"}, listener.port(), 10);
  std::optional<LineSocket> accepted;
  ASSERT_TRUE(comes_true([&] { return (accepted = listener.accept()).has_value(); }));
  PingThread pings(R"({"ping": 1})", 0.05);
  auto line = std::make_shared<SharedLine>(std::move(*accepted));
  pings.add(line);
  EXPECT_TRUE(next_line(agent, "ping"));
  EXPECT_TRUE(next_line(agent, "ping"));
  line->close();
  EXPECT_TRUE(comes_true([&] { return agent.receive(), agent.closed(); }));
}

// An agent of the launcher `agents` on host "far": what starts it writes down its token and where to call.
class FakeHost {
 public:
  FakeHost()
      : agents({.remote = {"sh", "-c",
                           "cat >" + dir_.path("token.new") + "; echo \"$4\" >" + dir_.path("call.new") + "; mv " + dir_.path("token.new") +
                               " " + dir_.path("token") + "; mv " + dir_.path("call.new") + " " + dir_.path("call") + "; sleep 1000"}},
               "1") {}

  // Starts the agent and calls as `hellos` say; returns what ensure() says is missing.
  std::map<std::string, std::string> ensure(const std::function<void()>& calls) {
    auto other = std::async(std::launch::async, calls);
    auto missing = agents.ensure({"far"}, 30);
    other.get();
    return missing;
  }
  LineSocket call() {
    comes_true([&] { return std::filesystem::exists(dir_.path("call")); });
    const std::string where = test::slurp(dir_.path("call"));
    return LineSocket::connect({"127.0.0.1"}, std::stoi(where.substr(where.rfind(':') + 1)), 10);
  }
  std::string token() const { return test::slurp(dir_.path("token")).substr(0, 32); }
  static void greet(LineSocket& line, const std::string& token, const std::string& version = "1") {
    line.send(Json{{"hello", token}, {"name", "far"}, {"version", version}}.dump());
  }
  // An agent that has called and is taken.
  LineSocket connected() {
    std::optional<LineSocket> line;
    EXPECT_TRUE(ensure([&] {
                  line.emplace(call());
                  greet(*line, token());
                }).empty());
    return std::move(*line);
  }

 private:
  test::TempDir dir_;

 public:
  Agents agents;
};

TEST(Agents, OnlyTheAgentOfTheStartThatIsWaitedForIsTaken) {
  FakeHost host;
  std::optional<LineSocket> stranger, line;
  EXPECT_TRUE(host.ensure([&] {
                    stranger.emplace(host.call());
                    FakeHost::greet(*stranger, std::string(32, '0'));
                    comes_true([&] { return stranger->receive(), stranger->closed(); });
                    line.emplace(host.call());
                    FakeHost::greet(*line, host.token());
                  })
                  .empty());
  EXPECT_TRUE(stranger->closed());
  EXPECT_TRUE(host.agents.lives("far"));
  EXPECT_TRUE(next_line(*line, "ping"));
  // Another one with the right word does not take the place of one that lives.
  LineSocket late = host.call();
  FakeHost::greet(late, host.token());
  EXPECT_TRUE(comes_true([&] { return host.agents.poll(0.01), late.receive(), late.closed(); }));
  EXPECT_TRUE(host.agents.lives("far"));
  EXPECT_TRUE(next_line(*line, "ping"));
}

TEST(Agents, AnotherVersionIsRefusedInWords) {
  FakeHost host;
  std::optional<LineSocket> line;
  const auto missing = host.ensure([&] {
    line.emplace(host.call());
    FakeHost::greet(*line, host.token(), "2");
  });
  ASSERT_TRUE(missing.contains("far"));
  EXPECT_EQ(missing.at("far"), "hlat 2 is there, 1 here: they must be the same");
}

TEST(Agents, AStartThatIsUnderWayIsWaitedForByTheNextCall) {
  FakeHost host;
  EXPECT_EQ(host.agents.ensure({"far"}, 0.2).at("far"), "it does not answer");
  LineSocket line = host.call();
  FakeHost::greet(line, host.token());  // of the first start
  EXPECT_TRUE(host.agents.ensure({"far"}, 30).empty());
}

TEST(Agents, ALineThatIsNoneClosesThatConnectionOnly) {
  FakeHost host;
  LineSocket line = host.connected();
  line.send(R"({"ended": 1, "left": 5})");
  EXPECT_TRUE(comes_true([&] { return host.agents.poll(0.01), !host.agents.lives("far"); }));
}

TEST(Agents, WatchWaitsUntilTheAgentHasMadeTheFolder) {
  FakeHost host;
  LineSocket line = host.connected();
  auto agent = std::async(std::launch::async, [&] {
    const auto watch = next_line(line, "watch");
    line.send(Json{{"job", watch->at("watch")}, {"ranks", Json::array()}, {"late_s", 0}, {"oom_kills", 0}}.dump());
  });
  EXPECT_TRUE(host.agents.watch({"far"}, "/dev/shm/hlat-x-1", 60, 30).empty());
  agent.get();
  EXPECT_EQ(host.agents.watch({"far"}, "/dev/shm/hlat-x-2", 60, 0.1), std::vector<std::string>{"far"}) << "it reports another job";
}

TEST(Agents, WhatDoesNotEndNamesItsHostAndWhoIsGoneIsNotWaitedFor) {
  FakeHost host;
  LineSocket line = host.connected();
  auto agent = std::async(std::launch::async, [&] {
    const auto end = next_line(line, "end");
    line.send(Json{{"ended", end->at("end")}, {"left", {"process 7 (hlat), state D"}}, {"seconds", 1}}.dump());
  });
  JobEnd end = host.agents.end("/dev/shm/hlat-x-", {});
  agent.get();
  EXPECT_EQ(end.left, std::vector<std::string>{"process 7 (hlat), state D on far"});
  EXPECT_EQ(end.stuck, std::vector<std::string>{"far"});
  EXPECT_TRUE(end.silent.empty());
  end = host.agents.end("/dev/shm/hlat-x-", {.hurry = [] { return true; }, .at_least_s = 0});
  EXPECT_EQ(end.silent, std::vector<std::string>{"far"}) << "a second signal ends the wait";
  EXPECT_TRUE(host.agents.end("/dev/shm/hlat-x-", {}).silent.empty()) << "it was given up";
}

// A launcher that the test plays, with the agent in a thread.
class FakeLauncher {
 public:
  FakeLauncher() : agent_(std::async(std::launch::async, [options = options()] { run_agent(options); })) {
    std::optional<LineSocket> line;
    comes_true([&] { return (line = listener_.accept()).has_value(); });
    line_.emplace(std::move(*line));
    EXPECT_TRUE(next_line(*line_, "hello"));
  }
  ~FakeLauncher() { quit(); }

  AgentOptions options() const {
    return {
        .addresses = {"127.0.0.1"}, .port = listener_.port(), .token = "word", .name = "here", .version = "1", .draining = drain_file()};
  }
  std::string drain_file() const { return dir.path("draining"); }
  LineSocket& line() { return *line_; }
  void quit() {
    line_->send(R"({"quit": 1})");
    if (agent_.valid()) agent_.get();
  }
  bool ended() { return agent_.wait_for(std::chrono::seconds(30)) == std::future_status::ready; }

  test::TempDir dir;

 private:
  LineListener listener_;
  std::future<void> agent_;
  std::optional<LineSocket> line_;
};

TEST(Agent, SpeaksWhenItHasNothingToDoAndReportsAJobAtOnce) {
  FakeLauncher launcher;
  EXPECT_TRUE(next_line(launcher.line(), "idle"));
  launcher.line().send("no line of a launcher");
  launcher.line().send(R"({"end": 5})");
  const std::string job = launcher.dir.path("hlat-1");
  launcher.line().send(Json{{"watch", job}, {"grace_s", 5}}.dump());
  const auto report = next_line(launcher.line(), "ranks");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->at("job"), job);
  EXPECT_TRUE(std::filesystem::is_directory(job));
}

TEST(Agent, ASignalReachesRanksThatStartLater) {
  std::array<int, 2> go{};
  ASSERT_EQ(pipe(go.data()), 0);
  const test::TempDir dir;
  const std::string job = dir.path("hlat-1");
  const pid_t rank = fork();
  if (rank == 0) {
    char byte = 0;
    if (read(go[0], &byte, 1) != 1) _exit(1);
    const FlightRecorder flight(flight_ring_file(job, 0), {.rank = 0, .ranks = 1, .host = "here"});
    for (;;) pause();
  }
  FakeLauncher launcher;
  launcher.line().send(Json{{"watch", job}, {"grace_s", 5}}.dump());
  ASSERT_TRUE(next_line(launcher.line(), "ranks"));
  launcher.line().send(Json{{"signal", SIGTERM}, {"job", job}}.dump());
  launcher.line().send(Json{{"evidence", job}}.dump());
  ASSERT_TRUE(next_line(launcher.line(), "evidence")) << "the signal was taken before";
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  ASSERT_TRUE(comes_true([&] { return waitpid(rank, &status, WNOHANG) == rank; }));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(Agent, ThatIsTakenAwayEndsItsJobAndNoOther) {
  const test::TempDir dir;
  const std::string job = dir.path("hlat-1"), other = dir.path("hlat-10");
  const auto rank_of = [](const std::string& name) { return ChildOptions{.variables = {{kFlightVariable, name}}}; };
  Child own({"sleep", "1000"}, rank_of(job)), next({"sleep", "1000"}, rank_of(other));
  FakeLauncher launcher;
  launcher.line().send(Json{{"watch", job}, {"grace_s", 0}}.dump());
  ASSERT_TRUE(next_line(launcher.line(), "ranks"));
  ASSERT_TRUE(comes_true([&] { return processes_of(job).size() == 1 && processes_of(other).size() == 1; }));
  launcher.quit();  // without an end: a launcher that gave up in the middle
  EXPECT_TRUE(comes_true([&] { return !own.running(); }));
  EXPECT_TRUE(next.running());
}

TEST(Agent, OfAHostThatIsDrainedEndsWhenItWatchesNoJobAndNoneStarts) {
  FakeLauncher launcher;
  const std::string job = launcher.dir.path("hlat-1");
  launcher.line().send(Json{{"watch", job}, {"grace_s", 0}}.dump());
  ASSERT_TRUE(next_line(launcher.line(), "ranks"));
  launcher.dir.write("draining", "");
  ASSERT_TRUE(next_line(launcher.line(), "ranks")) << "the job goes on";
  launcher.line().send(Json{{"end", job}, {"wait_s", 0}}.dump());
  ASSERT_TRUE(next_line(launcher.line(), "ended"));
  EXPECT_TRUE(launcher.ended());
  EXPECT_NE(message_of([&] { run_agent(launcher.options()); }).find("is being drained"), std::string::npos);
}

TEST(HostProcesses, ANameIsOneJobAndAPrefixIsAll) {
  const std::string run = run_prefix("runs/a");
  const std::string first = job_folder("runs/a", "word", 1), tenth = job_folder("runs/a", "word", 10);
  EXPECT_TRUE(is_of_job(first, run) && is_of_job(tenth, run) && is_of_job(first, first));
  EXPECT_FALSE(is_of_job(tenth, first));
  EXPECT_NE(first, job_folder("runs/a", "other", 1).string()) << "another launcher of the same run";
  EXPECT_FALSE(is_of_job(job_folder("runs/b", "word", 1), run));
}

}  // namespace
}  // namespace hlat
