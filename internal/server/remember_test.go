package server_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// rows: ALDO-64
func TestAnOfferedRuleIsAcceptedOverHTTP(t *testing.T) {
	write := "{name: fs.write, arguments: {path: out/a.txt, content: x}}"
	inBubble(t, map[string]string{
		"writes.yaml":        "identity: {name: writes}\nmodel_policy: {primary: {model: scripted/writes.script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n",
		"writes.script.yaml": "- tool_calls: [" + write + ", " + write + "]\n- tool_calls: [" + write + "]\n- text: the end\n",
	}, func(l local, _ string) {
		type question struct {
			ID, Since string
			Seq       int64
			Offer     *event.Permission
		}
		for _, remember := range []string{"true", "false"} { // the second run does not have the first one's rule
			run, path := l.begin("writes")
			l.stands(path)
			asked := gets[struct{ Items []question }](l, http.StatusOK, http.MethodGet, path+"/questions", "").Items
			if len(asked) != 2 || asked[0].Offer == nil || asked[0].Seq == 0 || asked[0].Since == "" {
				t.Fatalf("the questions are %+v", asked)
			}
			edited := `{"callId": "` + run.ID + `-1-1", "remember": true, "args": {"path": "b.txt", "content": "x"}}`
			if p := l.refuses(http.StatusUnprocessableEntity, "bad-args", http.MethodPost, path+"/approve", edited); p.Pointer != "/remember" {
				t.Errorf("the place is %q", p.Pointer)
			}
			gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "`+run.ID+`-1-1", "remember": `+remember+`}`)
			added := happened[event.PermissionAdded](l, path)
			if remember == "false" {
				if len(added) != 0 || l.stands(path).State != journal.Parked {
					t.Errorf("a decision for one call gives %+v", added)
				}
				continue
			}
			want := []event.PermissionAdded{{CallID: run.ID + "-1-1", Permission: *asked[0].Offer, By: "http:somebody", Principal: anyUser}}
			if diff := cmp.Diff(want, added); diff != "" {
				t.Errorf("the rule (-want +got):\n%s", diff)
			}
			if row := l.stands(path); row.State != journal.Ended {
				t.Errorf("the run is %s: %s", row.State, row.Detail)
			}
			for _, made := range happened[event.ToolApprovalResolved](l, path) {
				if made.Remember != (made.CallID == run.ID+"-1-1") {
					t.Errorf("%s: remember is %v", made.CallID, made.Remember)
				}
			}
		}
	})
}
