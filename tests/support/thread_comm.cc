// One mutex guards the matching of messages; copies run outside it. A channel (group, from, to, tag) is a queue of
// messages of which only one side has come. Each Comm has an endpoint, where its thread sleeps. A rank that leaves with
// an exception first takes back what nobody has matched and waits for copies that touch its memory.
#include "support/thread_comm.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "comm/host_exchange.h"

namespace hlat {
namespace {

using Clock = std::chrono::steady_clock;

struct Endpoint {
  std::condition_variable wake;
  int copying = 0;  // copies under way from or to this endpoint's memory
  bool cancelled = false;
};

struct Message {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  bool from_sender = false;  // who came first
  bool done = false;
  int peer = 0;  // of who came first
  std::shared_ptr<Endpoint> first;
};

using ChannelKey = std::tuple<uint64_t, int, int, int>;  // group, from, to, tag

struct World {
  std::mutex mutex;
  std::map<ChannelKey, std::deque<std::shared_ptr<Message>>> channels;
  std::vector<std::weak_ptr<Endpoint>> endpoints;
  uint64_t groups = 1;
  bool aborted = false;
  std::chrono::duration<double> time_limit{kThreadTimeLimit};

  std::shared_ptr<Endpoint> add_endpoint() {
    const std::lock_guard lock(mutex);
    std::erase_if(endpoints, [](const auto& e) { return e.expired(); });
    auto endpoint = std::make_shared<Endpoint>();
    endpoints.push_back(endpoint);
    return endpoint;
  }

  void abort() {
    const std::lock_guard lock(mutex);
    aborted = true;
    for (const auto& weak : endpoints) {
      if (const auto endpoint = weak.lock()) endpoint->wake.notify_all();
    }
  }
};

class ThreadComm final : public Comm {
 public:
  ThreadComm(std::shared_ptr<World> world, uint64_t group, int rank, int size, std::string name)
      : Comm(rank, size, std::move(name)), world_(std::move(world)), group_(group), endpoint_(world_->add_endpoint()) {}
  ~ThreadComm() override {
    std::unique_lock lock(world_->mutex);
    retreat(lock);
  }

  std::unique_ptr<Comm> split(int color, int key, std::string name) override;

  void cancel() override {
    const std::lock_guard lock(world_->mutex);
    endpoint_->cancelled = true;
    endpoint_->wake.notify_all();
  }

 protected:
  uint64_t start_send(const void* data, size_t bytes, int peer, int tag) override {
    return start({.from = data, .bytes = bytes, .from_sender = true, .peer = peer, .first = endpoint_}, {group_, rank(), peer, tag});
  }
  uint64_t start_recv(void* data, size_t bytes, int peer, int tag) override {
    return start({.to = data, .bytes = bytes, .from_sender = false, .peer = peer, .first = endpoint_}, {group_, peer, rank(), tag});
  }
  void finish(uint64_t id) override;

 private:
  struct Pending {
    std::shared_ptr<Message> message;
    ChannelKey key;
  };

  uint64_t start(Message message, const ChannelKey& key);
  void copy_matched(std::unique_lock<std::mutex>& lock, Message& theirs, const Message& ours);
  bool stopped() const { return world_->aborted || endpoint_->cancelled; }
  [[noreturn]] void stop(std::unique_lock<std::mutex>& lock, int peer);
  void retreat(std::unique_lock<std::mutex>& lock);

