package launch

import (
	"cmp"
	"os"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Wires opens the models of a run for what their wires would send, without
// anything being sent: a key that is not set is no hindrance.
func Wires(started event.RunStarted, o Options) func(target string) (llm.Model, string, error) {
	o = o.keyless()
	o.Dir = cmp.Or(started.Options["dir"], o.Dir)
	return o.resolver(started.Options["files"]).Open
}

// keyless are the options with which models are opened for their wires alone.
func (o Options) keyless() Options {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	o.Getenv = func(name string) string {
		if v := getenv(name); v != "" || !strings.HasSuffix(name, "_KEY") {
			return v
		}
		return "none"
	}
	return o
}
