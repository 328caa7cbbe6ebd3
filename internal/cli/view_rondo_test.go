package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rondoLoop is a loop whose iterations say what they do in the words of a script.
func rondoLoop(t *testing.T, loop, script string) project {
	return newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: looper}\nmodel_policy: {primary: {model: scripted/script.yaml}}\nloop: {loopEnabled: true, " + loop + "}\n",
		"script.yaml": script,
	})
}

// newestRoot is the first of the runs of the newest tree.
func (p project) newestRoot() string {
	p.t.Helper()
	r, err := newestOf(p.t.Context(), filepath.Join(p.dir, ".pawl", "journal.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Root
}

// rows: RON-7, RON-35..42
func TestRondoViewHasTheFiveEventsOfALoop(t *testing.T) {
	long := strings.Repeat("x", 400)
	says := func(text string) string { return "- text: " + text + "\n" }
	pass := func(n, of int, text, learning string) []string {
		return []string{
			fmt.Sprintf(`{"type":"iteration","iteration":%d,"maxIterations":%d,"output":"%s"}`, n, of, text),
			fmt.Sprintf(`{"type":"progress","iteration":%d,"learning":"%s"}`, n, learning),
		}
	}
	asked := func(n int, text string) string {
		return fmt.Sprintf(`{"type":"manual_approval_required","iteration":%d,"output":"%s","loopId":"RUN/review-%d"}`, n, text, n)
	}
	tests := []struct {
		name, loop, script string
		code               int
		// then is done to the run once it has parked.
		then []string
		want []string
	}{
		{
			"the criterion is met", "loopCriteria: {type: regex, value: X+}", says(long), 0, nil,
			append(pass(1, 10, long, long[:300]), `{"type":"completed","totalIterations":1,"finalOutput":"`+long+`"}`),
		},
		{
			"the cap is reached", "maxIterations: 2", says(long), 0, nil,
			append(append(pass(1, 2, long, long[:300]), pass(2, 2, long, long[:300])...), `{"type":"completed","totalIterations":2,"finalOutput":"`+long[:300]+`"}`),
		},
		{
			"the cap is reached, which is no success", "maxIterations: 1, on_limit: stopped", says("a"), 3, nil,
			append(pass(1, 1, "a", "a"), `{"type":"completed","totalIterations":1,"finalOutput":"a"}`),
		},
		{
			"an iteration fails", "maxIterations: 3", "- error: {status: 401, message: no key}\n", 1, nil,
			append(pass(1, 3, "", "It failed: no key"), `{"type":"failed","iteration":1,"error":"iteration 1: no key"}`),
		},
		{
			"a person approves", "loopCriteria: {type: manual}", says("a"), 4, []string{"approve", "RUN", "review-1", "--resume"},
			append(pass(1, 10, "a", "a"), asked(1, "a"), `{"type":"completed","totalIterations":1,"finalOutput":"a"}`),
		},
		{
			"a person rejects", "loopCriteria: {type: manual}", says("a"), 4, []string{"reject", "RUN", "review-1", "--reason", "no", "--resume"},
			append(pass(1, 10, "a", "a"), asked(1, "a"), `{"type":"failed","iteration":1,"error":"Manual approval was rejected by user"}`),
		},
		{
			"it is stopped while a person is asked", "loopCriteria: {type: manual}", says("a"), 4, []string{"cancel", "RUN"},
			append(pass(1, 10, "a", "a"), asked(1, "a"), `{"type":"failed","iteration":1,"error":"cancelled"}`),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := rondoLoop(t, tt.loop, tt.script)
			live := p.exits(tt.code, "run", "agent.yaml", "Try.", "--view", "rondo").out
			id := p.newestRoot()
			if tt.then != nil {
				args := append([]string{"runs"}, tt.then...)
				args[2] = id
				p.start(args...).wait()
			}
			kept := p.exits(0, "runs", "events", id, "--view", "rondo").out
			live, kept = strings.ReplaceAll(live, id, "RUN"), strings.ReplaceAll(kept, id, "RUN")
			if got := strings.Split(strings.TrimSpace(kept), "\n"); cmp.Diff(tt.want, got) != "" {
				t.Error(cmp.Diff(tt.want, got))
			}
			if !strings.HasPrefix(kept, live) || tt.then == nil && kept != live {
				t.Errorf("while it ran they were\n%s", live)
			}
			if ends := regexp.MustCompile(`"type":"(completed|failed)"`).FindAllString(kept, -1); len(ends) != 1 {
				t.Errorf("%d terminal events", len(ends))
			}
		})
	}
}

// rows: RON-20, RON-37
func TestReviewsInRondoViewHaveTheirOwnLoopID(t *testing.T) {
	p := rondoLoop(t, "loopCriteria: {type: manual}, on_reject: continue_with_feedback", "- text: a\n")
	seen := map[string]int{}
	for range 2 {
		p.exits(4, "run", "agent.yaml", "Try.", "--view", "rondo")
		id := p.newestRoot()
		p.exits(4, "runs", "reject", id, id+"/review-1", "--reason", "no", "--resume")
		for _, m := range regexp.MustCompile(`"loopId":"([^"]*)"`).FindAllStringSubmatch(p.exits(0, "runs", "events", id, "--view", "rondo").out, -1) {
			seen[m[1]]++
		}
		p.exits(0, "runs", "approve", id, id+"/review-2", "--resume")
	}
	if len(seen) != 4 {
		t.Errorf("two loops of two iterations ask with the ids %v", seen)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%d reviews have the id %s", times, id)
		}
	}
}
