package resolve

import (
	"strings"

	"github.com/pawlrun/pawl/event"
)

// sockets are the directories below which bash opens a connection when it is
// redirected to a file: to a host and a port, or with datagrams.
var sockets = []string{"/dev/tcp/", "/dev/udp/"}

// connects notes the machine that a redirection talks to, whichever way it
// reads or writes. Where it is computed it may be such a machine.
func (r *reader) connects(to word) {
	for _, socket := range sockets {
		host, ok := strings.CutPrefix(to.text, socket)
		host, _, _ = strings.Cut(host, "/")
		switch {
		case ok && to.computed:
			r.unclear("which machine " + trim(to.text) + " names, is computed when it runs")
			r.atLeast(event.RiskSend)
		case ok:
			r.host(host)
			r.atLeast(event.RiskSend)
		case to.computed && !to.glob:
			r.notOnlyLooks = r.notOnlyLooks || strings.HasPrefix(socket, to.prefix)
		}
	}
}
