package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/server"
)

// rows: RON-74, RON-75
func TestFlagAndVariablesSetFateOfRunsWithoutOwner(t *testing.T) {
	const teardown, park = event.OwnerGoneTeardown, event.OwnerGonePark
	for name, c := range map[string]struct {
		flag, onDisconnect, graceMS string
		want                        server.OwnerGone
	}{
		"nothing":              {"", "", "", server.OwnerGone{Sockets: teardown, Grace: time.Minute}},
		"on":                   {"", "1", "", server.OwnerGone{Sockets: teardown, Grace: time.Minute}},
		"off":                  {"", "0", "", server.OwnerGone{Grace: time.Minute}},
		"another time":         {"", "", "1500", server.OwnerGone{Sockets: teardown, Grace: 1500 * time.Millisecond}},
		"at once":              {"", "", "0", server.OwnerGone{Sockets: teardown}},
		"detach":               {"detach", "1", "", server.OwnerGone{Grace: time.Minute}},
		"park":                 {"park", "", "", server.OwnerGone{Sockets: park, HTTP: park, Grace: time.Minute}},
		"teardown":             {"teardown", "", "20", server.OwnerGone{Sockets: teardown, HTTP: teardown, Grace: 20 * time.Millisecond}},
		"the flag comes first": {"teardown", "0", "", server.OwnerGone{Sockets: teardown, HTTP: teardown, Grace: time.Minute}},
	} {
		env := map[string]string{"RONDOFLOW_TEARDOWN_ON_DISCONNECT": c.onDisconnect, "RONDOFLOW_TEARDOWN_GRACE_MS": c.graceMS}
		if got, err := ownerGone(c.flag, func(name string) string { return env[name] }); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	for flag, grace := range map[string]string{"kill": "", "": "soon", "park": "-1", "teardown": "1e9", "detach": "99999999999"} {
		_, err := ownerGone(flag, func(string) string { return grace })
		if err == nil || !strings.Contains(err.Error(), "--on-owner-disconnect") && !strings.Contains(err.Error(), "RONDOFLOW_TEARDOWN_GRACE_MS") {
			t.Errorf("%q with %q: %v", flag, grace, err)
		}
	}
}
