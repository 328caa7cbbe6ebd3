package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Two servers of a journal keep the budget of a tenant together: a run that costs more
// ends at its next call, and further ones do not start until the budget is raised.
func TestServersOfAJournalShareATenantsBudget(t *testing.T) {
	p := newProject(t, map[string]string{
		"spends.yaml": "identity: {name: spends}\nmodel_policy: {primary: {model: scripted/script.yaml}, decoding: {max_tokens: 100}, budget: {usd_per_run: 50}}\ntools: {allow: [fs.list]}\n",
		"script.yaml": "- {tool_calls: [{name: fs.list, arguments: {path: .}}], usage: {input: 1000000, output: 1}}\n" +
			"- {text: done, usage: {input: 1000000, output: 1}}\n",
		"config.yaml": "models: {scripted/script.yaml: {price: {input: 1, output: 1}, context_window: 4000000}}\n",
	})
	ann := p.exits(0, "token", "create", "ann", "--role", "editor", "--tenant", "team", "--usd", "0.9", "--per", "month")
	bob := p.exits(0, "token", "create", "bob", "--role", "editor", "--tenant", "team", "--usd", "0.9", "--per", "month")
	if f := p.exits(0, "token", "list"); strings.Count(f.out, "team: $0.9 a month") != 2 {
		t.Errorf("the list: %s", f.out)
	}
	if f := p.exits(2, "token", "create", "eve", "--tenant", "team", "--usd", "2"); !strings.Contains(f.err, "another budget") {
		t.Errorf("a second budget of the tenant: %s", f.err)
	}
	first, second := p.serveWith([]string{"--config", "config.yaml"}), p.serveWith([]string{"--config", "config.yaml"})
	first.token, second.token = strings.TrimSpace(ann.out), strings.TrimSpace(bob.out)

	ends := func(s served) event.Outcome {
		t.Helper()
		run := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "spends", "input": "go"}`)
		s.reaches(run.ID, journal.Ended)
		return asks[struct{ Outcome event.Outcome }](s, http.StatusOK, http.MethodGet, "/v1/runs/"+run.ID, "").Outcome
	}
	if o := ends(first); o.Status != event.StatusStopped || o.Reason != event.ReasonTenantBudget || o.OK || !strings.Contains(o.NextSafeAction, "budget of the tenant") {
		t.Errorf("a run whose second call has no room: %+v", o)
	}
	for _, s := range []served{first, second} {
		problem := s.post(http.StatusPaymentRequired, "/v1/runs", `{"agent": "spends", "input": "go"}`)
		if detail, _ := problem["detail"].(string); !strings.Contains(detail, "the budget of team is used up: $1.00 of $0.90") {
			t.Errorf("a further start: %v", problem)
		}
	}
	p.write(".pawl/tokens.yaml", strings.ReplaceAll(p.read(".pawl/tokens.yaml"), "usd: 0.9", "usd: 10"))
	second.eventually("a higher budget holds", func() bool {
		answer, err := http.DefaultClient.Do(second.request(http.MethodPost, "/v1/runs", `{"agent": "spends", "input": "go"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusCreated
	})
	if o := ends(first); o.Reason != event.ReasonFinalAnswer {
		t.Errorf("a run under the higher budget: %+v", o)
	}
	first.stop()
	second.stop()
}
