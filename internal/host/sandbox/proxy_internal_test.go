package sandbox

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/internal/host/egress"
)

func TestWhatIsKeptOfAMachineThatWasAskedForIsShort(t *testing.T) {
	p := newProxy(egress.Rules{Network: egress.NetworkAllowlist})
	defer p.close()
	long := strings.Repeat("x", 1<<20)
	for i := range 50 {
		for _, form := range []string{"%d%s", "[fe80::%d%%%s]:80", "%d.example:%s", "%d%s:80"} {
			if _, err := p.dial(t.Context(), "tcp", fmt.Sprintf(form, i, long)); err == nil {
				t.Fatalf(form+" was reached", i, "…")
			}
		}
	}
	kept := 0
	for _, r := range p.reaches() {
		kept += len(r.Host) + len(r.Denied)
	}
	if kept > 200<<10 {
		t.Errorf("%d bytes are kept for the journal", kept)
	}
}

// pipes is a listener that always has a connection.
type pipes struct{ net.Listener }

func (pipes) Accept() (net.Conn, error) {
	_, here := net.Pipe()
	return here, nil
}

func TestACommandHasSoManyConnectionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		slots := newConnectionSlots()
		served, lent := slots.listener(ctx, pipes{}), slots.listener(ctx, pipes{})
		var open []net.Conn
		for range maxConnections / 2 {
			for _, l := range []net.Listener{served, lent} {
				c, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, c)
			}
		}
		came := make(chan error, 2)
		for _, l := range []net.Listener{served, lent} {
			go func() {
				_, err := l.Accept()
				came <- err
			}()
		}
		synctest.Wait()
		if len(came) != 0 {
			t.Fatalf("%d connections were taken beside %d", len(came), len(open))
		}
		open[0].Close()
		open[0].Close()
		synctest.Wait()
		if len(came) != 1 || <-came != nil {
			t.Error("the place of a connection that ended was not taken by one other")
		}
		cancel()
		if err := <-came; err == nil {
			t.Error("a connection was taken after the end")
		}
	})
}
