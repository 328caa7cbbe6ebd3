package server_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/server"
)

const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// proc is a directory with the kernel's table of connections.
func proc(t *testing.T, tcp, tcp6 string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "net"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"tcp": tcp, "tcp6": tcp6} {
		if err := os.WriteFile(filepath.Join(dir, "net", name), []byte(heading+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func nobodyDrives(context.Context) (map[string]string, error) { return nil, nil }

func TestOnlyTheUserOfTheServerIsAdmitted(t *testing.T) {
	here, there := netip.MustParseAddrPort("127.0.0.1:3001"), netip.MustParseAddrPort("127.0.0.1:40000")
	const (
		ends   = "   0: 0100007F:9C40 0100007F:0BB9 "
		turned = "   1: 0100007F:0BB9 0100007F:9C40 "
		rest   = " 00000000:00000000 00:00000000 00000000 "
		mapped = "   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:0BB9 "
	)
	for name, c := range map[string]struct {
		tcp, tcp6 string
		admitted  bool
	}{
		"the same user":                   {ends + "01" + rest + " 1000        0 4711 1\n", "", true},
		"the same user over IPv6":         {"", mapped + "01" + rest + " 1000        0 4711 1\n", true},
		"another user":                    {ends + "01" + rest + " 1001        0 4711 1\n", "", false},
		"the superuser":                   {ends + "01" + rest + "    0        0 4711 1\n", "", false},
		"a connection that is not listed": {"", "", false},
		"the server's own end":            {turned + "01" + rest + " 1000        0 4711 1\n", "", false},
		"a socket that was closed":        {ends + "05" + rest + " 1000        0 0 1\n", "", false},
	} {
		p := server.Peers{Proc: proc(t, c.tcp, c.tcp6), UID: 1000, Drivers: nobodyDrives}
		if err := p.Admit(t.Context(), there, here); (err == nil) != c.admitted {
			t.Errorf("%s: %v", name, err)
		}
	}
	first := proc(t, ends+"01"+rest+" 1000        0 4711 1\n", "")
	if err := os.Remove(filepath.Join(first, "net", "tcp6")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(first, "net", "tcp6"), 0o700); err != nil { // what cannot be read
		t.Fatal(err)
	}
	p := server.Peers{Proc: first, UID: 1000, Drivers: nobodyDrives}
	if err := p.Admit(t.Context(), there, here); err != nil {
		t.Errorf("the second table is read although the first has the connection: %v", err)
	}
	p = server.Peers{Proc: t.TempDir(), UID: 1000, Drivers: nobodyDrives}
	if err := p.Admit(t.Context(), there, here); err == nil {
		t.Error("admitted where nobody can be told")
	}
}

func TestAConnectionOfAProcessThatDrivesARunIsRefused(t *testing.T) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("needs /proc")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	there, here := netip.MustParseAddrPort(c.LocalAddr().String()), netip.MustParseAddrPort(l.Addr().String())
	drivers := map[string]string{}
	p := server.Peers{UID: os.Getuid(), Drivers: func(context.Context) (map[string]string, error) { return drivers, nil }}
	if err := p.Admit(t.Context(), there, here); err != nil {
		t.Fatalf("nothing is driven, and the user is refused: %v", err)
	}
	drivers[strings.Replace(engine.ProcessOwner(), "/", "elsewhere/", 1)] = "other"
	if err := p.Admit(t.Context(), there, here); err != nil {
		t.Errorf("a driver of another machine counts: %v", err)
	}
	drivers[engine.ProcessOwner()] = "k7x2"
	if err := p.Admit(t.Context(), there, here); err == nil || !strings.Contains(err.Error(), "k7x2") {
		t.Errorf("a process that drives a run is told: %v", err)
	}
}

// A supervisor shows nobody what it holds. That must not shut the owner out
// while a command runs.
func TestWhoeverShowsTheirConnectionIsAdmittedWhileOthersHideTheirs(t *testing.T) {
	here, there := netip.MustParseAddrPort("127.0.0.1:3001"), netip.MustParseAddrPort("127.0.0.1:40000")
	const table = "   0: 0100007F:9C40 0100007F:0BB9 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n"
	const hides, holds, holdsOther, gone = "hides", "socket:[4711]", "socket:[4712]", "gone"
	for name, c := range map[string]struct {
		ofRun, other string // what the process of a run shows, and another one
		admitted     bool
	}{
		"the other one holds it":                           {holdsOther, holds, true},
		"the other one holds it, the run's hides":          {hides, holds, true},
		"the run's holds it":                               {holds, holdsOther, false},
		"both hold it":                                     {holds, holds, false},
		"both hide":                                        {hides, hides, false},
		"the run's hides, and the other one holds none":    {hides, holdsOther, false},
		"the run's hides, and the other one is gone":       {hides, gone, false},
		"the run's has ended":                              {gone, hides, true},
		"neither holds it, and the run's does not hide it": {holdsOther, hides, true},
	} {
		dir := proc(t, table, "")
		for pid, shows := range map[int]string{os.Getpid(): c.ofRun, os.Getppid(): c.other} {
			at := filepath.Join(dir, strconv.Itoa(pid))
			err := os.Mkdir(at, 0o700)
			switch fd := filepath.Join(at, "fd"); {
			case err != nil:
			case shows == gone:
			case shows == hides: // it cannot be listed
				err = os.WriteFile(fd, nil, 0o600)
			default:
				if err = os.Mkdir(fd, 0o700); err == nil {
					err = os.Symlink(shows, filepath.Join(fd, "3"))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p := server.Peers{Proc: dir, UID: 1000, Drivers: func(context.Context) (map[string]string, error) {
			return map[string]string{engine.ProcessOwner(): "k7x2"}, nil
		}}
		if err := p.Admit(t.Context(), there, here); (err == nil) != c.admitted {
			t.Errorf("%s: %v", name, err)
		}
	}
}
