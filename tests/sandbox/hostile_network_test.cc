// Hostile programs that reach for the network: sockets that this test serves get nothing.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "sandbox/descriptor.h"
#include "support/sandbox_fixture.h"

namespace hlat::test {
namespace {

class HostileNetwork : public SandboxTest {
 protected:
  // A socket of the test on the host's loopback; the port it has.
  int serve_internet(int type) {
    served_ = sandbox::Descriptor(socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(served_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_TRUE(type != SOCK_STREAM || listen(served_.number(), 5) == 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(served_.number(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }

  // `name` as the kernel has it: a path, or a zero and more.
  void serve_local(const std::string& name) {
    served_ = sandbox::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(name.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(bind(served_.number(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(served_.number(), 5), 0);
  }

  bool anybody_came() const {
    pollfd wait{served_.number(), POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
  }

 private:
  sandbox::Descriptor served_;
};

TEST_F(HostileNetwork, ConnectsToThisHost) {
  const int port = serve_internet(SOCK_STREAM);
  expect_all_refused(fmt::format(R"(
import socket, urllib.request
attempt('tcp', lambda: socket.create_connection(('127.0.0.1', {0}), 5))
attempt('name', lambda: socket.create_connection(('localhost', {0}), 5))
attempt('http', lambda: urllib.request.urlopen('http://127.0.0.1:{0}/', timeout=5))
attempt('server', lambda: socket.create_server(('127.0.0.1', 0)))
)",
                                 port),
                     4);
  EXPECT_FALSE(anybody_came());
}

TEST_F(HostileNetwork, ConnectsToOtherHosts) {
  expect_all_refused(R"(
import socket
attempt('ipv4', lambda: socket.create_connection(('192.0.2.1', 80), 5))
attempt('ipv6', lambda: socket.create_connection(('2001:db8::1', 80), 5))
attempt('resolver', lambda: socket.getaddrinfo('example.org', 80))
)",
                     3);
}

TEST_F(HostileNetwork, SendsDatagrams) {
  const int port = serve_internet(SOCK_DGRAM);
  expect_all_refused(fmt::format(R"(
import socket
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'secret', ('127.0.0.1', {})))
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
)",
                                 port),
                     2);
  EXPECT_FALSE(anybody_came());
}

TEST_F(HostileNetwork, ConnectsToASocketInAFolder) {
  const TempDir place;
  ASSERT_EQ(chmod(place.path().c_str(), 0777), 0);
  serve_local(place.path("socket"));
  ASSERT_EQ(chmod(place.path("socket").c_str(), 0777), 0);
  expect_all_refused(fmt::format(R"(
import socket
attempt('unix', lambda: socket.socket(socket.AF_UNIX).connect('{}'))
attempt('docker', lambda: socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock'))
)",
                                 place.path("socket")),
                     2);
  EXPECT_FALSE(anybody_came());
}

TEST_F(HostileNetwork, ConnectsToAnAbstractSocket) {
  const std::string name = fmt::format("hlat-sandbox-test-{}", getpid());
  serve_local(std::string(1, '\0') + name);
  expect_all_refused(fmt::format("import socket\nattempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0{}'))", name), 1);
  EXPECT_FALSE(anybody_came());
}

// Virtual machines' sockets know no namespaces; netlink, packets and the kernel's ciphers are ways to its bugs.
TEST_F(HostileNetwork, OpensSocketsOfOtherFamilies) {
  expect_all_refused(R"(
import socket
for name in 'AF_VSOCK', 'AF_NETLINK', 'AF_PACKET', 'AF_ALG', 'AF_INET6', 'AF_BLUETOOTH', 'AF_CAN', 'AF_TIPC', 'AF_RDS':
    attempt(name, lambda: socket.socket(getattr(socket, name), socket.SOCK_RAW))
attempt('pair', lambda: socket.socketpair(socket.AF_TIPC))
)",
                     10);
}

// What programs do use among their own processes works.
TEST_F(HostileNetwork, LeavesPipesAndLocalSockets) {
  const sandbox::RunResult result = run(R"(
import asyncio, multiprocessing, socket, subprocess
server = socket.socket(socket.AF_UNIX)
server.bind('/tmp/socket')
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect('/tmp/socket')
client.send(b'x')
assert server.accept()[0].recv(1) == b'x'
assert asyncio.run(asyncio.sleep(0, 5)) == 5
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
assert subprocess.run(['echo', 'text'], capture_output=True).stdout == b'text\n'
)");
  EXPECT_EQ(result.outcome, sandbox::Outcome::passed) << result.output;
}

}  // namespace
}  // namespace hlat::test
