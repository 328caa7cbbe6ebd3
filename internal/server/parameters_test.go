package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// twoEach are two agents and two workflows: the steps of one ask before they write, those
// of the other take ten seconds.
var twoEach = map[string]string{
	"one.yaml": answering, "two.yaml": strings.Replace(answering, "answers", "more", 1), "script.yaml": "- text: the end\n",
	"asks.yaml": "apiVersion: pawl/v1\nname: asks\nagents: {w: {description: d, model: scripted/asks.script.yaml, tools: [fs.write], approvals: {fs.write: always}}}\n" +
		"steps: [{id: a, agent: w, instructions: x}, {id: b, agent: w, instructions: x}]\n",
	"asks.script.yaml":  "- tool_calls: [{name: fs.write, arguments: {path: asked.txt, content: asked}}]\n- text: the end\n",
	"lasts.yaml":        "name: lasts\nagents: {w: {description: d, model: scripted/lasts.script.yaml}}\nsteps: [{id: a, agent: w, instructions: x}]\n",
	"lasts.script.yaml": "- text: the end\n  delay: 10s\n",
}

// parameters are the values that are tried for each parameter of an operation. NEXT is the next of a first page with one item.
var parameters = map[string][]string{
	"limit": {"1"}, "cursor": {"NEXT"}, "after": {"NEXT"}, "state": {"ended"}, "children": {"true"}, "tree": {"true"}, "deltas": {"true"},
	"snapshot": {"true"}, "type": {"nothing"}, "from": {"2"}, "format": {"ag-ui", "pawl"}, "wait": {"1"}, "before": {"none"}, "parent": {"none"},
	"parts": {"true"}, "purpose": {"none"}, "seq": {"1"}, "at": {"nothing"}, "to": {"none"}, "find": {"in+no+event"}, "only": {"edited"}, "outcome": {"failed"}, "kind": {"none"}, "name": {"none"}, "text": {"in+no+input"}, "since": {"2100-01-01T00:00:00Z"}, "until": {"1999-01-01T00:00:00Z"},
}

// Each parameter that an operation knows changes the answer or is refused by name.
func TestParametersAreHonoredOrRefused(t *testing.T) {
	inBubble(t, twoEach, func(l local, _ string) {
		var doc struct {
			Paths map[string]map[string]struct {
				Parameters []struct{ Name, In string }
				Responses  map[string]struct{ Content map[string]any }
			}
		}
		if err := json.Unmarshal([]byte(l.shape(http.MethodGet, "/openapi.json", "", false)), &doc); err != nil {
			t.Fatal(err)
		}
		parked := l.flow("asks")
		l.flow("asks")
		l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/runs/none", "")
		for range 2 {
			l.refuses(http.StatusNotFound, "not-found", http.MethodPost, "/v1/runs/none/cancel", "")
		}
		synctest.Wait()
		tried := 0
		for path, operations := range doc.Paths {
			for method, o := range operations {
				streams := slices.ContainsFunc([]string{"200", "201"}, func(status string) bool { return o.Responses[status].Content["text/event-stream"] != nil })
				for _, p := range o.Parameters {
					if p.In != "query" {
						continue
					}
					if parameters[p.Name] == nil {
						t.Errorf("%s %s takes %s, of which no value is tried", method, path, p.Name)
					}
					for _, value := range parameters[p.Name] {
						for _, stream := range []bool{false, true} {
							if stream && !streams {
								continue
							}
							tried++
							l.honours(strings.ToUpper(method), path, p.Name, value, parked, stream)
						}
					}
				}
			}
		}
		if tried < 30 {
			t.Errorf("%d parameters were tried", tried)
		}
	})
}

// flow starts a workflow.
func (l local) flow(name string) string {
	return gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", `{"workflow": "`+name+`", "input": "go"}`).ID
}

// honours asks twice, with a parameter and without it.
func (l local) honours(method, path, name, value, parked string, stream bool) {
	l.t.Helper()
	body := ""
	if method == http.MethodPost {
		body = `{"workflow": "lasts", "input": "go"}`
	}
	of := func() string { // a stream is of a run that ends
		if stream && method == http.MethodGet {
			id := l.flow("lasts")
			l.stands("/v1/runs/" + id)
			return strings.Replace(path, "{id}", id, 1)
		}
		return strings.Replace(path, "{id}", parked, 1)
	}
	if path == "/v1/runs" && method == http.MethodGet { // the first page has a run that waits, however many have ended
		l.flow("asks")
		synctest.Wait()
	}
	base, to := "?", of()
	if name == "deltas" { // the root of a workflow says nothing itself
		base = "?tree=true&"
	}
	if value == "NEXT" {
		var page struct{ Next string }
		if err := json.Unmarshal([]byte(l.shape(method, to+"?limit=1", body, false)), &page); err != nil || page.Next == "" {
			l.t.Errorf("%s %s: a page of one item has no next: %v", method, path, err)
		}
		value = page.Next
	}
	with, without := l.shape(method, to+base+name+"="+value, body, stream), l.shape(method, of()+base, body, stream)
	var p struct{ Type, Detail string }
	if json.Unmarshal([]byte(with), &p) == nil && strings.HasSuffix(p.Type, ":bad-query") {
		if !strings.Contains(p.Detail, name) {
			l.t.Errorf("%s %s: %s=%s is refused with %q", method, path, name, value, p.Detail)
		}
		return
	}
	if usual := stream && value == formatPawl; (with == without) != usual {
		l.t.Errorf("%s %s: %s=%s is ignored (a stream: %t): %.300s", method, path, name, value, stream, with)
	}
}

// formatPawl is the format that streams have by themselves.
const formatPawl = "pawl"

// shape is an answer, or what it is of one whose ids and times are its own: the status of
// one that started a run, and the names of a stream's events.
func (l local) shape(method, path, body string, stream bool) string {
	l.t.Helper()
	var accept []string
	if stream {
		accept = []string{"text/event-stream"}
	}
	w := httptest.NewRecorder()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute) // the stream of all runs has no end
	defer cancel()
	conforming(l.t, l.Server).ServeHTTP(w, requestFromHere(ctx, method, path, body, accept...))
	time.Sleep(time.Minute) // what was started ends
	if w.Code >= http.StatusBadRequest || !stream && method == http.MethodGet {
		return w.Body.String()
	}
	var names []string
	for line := range strings.Lines(w.Body.String()) {
		if stream && strings.HasPrefix(line, "event: ") {
			names = append(names, line)
		}
	}
	return strconv.Itoa(w.Code) + strings.Join(names, "")
}
