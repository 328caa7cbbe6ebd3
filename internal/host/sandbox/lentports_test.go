//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// welcoming is a server of this machine at one of its addresses, and its port;
// none where it has no such address.
func welcoming(t *testing.T, address string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return ""
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") }))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// visit asks for an address as programs in Go do, which never ask a proxy for
// one of this machine.
func visit(args []string) error {
	r, err := http.Get(args[0])
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "welcome" {
		return fmt.Errorf("%s: %q, %v", r.Status, body, err)
	}
	return nil
}

// itself starts a server in the box, and asks it without saying that there is
// no proxy on the way.
func itself([]string) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") }))
	defer server.Close()
	out, err := exec.Command("curl", "-fsS", strings.Replace(server.URL, "127.0.0.1", "localhost", 1)).CombinedOutput()
	if err != nil || string(out) != "welcome" {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func TestProgramsReachLentPort(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	port, other, six := welcoming(t, "127.0.0.1"), welcoming(t, "127.0.0.1"), welcoming(t, "::1")
	rules := func(hosts, private egress.Pattern) egress.Rules {
		return egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{hosts}, Private: []egress.Pattern{private}}
	}
	byPort := rules("localhost", egress.Pattern("localhost:"+port))
	byAddress := rules(egress.Pattern("127.0.0.1:"+port), "127.0.0.0/8")
	byName := rules("localhost", "localhost")
	ofAnother := rules("localhost", "localhost")
	ofAnother.Hosts = append(ofAnother.Hosts, egress.Pattern("example.com:"+other))
	// At most 64 ports are lent, the lowest ones.
	beside := func(lowest int) egress.Rules {
		many := rules("localhost", egress.Pattern("localhost:"+port))
		for i := range 64 {
			many.Private = append(many.Private, egress.Pattern(fmt.Sprintf("localhost:%d", lowest+i)))
		}
		return many
	}
	last, first := beside(1024), beside(65536-64)
	for _, c := range []struct {
		name, command string
		rules         egress.Rules
		works         bool
	}{
		{"curl", "curl -fsS http://localhost:" + port, byPort, true},
		{"curl, by address", "curl -fsS http://127.0.0.1:" + port, byAddress, true},
		{"curl, every port", "curl -fsS http://localhost:" + other, byName, true},
		{"a program in Go", `"$SELF" attack visit http://localhost:` + port, byPort, true},
		{"another port", "curl -fsS http://localhost:" + other, byPort, false},
		{"another port, around the proxy", `"$SELF" attack tcp 127.0.0.1:` + other, byPort, false},
		{"a port of another machine", `"$SELF" attack tcp 127.0.0.1:` + other, ofAnother, false},
		{"a port of the list that is not public", "curl -fsS http://localhost:" + port, rules("localhost", "example.com"), false},
		{"a port that the list does not have", "curl -fsS http://localhost:" + port, rules("example.com", egress.Pattern("localhost:"+port)), false},
		{"what the command starts itself", `"$SELF" attack itself`, byPort, true},
		{"curl, a port beyond those that are lent", "curl -fsS http://localhost:" + port, last, true},
		{"a port beyond those that are lent, around the proxy", `"$SELF" attack visit http://localhost:` + port, last, false},
		{"a program in Go, a lent port where there are more", `"$SELF" attack visit http://localhost:` + port, first, true},
		{"curl, by its address of IPv6", "curl -fsS 'http://[::1]:" + six + "'", rules("::1", egress.Pattern("[::1]:"+six)), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.command, "[::1]:'") {
				t.Skip("this machine has no address of IPv6")
			}
			in(t, withMounts, func(t *testing.T, tier sandbox.Tier, f field) {
				f.policy.Egress = c.rules
				got := run(t, open(t, tier, f.policy), f.command(c.command))
				if (got.Code == 0) != c.works {
					t.Errorf("it ended with %d: %s", got.Code, got.output)
				}
				if reached := len(got.Reached) == 1 && got.Reached[0].Denied == ""; reached != (c.works && !strings.Contains(c.command, "itself")) {
					t.Errorf("on record is %+v", got.Reached)
				}
			})
		})
	}
}
