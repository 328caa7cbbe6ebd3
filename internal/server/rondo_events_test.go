package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// more are agents whose loops end in other ways than those of looping.
var more = map[string]string{
	"broken.yaml":        "identity: {name: broken}\nmodel_policy: {primary: {model: scripted/broken.script.yaml}}\nloop: {loopEnabled: true, maxIterations: 3}\n",
	"broken.script.yaml": "- error: {status: 401, message: no such key}\n",
	"tested.yaml": "identity: {name: tested}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\n" +
		"loop: {loopEnabled: true, maxIterations: 2, loopCriteria: {type: test_pass, value: 'false'}}\n",
	"again.yaml": "identity: {name: again}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\n" +
		"loop: {loopEnabled: true, maxIterations: 3, loopCriteria: {type: manual}, on_reject: continue_with_feedback}\n",
	"judged.yaml": "identity: {name: judged}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\n" +
		"loop: {loopEnabled: true, maxIterations: 3, loopCriteria: {type: manual}}\n",
}

// rondoLines is the clients' events, with RUN in the place of the run's id.
func rondoLines(t *testing.T, run string, events []received) (lines []string) {
	t.Helper()
	for _, e := range events {
		if !strings.HasPrefix(e.name, "ack ") {
			lines = append(lines, strings.ReplaceAll(e.String(), run, "RUN"))
		}
	}
	return lines
}

