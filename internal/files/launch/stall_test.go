package launch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/models"
)

// pinging starts a provider. Its first answers, silent of them, begin with the given
// events and then send only pings until the client disconnects. All others are "done".
func pinging(t *testing.T, first string, silent int64) (url string) {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if requests.Add(1) > silent {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
			return
		}
		fmt.Fprint(w, first)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			fmt.Fprint(w, ": ping\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-ticker.C:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A stream of endless pings is a failed attempt, the first time and the second.
func TestAStreamThatStallsIsRetriedAfterTheTimeOfTheFile(t *testing.T) {
	const head = "model_policy: {primary: slow/m}\nstall_timeout: 1s\n"
	for name, c := range map[string]struct {
		first  string
		silent int64
	}{
		"before a word": {"", 1},
		"after a word":  {`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"do"}}]}` + "\n\n", 1},
		"twice":         {"", 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.NoBudget = true
			o.Config = models.Config{Providers: map[string]models.Provider{"slow": {BaseURL: pinging(t, c.first, c.silent), APIKeyEnv: "SLOW_API_KEY"}}}
			started, cfg, env := start(t, file(t, head), o)
			if cfg.StallTimeout != time.Second {
				t.Fatalf("the run pins %s", cfg.StallTimeout)
			}
			_, events := run(t, memory.New(nil), started, env)
			if got := outcome(t, events); !got.OK || got.FinalOutput != "done" {
				t.Errorf("ended with %+v", got)
			}
			var order []string
			for _, e := range events {
				switch d := e.Data.(type) {
				case event.ModelRequested:
					order = append(order, fmt.Sprint("attempt ", d.Attempt))
				case event.ModelAttemptFailed:
					order = append(order, fmt.Sprintf("%s %q", d.Message, d.PartialText))
				case event.ModelRetrying:
					order = append(order, fmt.Sprint("retry ", d.Attempt))
				}
			}
			partial := map[bool]string{true: "", false: "do"}[c.first == ""]
			var want []string
			for n := range c.silent {
				want = append(want, fmt.Sprint("attempt ", n+1), fmt.Sprintf("the stream stalled: no data for 1 s (stall_timeout) %q", partial), fmt.Sprint("retry ", n+2))
			}
			want = append(want, fmt.Sprint("attempt ", c.silent+1))
			if len(order) < len(want) || !slices.Equal(order[:len(want)], want) {
				t.Errorf("the journal has %q, want %q", order, want)
			}
		})
	}
}
