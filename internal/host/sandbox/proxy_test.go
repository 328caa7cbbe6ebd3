//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// get asks for an address through the proxy that the environment names, as
// programs do, but for addresses of this machine, too.
func get(args []string) error {
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	r, err := client.Get(args[0])
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	fmt.Printf("%d %s\n", r.StatusCode, body)
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", r.Status)
	}
	return nil
}

// tunnel asks the proxy for a tunnel and speaks through it.
func tunnel(args []string) error {
	c, err := net.Dial("tcp", strings.TrimPrefix(os.Getenv("HTTPS_PROXY"), "http://"))
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", args[0], args[0])
	answer := make([]byte, 12)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if string(answer) != "HTTP/1.1 200" {
		return fmt.Errorf("%s", answer)
	}
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(c)
	if !strings.Contains(string(b), "welcome") {
		return fmt.Errorf("%q, %v", b, err)
	}
	return nil
}

func TestACommandReachesTheHostsOfTheListAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here := "localhost:" + port
	var number uint16
	if _, err := fmt.Sscan(port, &number); err != nil {
		t.Fatal(err)
	}
	listed := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"localhost"}, Private: []egress.Pattern{"localhost"}}
	public := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"localhost"}}
	for _, c := range []struct {
		name, command string
		rules         egress.Rules
		works         bool
		denied        string
	}{
		{name: "http", command: `"$SELF" attack get http://` + here, rules: listed, works: true},
		{name: "a tunnel", command: `"$SELF" attack tunnel ` + here, rules: listed, works: true},
		{name: "http to an address that is not public", command: `"$SELF" attack get http://` + here, rules: public, denied: "localhost"},
		{name: "a tunnel to an address that is not public", command: `"$SELF" attack tunnel ` + here, rules: public, denied: "localhost"},
		{name: "http to a host that is not listed", command: `"$SELF" attack get http://127.0.0.1:` + port, rules: listed, denied: "127.0.0.1"},
		{name: "a tunnel to a host that is not listed", command: `"$SELF" attack tunnel 127.0.0.1:` + port, rules: listed, denied: "127.0.0.1"},
		{name: "around the proxy", command: `"$SELF" attack tcp 127.0.0.1:` + port, rules: listed},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, withMounts, func(t *testing.T, tier sandbox.Tier, f field) {
				f.policy.Egress = c.rules
				got := run(t, open(t, tier, f.policy), f.command(c.command))
				if (got.Code == 0) != c.works {
					t.Errorf("it ended with %d: %s", got.Code, got.output)
				}
				var want []sandbox.Reach
				if c.works {
					want = []sandbox.Reach{{Host: "localhost", Port: number, Count: 1}}
				}
				if c.denied != "" {
					if len(got.Reached) != 1 || got.Reached[0].Host != c.denied || got.Reached[0].Denied == "" {
						t.Errorf("%+v", got.Reached)
					}
				} else if diff := cmp.Diff(want, got.Reached); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestAListOfHostsNeedsANetworkOfTheCommandsOwn(t *testing.T) {
	p := sandbox.Policy{Egress: egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"example.com"}}}
	for tier, holds := range map[sandbox.Tier]bool{sandbox.Bubblewrap: true, sandbox.Namespaces: true, sandbox.Landlock: false, sandbox.None: false} {
		if err := tier.Holds(p); (err == nil) != holds {
			t.Errorf("%s: %v", tier, err)
		}
	}
}
