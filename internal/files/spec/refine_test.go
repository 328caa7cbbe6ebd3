package spec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

func loopFile(loop string) []byte {
	return []byte("identity: {name: fix}\nmodel_policy: {primary: {model: scripted/x}}\n" + loop + "\n")
}

// What a file says of its loop is what its plan does; each file says it for itself.
//
// rows: RON-12, RON-14, RON-24..26, RON-28..30
func TestALoopIsWhatItsFileSays(t *testing.T) {
	command := plan.Command{Argv: []string{"go", "test", "./..."}, Timeout: time.Minute}
	for file, want := range map[string]struct {
		most  int
		stops []plan.Stop
	}{
		"loop: {loopEnabled: true}": {10, nil},
		"loop: {loopEnabled: true, loopCriteria: {type: max_iterations}, maxIterations: 100}":          {100, nil},
		"loop: {loopEnabled: true, loopCriteria: {type: regex, value: 'a+'}, maxIterations: 1}":        {1, []plan.Stop{{Regex: "a+"}}},
		"loop: {loopEnabled: true, loopCriteria: {type: regex, value: '('}}":                           {10, nil},
		"loop: {loopEnabled: true, loopCriteria: {type: test_pass, value: ' go test  ./... '}}":        {10, []plan.Stop{{Command: &command}}},
		"loop: {loopEnabled: true, loopCriteria: {type: manual}, stop_when: [{cel: 'iteration > 2'}]}": {10, []plan.Stop{{Human: &plan.Human{}}, {Expression: "iteration > 2"}}},
		"loop: {loopEnabled: false, loopCriteria: {type: regex, value: a}}":                            {},
		"loop: {loopCriteria: {type: regex, value: a}}":                                                {},
		"": {},
	} {
		t.Run(file, func(t *testing.T) {
			a, err := spec.ParseAgent("fix.yaml", loopFile(file), spec.Options{Tools: rules.Tools})
			if err != nil {
				t.Fatal(err)
			}
			if a.Loops() != (want.most > 0) {
				t.Fatalf("it loops: %v", a.Loops())
			}
			if !a.Loops() {
				return
			}
			if l := a.Plan().Steps[0].Loop; l.Max != want.most || !cmp.Equal(l.StopWhen, want.stops) {
				t.Errorf("%d iterations at most, %s", l.Max, cmp.Diff(want.stops, l.StopWhen))
			}
		})
	}
}

// rows: RON-27, RON-29
func TestLoopProblemsHavePositions(t *testing.T) {
	long := strings.Repeat("a", 1_000_000)
	for file, want := range map[string]string{
		"loop: {loopEnabled: true, maxIterations: 0}":                                           "loop.maxIterations: is 0",
		"loop: {loopEnabled: true, maxIterations: 101}":                                         "loop.maxIterations: is 101",
		"loop: {loopEnabled: true, loopCriteria: {type: regex}}":                                "loop.loopCriteria.value: is missing",
		"loop: {loopEnabled: true, loopCriteria: {type: test_pass, value: ' '}}":                "loop.loopCriteria.value: is missing",
		"loop: {loopEnabled: true, loopCriteria: {type: manual, value: x}}":                     "loop.loopCriteria.value: a manual criterion takes no value",
		"loop: {loopEnabled: true, loopCriteria: {type: max_iterations, value: x}}":             "loop.loopCriteria.value: a max_iterations criterion takes no value",
		"loop: {loopEnabled: true, loopCriteria: {type: regex, value: " + long + "}}":           "loop.loopCriteria.value: has 1000000 bytes",
		"loop: {loopEnabled: true, stop_when: [{regex: " + long + "}]}":                         "loop.stop_when[0].regex: has 1000000 bytes",
		"loop: {loopEnabled: true, stop_when: [{contains: x}, {rubric: {criteria: []}}]}":       "loop.stop_when[1].rubric: it has no criteria",
		"loop: {loopEnabled: true, stop_when: [{llm_judge: {model: scripted/x}}]}":              "loop.stop_when[0].llm_judge: it has no value",
		"loop: {loopEnabled: true}\ncomposite: {strategy: sequential, subagents: [{agent: b}]}": "loop: a team does not have it",
	} {
		t.Run(want, func(t *testing.T) {
			_, err := spec.ParseAgent("fix.yaml", loopFile(file), spec.Options{Tools: rules.Tools})
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "fix.yaml:3:") || len(err.Error()) > 4000 {
				t.Errorf("%.4000v", err)
			}
		})
	}
}