// rows: RON-23, RON-34, RON-48, RON-52..54
//
// Another client that only listens gets the same.
func TestClientsHearOfALoopInRondoFlowsWords(t *testing.T) {
	const (
		iteration = `agent:loop_iteration {"agentId":"%[1]s","iteration":%[2]d,"maxIterations":%[3]d}`
		progress  = `notification {"id":"loop-progress-%[1]s-RUN-%[2]d","level":"info","title":"Loop iteration %[2]d: %[3]s","agentId":"%[1]s","run":"RUN","iteration":%[2]d,"learning":"%[3]s"}`
		review    = `notification {"id":"loop-approval-%[1]s-RUN/review-%[2]d","level":"action_required","title":"Loop iteration %[2]d requires manual approval","agentId":"%[1]s","actions":["approve","reject"],"run":"RUN","iteration":%[2]d,"loopId":"RUN/review-%[2]d","output":"the first try"}`
		ended     = `notification {"id":"loop-completed-%[1]s-RUN","level":"%[2]s","title":"%[3]s","agentId":"%[1]s","run":"RUN"%[4]s}`
		status    = `agent:status {"agentId":"%s","status":"%s"}`
	)
	f := fmt.Sprintf
	reviewed := func(agent string) []string {
		return []string{
			f(status, agent, "running"), f(iteration, agent, 1, 3), f(progress, agent, 1, "the first try"), f(review, agent, 1), f(status, agent, "paused"), f(status, agent, "running"),
		}
	}
	for name, c := range map[string]struct {
		agent string
		// say is an event that is sent a minute later.
		say, with string
		want      []string
	}{
		"completed": {"matches", "", "", []string{
			f(status, "matches", "running"), f(iteration, "matches", 1, 10), f(progress, "matches", 1, "the first try"),
			f(ended, "matches", "info", "Loop completed after 1 iterations", `,"iteration":1,"output":"the first try"`), f(status, "matches", "idle"),
		}},
		"approved": {"judged", "loop:approve", `{"agentId": "judged", "loopId": "review-1", "approved": true}`, append(reviewed("judged"),
			f(ended, "judged", "info", "Loop completed after 1 iterations", `,"iteration":1,"output":"the first try"`), f(status, "judged", "idle"),
		)},
		"rejected": {"judged", "loop:approve", `{"agentId": "judged", "loopId": "review-1", "approved": false}`, append(reviewed("judged"),
			f(ended, "judged", "error", "Loop failed at iteration 1: Manual approval was rejected by user", `,"iteration":1,"error":"Manual approval was rejected by user"`), f(status, "judged", "error"),
		)},
		"stopped": {"judged", "loop:stop", `{"agentId": "judged"}`, append(reviewed("judged"),
			f(ended, "judged", "info", "Loop stopped after 1 iterations", `,"iteration":1`), f(status, "judged", "idle"),
		)},
		"three iterations": {"slow", "", "", []string{
			f(status, "slow", "running"), f(iteration, "slow", 1, 3), f(progress, "slow", 1, "a slow try"), f(iteration, "slow", 2, 3), f(progress, "slow", 2, "a slow try"),
			f(iteration, "slow", 3, 3), f(progress, "slow", 3, "a slow try"),
			f(ended, "slow", "info", "Loop completed after 3 iterations", `,"iteration":3,"output":"a slow try"`), f(status, "slow", "idle"),
		}},
		"rejected, and tried again": {"again", "loop:approve", `{"agentId": "again", "loopId": "review-1", "approved": false}`, append(reviewed("again"),
			f(iteration, "again", 2, 3), f(progress, "again", 2, "the first try"), f(review, "again", 2), f(status, "again", "paused"),
		)},
		"failed": {"broken", "", "", []string{
			f(status, "broken", "running"), f(iteration, "broken", 1, 3), f(progress, "broken", 1, "It failed: no such key"),
			f(ended, "broken", "error", "Loop failed at iteration 1: no such key", `,"iteration":1,"error":"iteration 1: no such key"`), f(status, "broken", "error"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inSockets(t, more, func(c2 connected) {
				s, other := c2.joined("websocket"), c2.joined("polling")
				run := as[envelope](t, s.waitFor(s.emit("loop:start", f(`{"agentId": %q, "message": "go"}`, c.agent)))).Data.Run
				time.Sleep(time.Minute)
				if c.say != "" {
					if got := as[envelope](t, s.waitFor(s.emit(c.say, c.with))); !got.Success {
						t.Errorf("%s is answered with %+v", c.say, got)
					}
					time.Sleep(time.Minute)
				}
				for _, each := range []*socket{s, other} {
					if diff := cmp.Diff(c.want, rondoLines(t, run, each.soFar())); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

// rows: RON-51, RON-63
//
// An agent has one loop, whichever API started it, and all clients receive its events.
func TestALoopIsTheSameByEveryDoor(t *testing.T) {
	inSockets(t, nil, func(c connected) {
		s := c.joined("polling")
		run := c.loop(http.StatusAccepted, "slow", "start", rondoMessage).Data.Run
		time.Sleep(15 * time.Second)
		if got := rondoLines(t, run, s.soFar()); len(got) != 3 || !strings.HasPrefix(got[1], `agent:loop_iteration {"agentId":"slow","iteration":1`) {
			t.Errorf("of a loop that was started over HTTP is heard %q", got)
		}
		refused := as[envelope](t, s.waitFor(s.emit("loop:start", `{"agentId": "slow", "message": "again"}`)))
		if refused.Success || refused.Error.Type != "LOOP_RUNS" || !strings.Contains(refused.Error.Message, run) {
			t.Errorf("a second loop is answered with %+v", refused)
		}
		type failure struct{ AgentID, SessionID, Error, Type string }
		if got, want := as[failure](t, s.waitFor("agent:error")), (failure{"slow", "", refused.Error.Message, "LOOP_RUNS"}); got != want {
			t.Errorf("the error is %+v, want %+v", got, want)
		}
		s.waitFor(s.emit("loop:stop", `{"agentId": "slow"}`))
		if got := c.loop(http.StatusOK, "slow", "status", "").Data; got.Active || got.Run != run {
			t.Errorf("stopped over a socket, it is %+v", got)
		}
		started := as[envelope](t, s.waitFor(s.emit("loop:start", `{"agentId": "slow", "message": "again"}`))).Data.Run
		if got := c.loop(http.StatusOK, "slow", "status", "").Data; !got.Active || got.Run != started {
			t.Errorf("started over a socket, it is %+v", got)
		}
		c.loop(http.StatusConflict, "slow", "start", rondoMessage)
		c.loop(http.StatusOK, "slow", "stop", "")
	})
}

// A client that connects in the middle of a loop, or reconnects, gets its state: the
// review that waits, and nothing that is over.
func TestLateClientGetsStateOfLoop(t *testing.T) {
	inSockets(t, nil, func(c connected) {
		run := c.loop(http.StatusAccepted, "reviewed", "start", rondoMessage).Data.Run
		time.Sleep(time.Minute)
		want := []string{"agent:status running", "agent:loop_iteration", "notification action_required"}
		shape := func(s *socket) (short []string) {
			for _, e := range s.soFar() {
				d := as[struct{ Status, Level, Run string }](t, e.data)
				short = append(short, strings.TrimSpace(fmt.Sprint(e.name, " ", d.Status, d.Level)))
			}
			return short
		}
		want[0] = "agent:status paused"
		first := c.joined("websocket")
		if got := shape(first); !slices.Equal(got, want) {
			t.Errorf("the first is told %q", got)
		}
		second := c.joined("polling")
		if got := shape(second); !slices.Equal(got, want) {
			t.Errorf("the second is told %q", got)
		}
		if got := shape(first); len(got) != 0 {
			t.Errorf("the first is told again: %q", got)
		}
		c.loop(http.StatusOK, "reviewed", "approve", `{"loopId": "`+run+`/review-1", "approved": true}`)
		time.Sleep(time.Minute)
		if got := shape(c.joined("websocket")); len(got) != 0 {
			t.Errorf("of a loop that is over is told %q", got)
		}
	})
}

// An event that is wrong in itself is answered, and changes nothing.
func TestAnEventThatIsWrongIsAnswered(t *testing.T) {
	inSockets(t, nil, func(c connected) {
		s := c.joined("websocket")
		for name, e := range map[string]struct{ event, data, want string }{
			"no such event":     {"loop:begin", `{"agentId": "slow"}`, "NOT_FOUND"},
			"no such agent":     {"loop:start", `{"agentId": "nobody", "message": "x"}`, "NOT_FOUND"},
			"a path":            {"loop:start", `{"agentId": "../slow", "message": "x"}`, "NOT_FOUND"},
			"no agent":          {"loop:start", `{"message": "x"}`, "BAD_BODY"},
			"an agent as a":     {"loop:start", `{"agentId": 1, "message": "x"}`, "BAD_BODY"},
			"no object":         {"loop:start", `"slow"`, "BAD_BODY"},
			"two objects":       {"loop:start", `{"agentId": "slow", "message": "x"},{}`, "BAD_BODY"},
			"no message":        {"loop:start", `{"agentId": "slow"}`, "BAD_BODY"},
			"another key":       {"loop:start", `{"agentId": "slow", "message": "x", "model": "y"}`, "BAD_BODY"},
			"a loop that is of": {"loop:start", `{"agentId": "off", "message": "x"}`, "LOOP_OFF"},
			"no loop to stop":   {"loop:stop", `{"agentId": "slow"}`, "NO_LOOP"},
			"no loop to decide": {"loop:approve", `{"agentId": "slow", "loopId": "review-1", "approved": true}`, "NO_LOOP"},
		} {
			if got := as[envelope](t, s.waitFor(s.emit(e.event, e.data))); got.Success || got.Error.Type != e.want || got.Error.Message == "" {
				t.Errorf("%s: %+v, want %s", name, got, e.want)
			}
			if got := as[struct{ Type string }](t, s.waitFor("agent:error")); got.Type != e.want {
				t.Errorf("%s: the error is %s, want %s", name, got.Type, e.want)
			}
		}
		if page := gets[struct{ Items []json.RawMessage }](c.local, http.StatusOK, http.MethodGet, "/v1/runs", ""); len(page.Items) != 0 {
			t.Errorf("there are runs: %s", page.Items)
		}
	})
}
