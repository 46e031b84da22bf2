#include "burnin/comm_measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/machine.h"
#include "base/median.h"
#include "burnin/corrupting_comm.h"
#include "comm/host_exchange.h"
#include "health/fingerprint.h"

namespace hlat {

namespace {

constexpr std::array<Axis, 3> kCheckedAxes = {Axis::tp, Axis::pp, Axis::dp};
constexpr double kPlantedDelay = 0.1;  // seconds
constexpr int kLinkTag = 6;
constexpr int kLinkRepeats = 3;  // before a link is called slow

// The groups of one rank with room for their tensors.
class CommBench {
 public:
  explicit CommBench(const CheckRun& run)
      : run_(run),
        most_(comm_sizes(run.options.short_form).back()),
        device_comm_(run.config, run.backend, run.world(), run.session.local_ranks()),
        mesh_(device_comm_.make_mesh(wrap())),
        memory_(run.backend.device(), plan()),
        ops_(run.backend.make_ops(memory_.memory()[Purpose::temp])) {
    mesh_.reserve(memory_.memory()[Purpose::comm]);
    for (const Axis axis : kCheckedAxes) mesh_.along(axis).reserve_messages(static_cast<size_t>(most_), 2);
    Region& io = memory_.memory()[Purpose::io];
    buffers_.full = io.alloc(DType::f32, {elements()}, "full");
    buffers_.own = io.alloc(DType::f32, {elements()}, "own");
    sum_ = io.alloc(DType::i32, {2}, "fingerprint");
  }

  CommMeasured measure() {
    CommMeasured m;
    m.transport = device_comm_.describe();
    for (const Axis axis : kCheckedAxes) {
      if (mesh_.along(axis).size() == 1) continue;
      run_.say(fmt::format("comm: {}", name_of(axis)));
      if (axis != Axis::pp) mesh_.along(axis).open_ring();  // which has one
      for (const Collective op : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::send_recv})
        for (const int64_t bytes : comm_sizes(run_.options.short_form))
          measure_case(axis, {.op = op, .elements = bytes / static_cast<int64_t>(sizeof(float))}, m);
      measure_links(axis, m);
      for (int again = 0; again < kLinkRepeats && any_slow(axis, m); ++again) measure_links(axis, m);
    }
    return m;
  }

 private:
  int64_t elements() const { return most_ / static_cast<int64_t>(sizeof(float)); }

  DeviceComm::WrapComm wrap() const {
    bool any = false;
    for (int r = 0; r < run_.world().size(); ++r) any = any || run_.plants(FaultKind::check_comm, r);
    if (!any) return {};
    const bool strikes = run_.plants(FaultKind::check_comm);
    return [strikes](std::unique_ptr<Comm> inner) -> std::unique_ptr<Comm> {
      return inner->size() == 1 ? std::move(inner) : std::make_unique<CorruptingComm>(std::move(inner), strikes);
    };
  }

  MemoryPlan plan() const {
    MemoryPlan plan;
    const auto at = [&](Purpose p) -> size_t& { return plan.bytes[static_cast<size_t>(p)]; };
    for (const auto& comm : mesh_.comms())
      if (comm->size() > 1) at(Purpose::comm) += sum_staging(comm->size()) + kAlign;
    at(Purpose::io) = 2 * static_cast<size_t>(most_) + 4 * kAlign;
    Region measuring;
    at(Purpose::temp) = run_.backend.make_ops(measuring)->reduce_scratch(elements()) + kAlign;
    return plan;
  }

  void measure_case(Axis axis, const CommCase& c, CommMeasured& m) {
    Comm& comm = mesh_.along(axis);
    const Tensor in = comm_input_of(c, buffers_, comm.rank(), comm.size()), out = comm_output_of(c, buffers_, comm.rank(), comm.size());
    const std::vector<float> input = comm_input(c, comm.rank(), comm.size()), known = comm_output(c, comm.rank(), comm.size());
    const uint64_t known_bits = fingerprint(known.data(), known.size() * sizeof(float));
    const int tries = run_.options.short_form ? 3 : c.bytes() > (1 << 20) ? 8 : 20;
    std::vector<double> times;
    for (int i = 0; i < tries + 1; ++i) {
      if (c.op != Collective::all_reduce) ops_->fill(out, -1);
      run_.backend.device().upload(in, input.data());
      ops_->finish();
      comm.barrier();
      const double start = now_s();
      run_case(c, buffers_, comm);
      ops_->finish();
      if (i > 0) times.push_back(now_s() - start);  // the first connects
      ops_->checksum(sum_, out);
      uint64_t got = 0;
      run_.backend.device().download(&got, sum_);
      if (got != known_bits) note_wrong(axis, c, out, known, m);
    }
    m.times.push_back({.axis = std::string(name_of(axis)),
                       .group = mesh_.ranks_along(axis).front(),
                       .ranks = comm.size(),
                       .op = c.op,
                       .bytes = c.bytes(),
                       .typical = upper_median(times),
                       .best = *std::min_element(times.begin(), times.end())});
  }