  std::shared_ptr<World> world_;
  uint64_t group_;
  std::shared_ptr<Endpoint> endpoint_;
  std::map<uint64_t, Pending> pending_;  // posted first by this rank, not finished; guarded by the calling thread
  uint64_t next_id_ = 1;
};

uint64_t ThreadComm::start(Message message, const ChannelKey& key) {
  const uint64_t id = next_id_++;
  std::unique_lock lock(world_->mutex);
  if (stopped()) stop(lock, message.peer);
  const auto channel = world_->channels.find(key);
  if (channel == world_->channels.end() || channel->second.front()->from_sender == message.from_sender) {
    auto shared = std::make_shared<Message>(std::move(message));
    world_->channels[key].push_back(shared);
    pending_.emplace(id, Pending{std::move(shared), key});
    return id;
  }
  const std::shared_ptr<Message> theirs = channel->second.front();
  HLAT_CHECK(theirs->bytes == message.bytes, "{}: {} of {} bytes, rank {} has {} bytes for it (tag {})", where(),
             message.from_sender ? "send" : "recv", message.bytes, message.peer, theirs->bytes, std::get<3>(key));
  channel->second.pop_front();
  if (channel->second.empty()) world_->channels.erase(channel);
  copy_matched(lock, *theirs, message);
  return id;  // not pending: done already
}

void ThreadComm::copy_matched(std::unique_lock<std::mutex>& lock, Message& theirs, const Message& ours) {
  if (ours.bytes > 0) {
    ++theirs.first->copying;
    lock.unlock();
    std::memcpy(ours.from_sender ? theirs.to : ours.to, ours.from_sender ? ours.from : theirs.from, ours.bytes);
    lock.lock();
    --theirs.first->copying;
  }
  theirs.done = true;
  theirs.first->wake.notify_all();
}

void ThreadComm::finish(uint64_t id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;
  const Message& message = *found->second.message;
  std::unique_lock lock(world_->mutex);
  const auto limit = Clock::now() + std::chrono::duration_cast<Clock::duration>(world_->time_limit);
  const bool in_time = endpoint_->wake.wait_until(lock, limit, [&] { return message.done || stopped(); });
  const int peer = message.peer;
  if (!message.done) {
    if (!in_time) {
      const double waited = world_->time_limit.count();
      retreat(lock);
      fail("{}: waited {:g} s for rank {}", where(), waited, peer);
    }
    stop(lock, peer);
  }
  pending_.erase(found);
}

void ThreadComm::stop(std::unique_lock<std::mutex>& lock, int peer) {
  retreat(lock);
  fail("{}: stopped, with rank {} to hear from: {}", where(), peer, endpoint_->cancelled ? "this rank gave up" : "another rank failed");
}

// Nobody reads or writes this Comm's messages afterwards.
void ThreadComm::retreat(std::unique_lock<std::mutex>& lock) {
  for (const auto& [id, pending] : pending_) {
    const auto channel = world_->channels.find(pending.key);
    if (channel == world_->channels.end()) continue;
    std::erase(channel->second, pending.message);
    if (channel->second.empty()) world_->channels.erase(channel);
  }
  endpoint_->wake.wait(lock, [&] { return endpoint_->copying == 0; });
  pending_.clear();
}

// Every rank learns the others' color, key and a fresh group number; a group takes the number of its first rank.
std::unique_ptr<Comm> ThreadComm::split(int color, int key, std::string name) {
  struct Entry {
    int color, key;
    uint64_t group;
  };
  HLAT_CHECK(color >= 0, "{}: split of {} with color {}", this->name(), name, color);
  const auto new_group = [this] {
    const std::lock_guard lock(world_->mutex);
    return world_->groups++;
  };
  const std::vector<Entry> all = all_gather_values(*this, Entry{color, key, new_group()});
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int r = 0; r < size(); ++r) {
    if (const Entry& e = all[static_cast<size_t>(r)]; e.color == color) members.emplace_back(e.key, r);
  }
  std::sort(members.begin(), members.end());
  const auto place = std::find(members.begin(), members.end(), std::pair(key, rank())) - members.begin();
  const uint64_t group = all[static_cast<size_t>(members.front().second)].group;
  return std::make_unique<ThreadComm>(world_, group, static_cast<int>(place), static_cast<int>(members.size()), std::move(name));
}

std::vector<std::unique_ptr<Comm>> make_comms(const std::shared_ptr<World>& world, int size, double time_limit_s) {
  HLAT_CHECK(size > 0, "a world of {} ranks", size);
  world->time_limit = std::chrono::duration<double>(time_limit_s);
  std::vector<std::unique_ptr<Comm>> comms;
  for (int rank = 0; rank < size; ++rank) comms.push_back(std::make_unique<ThreadComm>(world, 0, rank, size, "world"));
  return comms;
}

}  // namespace

std::vector<std::unique_ptr<Comm>> make_thread_comms(int size, double time_limit_s) {
  return make_comms(std::make_shared<World>(), size, time_limit_s);
}

void run_thread_ranks(int size, const std::function<void(Comm& world)>& body, double time_limit_s) {
  const auto world = std::make_shared<World>();
  const std::vector<std::unique_ptr<Comm>> comms = make_comms(world, size, time_limit_s);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::jthread> threads;
  threads.reserve(comms.size());
  const auto run = [&](Comm& rank) {
    try {
      body(rank);
    } catch (...) {
      // Written down before the abort: what the abort causes in other ranks comes later.
      {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      world->abort();
    }
  };
  try {
    for (const auto& comm : comms) threads.emplace_back(run, std::ref(*comm));
  } catch (...) {
    world->abort();  // no thread more to be had: those that run must not wait for it
    throw;
  }
  for (std::jthread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace hlat
