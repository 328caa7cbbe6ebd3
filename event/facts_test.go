package event_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
)

func TestAHostIsWrittenWithThePortThatIsKnown(t *testing.T) {
	f := event.Facts{Hosts: []string{"example.org", "::1", "example.com", "later.example"}, Ports: []uint16{443, 8080, 0}}
	for i, want := range []string{"example.org:443", "[::1]:8080", "example.com", "later.example"} {
		if got := f.HostPort(i); got != want {
			t.Errorf("host %d is %q, want %q", i, got, want)
		}
	}
}