  // Of each source the first wrong element.
  void note_wrong(Axis axis, const CommCase& c, const Tensor& out, const std::vector<float>& known, CommMeasured& m) {
    const Comm& comm = mesh_.along(axis);
    std::vector<float> got(known.size());
    run_.backend.device().download(got.data(), out);
    const auto world_rank = [&](int r) { return r < 0 ? -1 : mesh_.ranks_along(axis)[static_cast<size_t>(r)]; };
    for (size_t i = 0; i < known.size(); ++i) {
      if (got[i] == known[i]) continue;
      const WrongData wrong{.axis = std::string(name_of(axis)),
                            .op = c.op,
                            .bytes = c.bytes(),
                            .element = static_cast<int64_t>(i),
                            .rank = run_.rank(),
                            .from = world_rank(comm_source(c, static_cast<int64_t>(i), comm.rank(), comm.size())),
                            .got = got[i],
                            .known = known[i]};
      const bool noted = std::any_of(m.wrong.begin(), m.wrong.end(), [&](const WrongData& w) {
        return w.axis == wrong.axis && w.op == wrong.op && w.bytes == wrong.bytes && w.from == wrong.from;
      });
      if (!noted) m.wrong.push_back(wrong);
    }
  }

  // Pairs of neighbours in three rounds, in which no rank is in two pairs.
  void measure_links(Axis axis, CommMeasured& m) {
    Comm& comm = mesh_.along(axis);
    const int size = comm.size(), rank = comm.rank(), pairs = size == 2 ? 1 : size;
    const auto round_of = [&](int pair) { return pair == size - 1 && size % 2 == 1 ? 2 : pair % 2; };
    for (int round = 0; round < 3; ++round) {
      run_.world().barrier();
      const int back = (rank + size - 1) % size;
      if (rank < pairs && round_of(rank) == round)
        ping(comm, axis, (rank + 1) % size, true, m);
      else if (back < pairs && round_of(back) == round)
        ping(comm, axis, back, false, m);
    }
  }

  // Whether some rank of the world has a slow link along this axis. A rank leads one at most.
  bool any_slow(Axis axis, const CommMeasured& m) const {
    struct Own {
      int a = -1, b = -1;
      double typical = 0, best = 0;
    } own;
    for (const LinkTime& l : m.links)
      if (l.axis == name_of(axis)) own = {.a = l.a, .b = l.b, .typical = l.typical, .best = l.best};
    std::vector<LinkTime> links;
    for (const Own& o : all_gather_values(run_.world(), own))
      if (o.a >= 0) links.push_back({.axis = std::string(name_of(axis)), .a = o.a, .b = o.b, .typical = o.typical, .best = o.best});
    return !slow_peers(links, least_delay(run_)).empty();
  }

  // A link that was measured before keeps its better times.
  static void add_link(LinkTime link, CommMeasured& m) {
    for (LinkTime& known : m.links)
      if (known.axis == link.axis) {
        known.typical = std::min(known.typical, link.typical);
        known.best = std::min(known.best, link.best);
        return;
      }
    m.links.push_back(std::move(link));
  }

  // There and back. `leads`: this rank sends first and keeps the time.
  void ping(Comm& comm, Axis axis, int peer, bool leads, CommMeasured& m) {
    const bool quick = run_.options.short_form, slow = run_.plants(FaultKind::check_slow);
    const Tensor t = buffers_.full.rows(0, std::min<int64_t>(elements(), quick ? 1 << 18 : 1 << 22));
    const auto move = [&](bool sends) {
      if (sends && slow) std::this_thread::sleep_for(std::chrono::duration<double>(kPlantedDelay));
      Request request = sends ? comm.send(t, peer, kLinkTag) : comm.recv(t, peer, kLinkTag);
      comm.wait(request);
      ops_->finish();
    };
    std::vector<double> times;
    for (int i = 0; i < (quick ? 5 : 15); ++i) {
      const double start = now_s();
      move(leads);
      move(!leads);
      times.push_back(now_s() - start);
    }
    if (!leads) return;
    times.erase(times.begin());  // connects
    const std::vector<int>& ranks = mesh_.ranks_along(axis);
    add_link({.axis = std::string(name_of(axis)),
              .a = run_.rank(),
              .b = ranks[static_cast<size_t>(peer)],
              .typical = upper_median(times),
              .best = *std::min_element(times.begin(), times.end())},
             m);
  }

  const CheckRun& run_;
  int64_t most_;
  DeviceComm device_comm_;
  Mesh mesh_;
  PlannedMemory memory_;
  std::unique_ptr<Ops> ops_;
  CommBuffers buffers_;
  Tensor sum_;
};

}  // namespace

double least_delay(const CheckRun& run) {
  if (run.competes) return kScheduledDelay;
  return run.options.short_form ? kQuickDelay : kLeastDelay;
}

CommMeasured measure_comm(const CheckRun& run) {
  if (run.world().size() == 1) return {};
  return CommBench(run).measure();
}

}  // namespace hlat
