package history_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
)

func TestAResultIsReplacedByWhatIsMadeOfIt(t *testing.T) {
	failed := llm.ToolResult{CallID: "c2", ProviderID: "p2", Name: "read", Output: "no such file", IsError: true, Media: []llm.Media{{Blob: "x"}}, Pin: "todo"}
	answer := tells(result("c1"), failed)
	answer.Origin = "kept"
	h := holding(t, llm.UserText("go"), says(call("c1"), call("c2")), answer, says(call("c3")), tells(result("c3")))
	before, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	if h.Replace("c9", func(llm.ToolResult) string { t.Error("c9 has a result"); return "" }) {
		t.Error("a call without a result has another one now")
	}
	if !h.Replace("c2", func(r llm.ToolResult) string { return r.Name + " gave " + r.Output + ", and now this" }) {
		t.Fatal("c2 has no result")
	}
	after, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	want := tells(result("c1"), llm.ToolResult{CallID: "c2", ProviderID: "p2", Name: "read", Output: "read gave no such file, and now this", Pin: "todo"})
	want.Origin = "kept"
	if diff := cmp.Diff(want, after[2]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if before[2] != answer || !cmp.Equal(answer.Parts[1], llm.Part(failed)) {
		t.Errorf("what was handed out before is %+v", before[2])
	}
	for _, i := range []int{0, 1, 3, 4} {
		if after[i] != before[i] {
			t.Errorf("message %d is another one", i)
		}
	}
}

// If a call has two results, the newer one is replaced.
func TestOfTwoResultsTheNewerIsReplaced(t *testing.T) {
	h := holding(t, llm.UserText("go"), says(call("c1")), tells(result("c1")), says(call("c1")), tells(result("c1")))
	if !h.Replace("c1", func(llm.ToolResult) string { return "new" }) {
		t.Fatal("c1 has no result")
	}
	messages, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	var outputs []string
	for _, i := range []int{2, 4} {
		outputs = append(outputs, messages[i].Parts[0].(llm.ToolResult).Output)
	}
	if !cmp.Equal(outputs, []string{"out c1", "new"}) {
		t.Errorf("the results are %q", outputs)
	}
}
