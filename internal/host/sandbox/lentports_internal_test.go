//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// loopback listens on a port of this machine.
func loopback(t *testing.T) (l *net.TCPListener, port uint16) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, uint16(l.Addr().(*net.TCPAddr).Port)
}

// exhausted is a listener that at first finds no room for another open file.
type exhausted struct {
	net.Listener
	failed bool
}

func (e *exhausted) Accept() (net.Conn, error) {
	if !e.failed {
		e.failed = true
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return e.Listener.Accept()
}

func TestAPortIsLentOnAfterTooManyFilesWereOpen(t *testing.T) {
	there, port := loopback(t)
	go func() {
		c, err := there.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "welcome")
	}()
	local := egress.Pattern("127.0.0.1:" + strconv.Itoa(int(port)))
	p := newProxy(egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{local}, Private: []egress.Pattern{local}})
	defer p.close()
	here, _ := loopback(t)
	p.lend(&exhausted{Listener: here}, port)

	c, err := net.Dial("tcp", here.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "welcome" {
		t.Errorf("it says %q, %v", got, err)
	}
}

// What cannot be handed over whole is not served in part.
func TestACommandThatCouldNotStartLeavesNoProxyBehind(t *testing.T) {
	ours, theirs, err := channel()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	l, port := loopback(t)
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendmsg(int(theirs.Fd()), []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0); err != nil {
		t.Fatal(err)
	}
	for _, end := range []io.Closer{f, l, theirs} {
		end.Close()
	}
	local := egress.Pattern("localhost:" + strconv.Itoa(int(port)))
	rules := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{local}, Private: []egress.Pattern{local}}
	if err := new(Process).connect(ours, rules, []uint16{port}); err == nil {
		t.Fatal("the socket of the port was never sent")
	}
	if c, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			c.Close()
		}
		t.Errorf("somebody still listens: %v", err)
	}
}

// Requests under way when a command has ended finish after its destination was
// reported.
func TestLentPortKeepsItsFirstAnswer(t *testing.T) {
	p := newProxy(egress.Rules{})
	defer p.close()
	_ = p.note("example.com", 443, nil)
	told := p.reaches()
	_ = p.note("example.com", 443, nil)
	if told[0].Count != 1 {
		t.Errorf("it is told of %d requests", told[0].Count)
	}
}
